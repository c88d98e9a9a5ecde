package leader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// writeTimeout bounds the writing of one layout version.
const writeTimeout = 10 * time.Second

// change replaces live segments, whose seals have been read, by successors over
// the same partitions.
type change struct {
	cause      layout.Cause
	reason     string
	sealed     []layout.Sealed
	successors []successor
	loads      []layout.SegmentLoad // of the segments to replace; see layout.Layout
	// stopped is when publishers were first kept from one of the segments; zero
	// when there was nothing to seal.
	stopped time.Time
	done    chan error
}

// successor is a segment to come.
type successor struct {
	smq.Range
	owner wish
}

// plain is the change that gives a segment's range to one successor.
func (r replacement) plain(sealed layout.Sealed, loads []layout.SegmentLoad, stopped time.Time) *change {
	if sealed.Empty {
		stopped = time.Time{}
	}
	return &change{
		cause: r.cause, reason: r.reason, sealed: []layout.Sealed{sealed}, loads: loads, stopped: stopped,
		successors: []successor{{sealed.Range, r.owner}},
	}
}

// submit queues the change and waits for its outcome. When a segment is no longer
// live, somebody else has replaced it: that is a success for a plain change, and
// an smq.ErrConflict for any other, which has not happened then. When ctx ends
// first the change goes on.
func (l *Leader) submit(ctx context.Context, t *topic, c *change) error {
	c.done = make(chan error, 1)
	if err := l.enqueue(t, c); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("change the layout of topic %v: %w: %w", t.Topic, smq.ErrTimeout, ctx.Err())
	}
}

func (l *Leader) enqueue(t *topic, c *change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted {
		return t.gone()
	}
	t.queue = append(t.queue, c)
	select {
	case <-t.idle:
		t.idle = make(chan struct{})
		go l.drainQueue(t)
	default: // the goroutine that runs takes it
	}
	return nil
}

// drainQueue writes what has queued until there is nothing.
func (l *Leader) drainQueue(t *topic) {
	for {
		batch := t.take()
		if batch == nil {
			return
		}
		err := l.tasks.Run(func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			return l.write(ctx, t, batch)
		})
		for _, c := range batch {
			c.settle(ended(err))
		}
	}
}

// take removes from the queue everything that has the cause of the first: one
// version bears one cause. nil: the queue is empty, and idle.
func (t *topic) take() []*change {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		close(t.idle)
		return nil
	}
	var batch, rest []*change
	for _, c := range t.queue {
		if c.cause == t.queue[0].cause {
			batch = append(batch, c)
		} else {
			rest = append(rest, c)
		}
	}
	t.queue = rest
	return batch
}

// settle tells the outcome, unless it has been told.
func (c *change) settle(err error) {
	select {
	case c.done <- err:
	default:
	}
}

// write writes one version with the changes. When somebody else has been faster
// it starts over from theirs.
func (l *Leader) write(ctx context.Context, t *topic, batch []*change) error {
	var wait background.Backoff // their version may not be seen yet, as at a filer that has just joined others
	for {
		if err := l.leading(); err != nil {
			return err
		}
		now := t.layout()
		c := l.plan(t, now, batch)
		if len(c.Sealed) == 0 {
			return nil
		}
		next, err := now.Next(c, l.stamp())
		if err != nil {
			return err
		}
		err = catalog.WriteVersion(ctx, l.Store, t.Topic, t.ID, next)
		if err == nil {
			l.adopt(t, next)
			l.Metrics.versions.WithLabelValues(string(next.Cause)).Inc()
			if next.PauseMS > 0 {
				l.Metrics.pauseSeconds.WithLabelValues(string(next.Cause)).Observe(float64(next.PauseMS) / 1000)
			}
			l.Logger.Info("layout changed", "topic", t.Topic.String(), "version", next.Version, "cause", next.Cause, "reason", next.Reason,
				"replaced", len(c.Sealed), "by", len(c.Successors), "pause_ms", next.PauseMS)
			return nil
		}
		if !errors.Is(err, smq.ErrConflict) {
			return err
		}
		if err := l.reload(ctx, t); err != nil {
			return err
		}
		if wait.Next(ctx) != nil {
			return fmt.Errorf("%w: %v", smq.ErrTimeout, err)
		}
	}
}

// plan makes one change of those that are still to be made in the layout, and
// settles the others.
func (l *Leader) plan(t *topic, now layout.Layout, batch []*change) layout.Change {
	next := layout.Change{Cause: batch[0].cause}
	planned := make(map[smq.SegmentID]bool, len(batch))
	var reasons []string
	moment := time.Now()
	for _, c := range batch {
		if c.isOutdated(now, planned) {
			c.settle(c.missed())
			continue
		}
		successors, err := l.appoint(t, c)
		if err != nil {
			c.settle(err)
			continue
		}
		for _, s := range c.sealed {
			planned[s.Segment] = true
		}
		next.Sealed = append(next.Sealed, c.sealed...)
		next.Successors = append(next.Successors, successors...)
		next.Loads = append(next.Loads, c.loads...)
		if c.reason != "" && !slices.Contains(reasons, c.reason) {
			reasons = append(reasons, c.reason)
		}
		if !c.stopped.IsZero() {
			next.PauseMS = max(next.PauseMS, moment.Sub(c.stopped).Milliseconds())
		}
	}
	next.Reason = joinReasons(reasons)
	return next
}

// isOutdated reports whether a segment that the change replaces has been replaced
// before; planned are those which another change of the same version takes out.
func (c *change) isOutdated(now layout.Layout, planned map[smq.SegmentID]bool) bool {
	return slices.ContainsFunc(c.sealed, func(s layout.Sealed) bool {
		_, live := now.Get(s.Segment)
		return !live || planned[s.Segment]
	})
}

// missed is the outcome of an outdated change. When a plain one comes too late,
// nothing is left to do.
func (c *change) missed() error {
	if len(c.sealed) == 1 && len(c.successors) == 1 {
		return nil
	}
	return errReplaced
}

var errReplaced = fmt.Errorf("a segment has been replaced meanwhile: %w", smq.ErrConflict)

// appoint chooses owners and followers for the successors.
func (l *Leader) appoint(t *topic, c *change) ([]layout.Successor, error) {
	replicas := t.config().ReplicasWanted(l.Replicas)
	all := make([]layout.Successor, len(c.successors))
	for i, s := range c.successors {
		s.owner.load = t.traffic.expect(s.Range, c.sealed)
		owner, followers, err := l.view.choose(s.owner, replicas)
		if err != nil {
			return nil, err
		}
		all[i] = layout.Successor{Range: s.Range, Owner: owner, Followers: followers}
	}
	return all, nil
}

// maxReasons bounds the reasons that one version tells.
const maxReasons = 5

func joinReasons(reasons []string) string {
	if n := len(reasons); n > maxReasons {
		reasons = append(slices.Clone(reasons[:maxReasons]), fmt.Sprintf("%d more", n-maxReasons))
	}
	return strings.Join(reasons, "; ")
}
