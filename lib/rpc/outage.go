package rpc

import (
	"log/slog"
	"sync"
	"time"
)

// When an outage is worth a line in the log, and worth another one.
const (
	outageAfter = 2 * time.Second
	outageAgain = time.Minute
)

// outage tells a log when something that is tried again and again begins to
// fail for longer than a moment, rarely that it still fails, and when it is
// over. It is safe for concurrent use.
type outage struct {
	failing, over string // what to say

	mu    sync.Mutex
	since time.Time // the first failure; zero: none
	said  time.Time // when that was logged last; zero: it was not
}

// failed notes a failure, and logs it as a warning when it is time for that.
func (o *outage) failed(logger *slog.Logger, err error) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = now
	}
	if now.Sub(o.since) < outageAfter || !o.said.IsZero() && now.Sub(o.said) < outageAgain {
		return
	}
	o.said = now
	logger.Warn(o.failing+", trying again", "err", err)
}

// worked notes a success, and logs it if the failure was.
func (o *outage) worked(logger *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.said.IsZero() {
		logger.Info(o.over, "after", time.Since(o.since).Round(time.Second))
	}
	o.since, o.said = time.Time{}, time.Time{}
}
