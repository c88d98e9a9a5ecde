package client

import (
	"fmt"
	"log/slog"
	"time"
)

// When it is worth a line in the log that nothing comes, and worth another one.
const (
	silentAfter = 3 * time.Second
	silentAgain = time.Minute
)

// silence tells the log when something that should come does not, rarely that
// it still does not, and when it comes again. Its user's lock guards it.
type silence struct {
	what string
	said time.Duration // when a warning was logged last
	told bool          // that was for the present silence
}

// lasts takes note that nothing has come since a time, and of why. It returns
// when it wants to be called again if that goes on.
func (s *silence) lasts(logger *slog.Logger, now, since time.Duration, why error) (next time.Duration) {
	if now-since < silentAfter {
		return since + silentAfter
	}
	if !s.told || now-s.said >= silentAgain {
		s.told, s.said = true, now
		logger.Warn(fmt.Sprintf("no %s for %v, trying again", s.what, (now-since).Round(time.Second)), "error", why)
	}
	return s.said + silentAgain
}

// ends takes note that something has come.
func (s *silence) ends(logger *slog.Logger) {
	if s.told {
		s.told = false
		logger.Info(s.what + " come again")
	}
}
