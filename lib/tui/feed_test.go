package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// received is what a feed has sent, with the times.
type received struct {
	mu    sync.Mutex
	lines []string
	times []time.Time
	ticks int
	hold  chan struct{} // when set, each message waits for it
}

func (r *received) send(msg tea.Msg) {
	if r.hold != nil {
		<-r.hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch msg := msg.(type) {
	case tickMsg:
		r.ticks++
	case faultMsg:
		r.lines = append(r.lines, "fault: "+msg.err.Error())
	case updatesMsg:
		line := fmt.Sprintf("%s%d", msg.topic, len(msg.updates))
		if msg.lost != nil {
			line += " lost"
		}
		if msg.ended != nil {
			line += " ended"
		}
		r.lines = append(r.lines, line)
		r.times = append(r.times, time.Now())
	}
}

func (r *received) want(t *testing.T, want string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Join(r.lines, ", "); got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}

// withFeed runs a test with a feed over a fake backend, in a bubble.
func withFeed(t *testing.T, test func(ctx context.Context, f *feed, b *fake, r *received)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b, r := newFake(), &received{}
		f := &feed{backend: b, send: r.send}
		defer f.wait()
		defer cancel()
		f.start(ctx)
		synctest.Wait()
		test(ctx, f, b, r)
	})
}

var anUpdate = told{update: &smqpb.WatchUpdate{}}

func TestFeedMergesUpdates(t *testing.T) {
	withFeed(t, func(_ context.Context, _ *feed, b *fake, r *received) {
		req := b.watches[""].req
		if !req.Brokers || !req.Topics || !req.Events || req.Topic != "" || time.Since(time.UnixMilli(req.EventsSinceMs)) != eventsBack {
			t.Errorf("asked for %v", req)
		}
		for range 1000 { // one every 3 ms
			b.watches[""].tell <- anUpdate
			time.Sleep(3 * time.Millisecond)
		}
		time.Sleep(restTime)
		synctest.Wait()
		if n := len(r.times); n > 32 || n < 28 {
			t.Errorf("%d messages in three seconds", n)
		}
		for i := 1; i < len(r.times); i++ {
			if gap := r.times[i].Sub(r.times[i-1]); gap < restTime {
				t.Errorf("two messages within %v", gap)
			}
		}
		if r.ticks != 3 {
			t.Errorf("%d ticks in three seconds", r.ticks)
		}
	})
}

func TestFeedTellsOfLosses(t *testing.T) {
	withFeed(t, func(_ context.Context, _ *feed, b *fake, r *received) {
		w := b.watches[""]
		w.tell <- anUpdate
		synctest.Wait()
		w.tell <- anUpdate
		w.tell <- told{lost: errors.New("gone")}
		time.Sleep(restTime)
		synctest.Wait()
		w.tell <- told{lost: errors.New("gone")}
		w.tell <- anUpdate // within the rest: it is found again
		time.Sleep(restTime)
		synctest.Wait()
		w.tell <- told{ended: errors.New("no such call")}
		time.Sleep(restTime)
		synctest.Wait()
		r.want(t, "1, 1 lost, 1, 0 ended")
	})
}

// A console that does not come to draw makes the backend wait.
func TestFeedIsBounded(t *testing.T) {
	withFeed(t, func(ctx context.Context, _ *feed, b *fake, r *received) {
		r.hold = make(chan struct{})
		sent := 0
		for full := false; !full; {
			select {
			case b.watches[""].tell <- anUpdate:
				sent++
				synctest.Wait()
			default:
				full = true
			}
		}
		if sent > 2*gathered+2 {
			t.Errorf("%d updates wait", sent)
		}
		close(r.hold)
	})
}

func TestFeedLooksAtOneTopic(t *testing.T) {
	withFeed(t, func(ctx context.Context, f *feed, b *fake, r *received) {
		f.look(ctx, "a")
		synctest.Wait()
		if req := b.watches["a"].req; req.Topics || req.Brokers || req.Events || req.Topic != "a" {
			t.Errorf("asked for %v", req)
		}
		b.watches["a"].tell <- anUpdate
		synctest.Wait()
		f.look(ctx, "b")
		synctest.Wait()
		select {
		case b.watches["a"].tell <- anUpdate:
			t.Error("the watch of the first topic goes on")
		default:
		}
		b.watches["b"].tell <- anUpdate
		synctest.Wait()
		f.look(ctx, "")
		synctest.Wait()
		r.want(t, "a1, b1")
	})
}

// brokenBackend panics in its watch.
type brokenBackend struct{ *fake }

func (brokenBackend) Watch(context.Context, *smqpb.WatchRequest, func(*smqpb.WatchUpdate), func(error)) error {
	panic("broken")
}

func TestFeedSurvivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &received{}
		f := &feed{backend: brokenBackend{}, send: r.send}
		f.start(ctx)
		synctest.Wait()
		r.want(t, "fault: the console failed: broken")
		cancel()
		f.wait()
	})
}
