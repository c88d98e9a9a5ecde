package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func (b *fakeBroker) Watch(req *smqpb.WatchRequest, stream grpc.ServerStreamingServer[smqpb.WatchUpdate]) error {
	b.cluster.mu.Lock()
	err, serve := b.lead(), b.cluster.watch
	b.cluster.mu.Unlock()
	if err != nil {
		return err
	}
	if serve == nil {
		return b.UnimplementedLeaderServer.Watch(req, stream)
	}
	return serve(req, func(u *smqpb.WatchUpdate) { _ = stream.Send(u) }, stream.Context().Done())
}

// watched is what a watch was told, in lines.
type watched struct {
	mu    sync.Mutex
	lines []string
}

func (w *watched) add(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *watched) update(u *smqpb.WatchUpdate) {
	var words []string
	if u.GetReset_() {
		words = append(words, "reset")
	}
	for _, topic := range u.GetTopics() {
		words = append(words, topic.GetTopic())
	}
	for _, e := range u.GetEvents() {
		words = append(words, fmt.Sprintf("%s@%d", e.GetTopicId(), e.GetVersion()))
		if e.GetDeleted() {
			words[len(words)-1] += " deleted"
		}
	}
	w.add("%s", strings.Join(words, " "))
}

func (w *watched) lost(err error) {
	kind := "other"
	for _, k := range []error{smq.ErrNotLeader, smq.ErrUnavailable} {
		if errors.Is(err, k) {
			kind = k.Error()
		}
	}
	w.add("lost: %s", kind)
}

func (w *watched) want(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.lines, want) {
		t.Errorf("told\n  %s\nwant\n  %s", strings.Join(w.lines, "\n  "), strings.Join(want, "\n  "))
	}
}

func event(id string, version uint64, ms int64) *smqpb.LayoutEvent {
	return &smqpb.LayoutEvent{TopicId: id, Version: version, CreatedMs: ms}
}

func snapshotOf(ms int64, topics ...string) *smqpb.WatchUpdate {
	u := &smqpb.WatchUpdate{Reset_: true, Complete: true, TimeMs: ms}
	for _, topic := range topics {
		u.Topics = append(u.Topics, &smqpb.TopicStatus{Topic: topic})
	}
	return u
}

// watchCluster runs a test against a fake cluster whose leader serves watches
// by script: the n-th stream is served by the n-th function, later ones by none.
func watchCluster(t *testing.T, brokers int, test func(t *testing.T, f *fakeCluster, c *Client, requests func() []*smqpb.WatchRequest), serve ...func(send func(*smqpb.WatchUpdate), ended <-chan struct{}) error) {
	t.Helper()
	withCluster(t, brokers, 4, func(t *testing.T, f *fakeCluster, c *Client) {
		var mu sync.Mutex
		var asked []*smqpb.WatchRequest
		f.watch = func(req *smqpb.WatchRequest, send func(*smqpb.WatchUpdate), ended <-chan struct{}) error {
			mu.Lock()
			asked = append(asked, req)
			n := len(asked)
			mu.Unlock()
			if n > len(serve) {
				<-ended
				return nil
			}
			return serve[n-1](send, ended)
		}
		test(t, f, c, func() []*smqpb.WatchRequest {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(asked)
		})
	})
}

func startWatch(t *testing.T, c *Client, req *smqpb.WatchRequest) (w *watched, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	w, done := &watched{}, make(chan error, 1)
	go func() { done <- c.Watch(ctx, req, w.update, w.lost) }()
	return w, func() error {
		cancel()
		return <-done
	}
}

func TestWatchSurvivesTheLeader(t *testing.T) {
	watchCluster(t, 2, func(t *testing.T, f *fakeCluster, c *Client, requests func() []*smqpb.WatchRequest) {
		w, stop := startWatch(t, c, &smqpb.WatchRequest{Topics: true, Events: true, EventsSinceMs: 1000})
		synctest.Wait()
		w.want(t, "reset a b", "x@7", "x@8")
		f.brokers[0].kill()
		pass(10 * time.Second)
		synctest.Wait()
		// Told once of the loss; the next leader repeats an event and has another.
		w.want(t, "reset a b", "x@7", "x@8", "lost: unavailable", "reset a", "x@9 y@1")
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		asked := requests()
		if len(asked) != 2 || asked[0].EventsSinceMs != 1000 || !asked[1].Topics || !asked[1].Events {
			t.Fatalf("asked %v", asked)
		}
		// From a margin before what was heard last on, by the leader's clock.
		if got, want := asked[1].EventsSinceMs, int64(500_000)-eventMargin.Milliseconds(); got != want {
			t.Errorf("asked for events since %d, want %d", got, want)
		}
	}, func(send func(*smqpb.WatchUpdate), ended <-chan struct{}) error {
		send(snapshotOf(400_000, "a", "b"))
		send(&smqpb.WatchUpdate{TimeMs: 450_000, Events: []*smqpb.LayoutEvent{event("x", 7, 1)}})
		send(&smqpb.WatchUpdate{TimeMs: 500_000, Events: []*smqpb.LayoutEvent{event("x", 8, 1)}})
		<-ended
		return nil
	}, func(send func(*smqpb.WatchUpdate), ended <-chan struct{}) error {
		send(snapshotOf(500_900, "a"))
		send(&smqpb.WatchUpdate{TimeMs: 500_901, Events: []*smqpb.LayoutEvent{event("x", 8, 1), event("x", 9, 1), event("y", 1, 1)}})
		<-ended
		return nil
	})
}

