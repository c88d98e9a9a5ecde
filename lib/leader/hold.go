package leader

import (
	"context"
	"fmt"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// hold is one effort to replace a live segment. There is at most one for a
// segment at a time, so that what one leader does to it never crosses itself: a
// client that meets a segment sealed in the middle of a split waits for the
// split.
type hold struct{ done chan struct{} }

// await takes hold of the segment, as soon as nobody else has. smq.ErrNotFound
// when the topic is deleted.
func (t *topic) await(ctx context.Context, id smq.SegmentID) (release func(), err error) {
	for {
		h, mine, err := t.tryHold(id)
		if err != nil {
			return nil, err
		}
		if mine {
			return func() { t.release(id, h) }, nil
		}
		select {
		case <-h.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("replace segment %d: another change of it is under way: %w: %w", id, smq.ErrTimeout, ctx.Err())
		}
	}
}

// tryHold takes hold of the segment, or returns who has.
func (t *topic) tryHold(id smq.SegmentID) (h *hold, mine bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted {
		return nil, false, t.gone()
	}
	if h := t.held[id]; h != nil {
		return h, false, nil
	}
	h = &hold{done: make(chan struct{})}
	t.held[id] = h
	return h, true, nil
}

// isHeld reports whether the segment is being replaced.
func (t *topic) isHeld(id smq.SegmentID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[id] != nil
}

// gone is what is said of a deleted topic.
func (t *topic) gone() error { return fmt.Errorf("topic %v: %w", t.Topic, smq.ErrNotFound) }

// release lets go of the segment. To repeat it does nothing.
func (t *topic) release(id smq.SegmentID, h *hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[id] == h {
		delete(t.held, id)
		close(h.done)
	}
}

// holdAll takes hold of all the segments at once, or of none: smq.ErrConflict
// when one of them is being changed or no longer live.
func (t *topic) holdAll(segments []layout.Segment) (release []func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted {
		return nil, t.gone()
	}
	for _, s := range segments {
		if t.held[s.ID] != nil {
			return nil, fmt.Errorf("segment %d is being changed: %w", s.ID, smq.ErrConflict)
		}
		if _, live := t.latest.Get(s.ID); !live {
			return nil, fmt.Errorf("segment %d has been replaced: %w", s.ID, smq.ErrConflict)
		}
	}
	for _, s := range segments {
		h := &hold{done: make(chan struct{})}
		t.held[s.ID] = h
		release = append(release, func() { t.release(s.ID, h) })
	}
	return release, nil
}
