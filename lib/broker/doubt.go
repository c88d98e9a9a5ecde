package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// doubtAfter is how long grants may be away before the broker asks whether another
	// master leads by now: longer than from one heartbeat to the next, and short enough
	// to join there before the lease ends.
	doubtAfter = renewEvery + 400*time.Millisecond
	// doubtEvery is how often that is looked at, and asked.
	doubtEvery = 100 * time.Millisecond
)

// doubt returns once another master than the one at addr leads though that one has not
// broken off: a master that is paused, or cut off, says nothing, and the connection to
// it outlives the lease. nil when ctx has ended before.
func (m *member) doubt(ctx context.Context, addr string) error {
	for background.Wait(ctx, doubtEvery) == nil {
		if !m.overdue() {
			continue
		}
		info, err := m.b.cfg.Cluster.Info(ctx)
		if leading := info.GetLeadingMaster(); err == nil && leading != "" && leading != addr {
			return fmt.Errorf("%w: master %s leads now, and this one is silent", smq.ErrUnavailable, leading)
		}
	}
	return nil
}

// overdue reports whether a grant should have come by now.
func (m *member) overdue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b.clock()-m.heard >= doubtAfter
}
