package tui

import (
	"context"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// restTime is how long a watch's updates gather before they are shown: ten
	// times a second is as often as people see.
	restTime = 100 * time.Millisecond
	// gathered bounds the updates that wait. The backend waits when there are
	// more, and the leader merges what it has not sent.
	gathered = 64
	// eventsBack is how far back the feed of events begins.
	eventsBack = time.Hour
)

// feed carries what the backend tells to the model, and the time.
type feed struct {
	backend Backend
	send    func(tea.Msg)

	running  sync.WaitGroup
	stopLook context.CancelFunc // of the watch of a topic; nil: there is none
}

// start begins to watch the cluster, and to tell the time.
func (f *feed) start(ctx context.Context) {
	req := &smqpb.WatchRequest{Brokers: true, Topics: true, Events: true, EventsSinceMs: time.Now().Add(-eventsBack).UnixMilli()}
	f.watch(ctx, "", req)
	f.running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f.send(tickMsg{})
			case <-ctx.Done():
				return
			}
		}
	})
}

// look watches a topic in place of the one before; "": none.
func (f *feed) look(ctx context.Context, topic string) {
	if f.stopLook != nil {
		f.stopLook()
		f.stopLook = nil
	}
	if topic != "" {
		ctx, f.stopLook = context.WithCancel(ctx)
		f.watch(ctx, topic, &smqpb.WatchRequest{Topic: topic})
	}
}

// wait returns when nothing runs any more, after the end of start's context.
func (f *feed) wait() { f.running.Wait() }

// told is one thing that a watch tells.
type told struct {
	update      *smqpb.WatchUpdate
	lost, ended error
}

// watch passes on what a watch tells, until ctx ends or the watch does.
func (f *feed) watch(ctx context.Context, topic string, req *smqpb.WatchRequest) {
	all := make(chan told, gathered)
	f.running.Go(func() {
		defer close(all)
		put := func(t told) {
			select {
			case all <- t:
			case <-ctx.Done():
			}
		}
		end := guarded(func() tea.Msg {
			err := f.backend.Watch(ctx, req, func(u *smqpb.WatchUpdate) { put(told{update: u}) }, func(err error) { put(told{lost: err}) })
			if ctx.Err() == nil {
				put(told{ended: err})
			}
			return nil
		})()
		if fault, ok := end.(faultMsg); ok {
			f.send(fault)
		}
	})
	f.running.Go(func() { f.gather(ctx, topic, all) })
}

// gather sends what has come since the last time in one message.
func (f *feed) gather(ctx context.Context, topic string, all <-chan told) {
	for first := range all {
		msg := updatesMsg{topic: topic}
		msg.add(first)
		for more := true; more && len(msg.updates) < gathered; {
			select {
			case t, ok := <-all:
				if more = ok; ok {
					msg.add(t)
				}
			default:
				more = false
			}
		}
		f.send(msg)
		select {
		case <-time.After(restTime):
		case <-ctx.Done():
			return
		}
	}
}

// add takes one more thing into the message.
func (m *updatesMsg) add(t told) {
	switch {
	case t.update != nil:
		m.updates, m.lost = append(m.updates, t.update), nil
	case t.lost != nil:
		m.lost = t.lost
	default:
		m.ended = t.ended
	}
}
