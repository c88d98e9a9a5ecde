package leader

import (
	"sync"
	"sync/atomic"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// keptEvents is how many of the latest events are kept.
const keptEvents = 10_000

// hub tells watchers that something has changed, not what: each change of a topic
// or of its loads gets the next revision, which the topic (or its traffic) is
// marked with, and a watcher looks for what is marked with a later one than it
// has seen. So a slow watcher costs nothing, and gets the newest state at once.
// Only events are kept one by one, the latest of them.
//
// What a revision stands for is there before the revision is: a watcher that
// reads a revision, and then what is marked, misses nothing up to it.
type hub struct {
	mu      sync.Mutex
	rev     uint64        // the latest
	changed chan struct{} // closed at the next change that is told at once
	closed  bool
	events  []*smqpb.LayoutEvent // a ring, once it is full
	first   int                  // the oldest event's place in it
	count   uint64               // of all events
}

func newHub() *hub { return &hub{changed: make(chan struct{})} }

// touch notes that the loads of a topic have changed; watchers find out when they
// look next.
func (h *hub) touch(tr *traffic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rev++
	tr.rev.Store(h.rev)
}

// publish notes that the topic has changed (t may be nil: it is gone), and keeps
// the event, if there is one. Watchers look at once.
func (h *hub) publish(t *topic, e *smqpb.LayoutEvent) {
	var rev *atomic.Uint64
	if t != nil {
		rev = &t.rev
	}
	h.mark(rev, e)
}

// mark is publish for whatever is marked with the revision rev, which may be nil.
func (h *hub) mark(rev *atomic.Uint64, e *smqpb.LayoutEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rev++
	if rev != nil {
		rev.Store(h.rev)
	}
	if e != nil {
		h.keep(e)
	}
	if !h.closed {
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

func (h *hub) keep(e *smqpb.LayoutEvent) {
	h.count++
	if len(h.events) < keptEvents {
		h.events = append(h.events, e)
		return
	}
	h.events[h.first] = e
	h.first = (h.first + 1) % keptEvents
}

// close has watchers look, and end: nobody leads any more.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.changed)
	}
}

// now is the latest revision, what is closed at the next change, and whether the
// hub is closed.
func (h *hub) now() (rev uint64, changed <-chan struct{}, closed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rev, h.changed, h.closed
}

// since returns the events behind the first seen ones, as far as they are kept,
// and how many there have been.
func (h *hub) since(seen uint64) (events []*smqpb.LayoutEvent, count uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := len(h.events)
	n := int(min(h.count-seen, uint64(kept)))
	for i := kept - n; i < kept; i++ {
		events = append(events, h.events[(h.first+i)%kept])
	}
	return events, h.count
}

// eventOf tells of a layout version.
func eventOf(topic smq.Topic, id smq.TopicID, l layout.Layout) *smqpb.LayoutEvent {
	all := layout.ToProto(l)
	e := &smqpb.LayoutEvent{
		Topic: topic.String(), TopicId: string(id), Version: l.Version, Cause: string(l.Cause), CreatedMs: l.Stamp.NowMS,
		Sealed: all.Sealed, Reason: l.Reason, Loads: all.Loads, PauseMs: l.PauseMS, Leader: string(l.Stamp.Leader), Segments: int32(len(l.Segments)),
	}
	// Successors tile exactly what was sealed.
	sealed := l.Sealed
	for i, s := range l.Segments {
		for len(sealed) > 0 && sealed[0].Range.Hi <= s.Range.Lo {
			sealed = sealed[1:]
		}
		if len(sealed) > 0 && sealed[0].Range.Overlaps(s.Range) || l.Cause == layout.Create {
			e.Opened = append(e.Opened, all.Segments[i])
		}
	}
	return e
}