// A deposed leader names its successor, or ends the stream without a word.
func TestWatchFollowsADeposedLeader(t *testing.T) {
	watchCluster(t, 2, func(t *testing.T, f *fakeCluster, c *Client, requests func() []*smqpb.WatchRequest) {
		w, stop := startWatch(t, c, &smqpb.WatchRequest{Topics: true, Events: true})
		pass(5 * time.Second)
		synctest.Wait()
		w.want(t, "reset a", "lost: not the leader", "reset b", "lost: unavailable", "reset c")
		stop()
		// Only new events were asked for: none from before the watch.
		if asked := requests(); len(asked) != 3 || asked[0].EventsSinceMs != 0 || asked[1].EventsSinceMs != 1000 || asked[2].EventsSinceMs != 1000 {
			t.Errorf("asked %v", asked)
		}
	}, func(send func(*smqpb.WatchUpdate), _ <-chan struct{}) error {
		send(snapshotOf(1000, "a"))
		return &rpc.NotLeaderError{}
	}, func(send func(*smqpb.WatchUpdate), _ <-chan struct{}) error {
		send(snapshotOf(2000, "b"))
		return nil
	}, func(send func(*smqpb.WatchUpdate), ended <-chan struct{}) error {
		send(snapshotOf(3000, "c"))
		<-ended
		return nil
	})
}

func TestWatchEndsWithErrorsThatStay(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		w := &watched{}
		if err := c.Watch(t.Context(), &smqpb.WatchRequest{}, w.update, w.lost); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("a leader without the call: %v", err)
		}
		w.want(t)
	})
	watchCluster(t, 1, func(t *testing.T, f *fakeCluster, c *Client, _ func() []*smqpb.WatchRequest) {
		w := &watched{}
		if err := c.Watch(t.Context(), &smqpb.WatchRequest{}, w.update, w.lost); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("after an update: %v", err)
		}
		w.want(t, "reset a")
	}, func(send func(*smqpb.WatchUpdate), _ <-chan struct{}) error {
		send(snapshotOf(1, "a"))
		return smq.ErrInvalid
	})
}

func TestWatchEndsWithItsClient(t *testing.T) {
	watchCluster(t, 1, func(t *testing.T, f *fakeCluster, c *Client, _ func() []*smqpb.WatchRequest) {
		done := make(chan error, 1)
		w := &watched{}
		go func() { done <- c.Watch(t.Context(), &smqpb.WatchRequest{}, w.update, w.lost) }()
		synctest.Wait()
		c.Close()
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("ended with %v", err)
		}
		w.want(t, "reset a")
	}, func(send func(*smqpb.WatchUpdate), ended <-chan struct{}) error {
		send(snapshotOf(1, "a"))
		<-ended
		return nil
	})
}

// A topic's events go on in a later incarnation, whose versions begin anew.
func TestWatchTellsEventsOnce(t *testing.T) {
	var s seenEvents
	w := &watched{}
	tell := func(ms int64, reset bool, events ...*smqpb.LayoutEvent) {
		u := &smqpb.WatchUpdate{TimeMs: ms, Reset_: reset, Events: events}
		s.filter(u)
		w.update(u)
	}
	gone := &smqpb.LayoutEvent{TopicId: "x", Deleted: true, CreatedMs: 3}
	tell(10, true, event("x", 1, 1), event("x", 2, 2), event("x", 2, 2))
	tell(20, false, event("x", 1, 1), gone, gone, event("x", 3, 3), event("y", 1, 4))
	w.want(t, "reset x@1 x@2", "x@0 deleted y@1")
	tell(20+3*eventMargin.Milliseconds(), true)
	if len(s.topics) != 1 {
		t.Errorf("remembers %v", s.topics)
	}
}

func TestSnapshot(t *testing.T) {
	watchCluster(t, 1, func(t *testing.T, f *fakeCluster, c *Client, _ func() []*smqpb.WatchRequest) {
		got, err := c.Snapshot(t.Context(), &smqpb.WatchRequest{Topics: true})
		if err != nil || !got.Complete || got.TimeMs != 3 {
			t.Fatalf("%v, %v", got, err)
		}
		w := &watched{}
		w.update(got)
		w.want(t, "reset b c x@1") // of the first, half one nothing but the event
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Snapshot(ctx, &smqpb.WatchRequest{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, smq.ErrNotLeader) {
			t.Errorf("no snapshot: %v", err)
		}
	}, func(send func(*smqpb.WatchUpdate), _ <-chan struct{}) error {
		u := snapshotOf(1, "a")
		u.Complete, u.Events = false, []*smqpb.LayoutEvent{event("x", 1, 1)}
		send(u)
		return nil
	}, func(send func(*smqpb.WatchUpdate), ended <-chan struct{}) error {
		u := snapshotOf(2, "b")
		u.Complete = false
		send(u)
		send(&smqpb.WatchUpdate{Complete: true, TimeMs: 3, Topics: []*smqpb.TopicStatus{{Topic: "c"}}})
		send(&smqpb.WatchUpdate{TimeMs: 4, Topics: []*smqpb.TopicStatus{{Topic: "d"}}})
		<-ended
		return nil
	}, func(func(*smqpb.WatchUpdate), <-chan struct{}) error {
		return &rpc.NotLeaderError{}
	})
}
