package leader_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// events are those of a whole snapshot of them.
func (b *bed) events(req *smqpb.WatchRequest) []*smqpb.LayoutEvent {
	b.t.Helper()
	req.Events = true
	w := b.watch(req)
	defer w.stop()
	var all []*smqpb.LayoutEvent
	for _, u := range w.snapshot(b.t) {
		all = append(all, u.GetEvents()...)
	}
	w.quiet(b.t)
	return all
}

func wantVersions(t *testing.T, what string, events []*smqpb.LayoutEvent, topic string, from, to uint64) {
	t.Helper()
	if uint64(len(events)) != to-from+1 {
		t.Fatalf("%s: %d events, want versions %d to %d", what, len(events), from, to)
	}
	for i, e := range events {
		if e.GetTopic() != topic || e.GetVersion() != from+uint64(i) {
			t.Errorf("%s: event %d is version %d of %s", what, i, e.GetVersion(), e.GetTopic())
		}
	}
}

// A leader that has just begun tells of what came to pass under others, in order, and
// goes on with what it does itself.
func TestEventsOfEarlierLeaders(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		b.create("ns/t", 128)
		b.publish("ns/t", 1, "one")
		at := []int64{0, 0}
		change := func() {
			b.t.Helper()
			<-time.After(time.Minute)
			at = append(at, time.Now().UnixMilli())
			s := b.lookup("ns/t", 0).GetLayout().GetSegments()[0]
			if err := b.splitAt("ns/t", s.GetId(), s.GetHi()-1); err != nil {
				b.t.Fatal(err)
			}
		}
		for range 70 { // more than are read at once
			change()
		}
		b.lead(b.st.Handle())
		b.create("other/u", 8)
		wantVersions(b.t, "all", b.events(&smqpb.WatchRequest{Namespace: "ns", EventsSinceMs: 1}), "ns/t", 1, 72)
		wantVersions(b.t, "some", b.events(&smqpb.WatchRequest{Namespace: "ns", EventsSinceMs: at[60]}), "ns/t", 61, 72)
		wantVersions(b.t, "none", b.events(&smqpb.WatchRequest{Namespace: "ns", EventsSinceMs: time.Now().UnixMilli()}), "ns/t", 73, 72)

		w := b.watch(&smqpb.WatchRequest{Events: true, Namespace: "ns", EventsSinceMs: at[71]})
		defer w.stop()
		wantVersions(b.t, "begun", w.snapshot(b.t)[0].GetEvents(), "ns/t", 72, 72)
		change()
		wantVersions(b.t, "gone on", w.next(b.t).GetEvents(), "ns/t", 73, 73)
		wantVersions(b.t, "of both", b.events(&smqpb.WatchRequest{Namespace: "ns", EventsSinceMs: at[70]}), "ns/t", 71, 73)
		b.spoil(fmt.Sprintf("/topics/ns/t/%s/layout/%020d.json", b.lookup("ns/t", 0).GetConfig().GetTopicId(), 71))
		if got := b.events(&smqpb.WatchRequest{Namespace: "ns", EventsSinceMs: 1}); len(got) != 72 || got[69].GetVersion() != 70 || got[70].GetVersion() != 72 {
			b.t.Errorf("with a damaged version: %d events", len(got))
		}
	})
}

// reads counts reads of layout versions.
type reads struct {
	store.Store
	n *atomic.Int64
}

func (r reads) Read(ctx context.Context, path string) ([]byte, store.Version, error) {
	if strings.Contains(path, "/layout/") {
		r.n.Add(1)
	}
	return r.Store.Read(ctx, path)
}

// Of many events the newest are told, whatever topics they are of, and no others are
// looked for.
func TestEventsOfEarlierLeadersAreBounded(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		const topics, most = 1100, 1000
		name := func(i int) string { return fmt.Sprintf("t%04d", i) }
		for i := range topics {
			b.create(name(i), 8)
		}
		<-time.After(time.Minute)
		for i := range topics {
			b.publish(name(i), 1, "one")
			<-time.After(time.Millisecond)
		}
		counted := reads{b.st.Handle(), new(atomic.Int64)}
		b.lead(counted)
		synctest.Wait() // until its sweep is over
		counted.n.Store(0)
		got := b.events(&smqpb.WatchRequest{EventsSinceMs: 1})
		if n := counted.n.Load(); len(got) != most || n > most {
			b.t.Fatalf("%d events, %d reads", len(got), n)
		}
		for i, e := range got {
			if e.GetTopic() != name(i+topics-most) || e.GetVersion() != 2 {
				b.t.Fatalf("event %d is version %d of %s", i, e.GetVersion(), e.GetTopic())
			}
		}
	})
}

// What comes to pass while somebody watches is told, whatever the time is where the
// caller is: it may be later there than at the leader.
func TestEventsOfTheLeaderDoNotDependOnClocks(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("before", 8)
		w := b.watch(&smqpb.WatchRequest{Events: true, EventsSinceMs: time.Now().Add(time.Hour).UnixMilli()})
		defer w.stop()
		if got := w.snapshot(b.t)[0].GetEvents(); len(got) > 0 {
			b.t.Errorf("of before: %v", got)
		}
		b.create("t", 8)
		wantVersions(b.t, "created", w.next(b.t).GetEvents(), "t", 1, 1)
		if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t"}); err != nil {
			b.t.Fatal(err)
		}
		if got := w.next(b.t).GetEvents(); len(got) != 1 || !got[0].GetDeleted() {
			b.t.Errorf("deleted: %v", got)
		}
	})
}
