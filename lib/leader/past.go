package leader

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// pastEvents is how many events of before are told of at most, the newest.
	pastEvents = 1000
	// firstPage and lastPage are how many versions of a topic are read at once: few at
	// first, twice as many each time.
	firstPage, lastPage = 2, 64
	// pastWait bounds how long they are read; what has not come by then is left out.
	pastWait = 5 * time.Second
	// lookAgain is how often it is looked whether a new leader has seen all topics.
	lookAgain = 50 * time.Millisecond
)

// walk goes back through the layout versions of a topic.
type walk struct {
	topic *topic
	next  uint64 // the version to read next; 0: there is none
	page  uint64 // how many to read
	atMS  int64  // when the oldest version that is read was written
}

// readPast returns events since a time that layout versions tell of, whoever led when they
// were written, oldest first; those of deleted topics are gone with them. The newest
// pastEvents of each round decide how far back the next one has to go, so that little
// is read that is not told.
func (l *Leader) readPast(ctx context.Context, sinceMS int64, asksFor func(namespace string) bool) []*smqpb.LayoutEvent {
	ctx, cancel := context.WithTimeout(ctx, pastWait)
	defer cancel()
	var events []*smqpb.LayoutEvent
	var walks []*walk
	for _, t := range l.snapshot() {
		lay := t.layout()
		if asksFor(t.Topic.Namespace) && lay.Stamp.NowMS >= sinceMS {
			events = append(events, eventOf(t.Topic, t.ID, lay))
			walks = append(walks, &walk{topic: t, next: lay.Version - 1, page: firstPage, atMS: lay.Stamp.NowMS})
		}
	}
	for {
		events, sinceMS = newest(events, sinceMS)
		walks = slices.DeleteFunc(walks, func(w *walk) bool { return w.next == 0 || w.atMS < sinceMS })
		if len(walks) == 0 {
			return events
		}
		pages := make([][]layout.Layout, len(walks))
		_ = each(ctx, walks, func(ctx context.Context, i int, w *walk) error {
			pages[i] = l.back(ctx, w, sinceMS)
			return nil
		})
		for i, page := range pages {
			for _, v := range page {
				events = append(events, eventOf(walks[i].topic.Topic, walks[i].topic.ID, v))
			}
		}
	}
}

// newest puts the events in order and leaves the newest pastEvents, and says from when
// on older ones are still wanted.
func newest(events []*smqpb.LayoutEvent, sinceMS int64) ([]*smqpb.LayoutEvent, int64) {
	slices.SortFunc(events, func(a, b *smqpb.LayoutEvent) int {
		return cmp.Or(cmp.Compare(a.GetCreatedMs(), b.GetCreatedMs()), cmp.Compare(a.GetTopicId(), b.GetTopicId()), cmp.Compare(a.GetVersion(), b.GetVersion()))
	})
	if len(events) < pastEvents {
		return events, sinceMS
	}
	events = events[len(events)-pastEvents:]
	return events, max(sinceMS, events[0].GetCreatedMs())
}

// back reads the next page of a walk. The walk ends where the store does not give any
// more.
func (l *Leader) back(ctx context.Context, w *walk, sinceMS int64) []layout.Layout {
	n := min(w.next, w.page)
	page, err := catalog.ReadVersions(ctx, l.Store, w.topic.Topic, w.topic.ID, w.next-n+1, int(n))
	w.next -= n
	w.page = min(2*w.page, lastPage)
	if err != nil {
		l.Logger.Debug("older events of a topic are left out", "topic", w.topic.Topic.String(), "err", err)
		w.next = 0
		return nil
	}
	for _, v := range page.Versions {
		w.atMS = min(w.atMS, v.Stamp.NowMS)
	}
	return slices.DeleteFunc(page.Versions, func(v layout.Layout) bool { return v.Stamp.NowMS < sinceMS })
}

// past is what a watcher is told of before it came.
type past struct {
	events []*smqpb.LayoutEvent
	count  uint64 // of all that the leader has had by then
}

// past returns the events that a watcher asks for from before it came: those that
// layout versions tell of, once this leader has looked at all topics, and those that
// the leader remembers.
func (w *watcher) past(ctx context.Context) past {
	for !w.l.swept.Load() && time.Since(w.begun) < sweepWait {
		if background.Wait(ctx, lookAgain) != nil {
			return past{}
		}
	}
	events := w.l.readPast(ctx, w.req.GetEventsSinceMs(), w.asksFor)
	kept, count := w.l.hub.since(0)
	return past{inOrder(append(events, w.wanted(kept, count)...)), count}
}

// inOrder puts events in order of time, a topic's in that of their versions whatever
// the clocks of its leaders said, and leaves out what is there twice.
func inOrder(events []*smqpb.LayoutEvent) []*smqpb.LayoutEvent {
	slices.SortStableFunc(events, func(a, b *smqpb.LayoutEvent) int {
		return cmp.Or(cmp.Compare(a.GetTopicId(), b.GetTopicId()), cmp.Compare(rank(a), rank(b)))
	})
	events = slices.CompactFunc(events, func(a, b *smqpb.LayoutEvent) bool {
		return a.GetTopicId() == b.GetTopicId() && rank(a) == rank(b)
	})
	at := make(map[*smqpb.LayoutEvent]int64, len(events))
	for i, e := range events {
		at[e] = e.GetCreatedMs()
		if i > 0 && events[i-1].GetTopicId() == e.GetTopicId() {
			at[e] = max(at[e], at[events[i-1]])
		}
	}
	slices.SortStableFunc(events, func(a, b *smqpb.LayoutEvent) int { return cmp.Compare(at[a], at[b]) })
	return events
}

// rank is an event's place among those of its topic: the deletion is the last.
func rank(e *smqpb.LayoutEvent) uint64 {
	if e.GetDeleted() {
		return math.MaxUint64
	}
	return e.GetVersion()
}
