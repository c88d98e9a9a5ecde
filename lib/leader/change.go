package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// writeTimeout bounds the writing of one layout version.
const writeTimeout = 10 * time.Second

// change replaces one live segment, whose seal has been read, by another of the
// same range.
type change struct {
	cause  layout.Cause
	sealed layout.Sealed
	owner  wish
	done   chan error
}

// submit queues the change and waits for its outcome. A segment that is no
// longer live is a success: somebody else has replaced it. When ctx ends first
// the change goes on.
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
		return fmt.Errorf("topic %v: %w", t.Topic, smq.ErrNotFound)
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
	for {
		if err := l.leading(); err != nil {
			return err
		}
		now := t.layout()
		c := l.plan(now, t.ReplicasWanted(), batch)
		if len(c.Sealed) == 0 {
			return nil
		}
		next, err := now.Next(c, l.stamp())
		if err != nil {
			return err
		}
		err = catalog.WriteVersion(ctx, l.Store, t.Topic, t.ID, next)
		if err == nil {
			t.adopt(next)
			l.Metrics.versions.WithLabelValues(string(next.Cause)).Inc()
			l.Logger.Info("layout changed", "topic", t.Topic.String(), "version", next.Version, "cause", next.Cause, "replaced", len(c.Sealed))
			return nil
		}
		if !errors.Is(err, smq.ErrConflict) {
			return err
		}
		if err := l.reload(ctx, t); err != nil {
			return err
		}
	}
}

// plan makes one change of those that are still to be made in the layout, and
// settles those for which there is no owner.
func (l *Leader) plan(now layout.Layout, replicas int, batch []*change) layout.Change {
	next := layout.Change{Cause: batch[0].cause}
	planned := make(map[smq.SegmentID]bool, len(batch))
	for _, c := range batch {
		if _, live := now.Get(c.sealed.Segment); !live || planned[c.sealed.Segment] {
			continue
		}
		owner, followers, err := l.view.choose(c.owner, replicas)
		if err != nil {
			c.settle(err)
			continue
		}
		planned[c.sealed.Segment] = true
		next.Sealed = append(next.Sealed, c.sealed)
		next.Successors = append(next.Successors, layout.Successor{Range: c.sealed.Range, Owner: owner, Followers: followers})
	}
	return next
}
