package master

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// watcher collects what WatchCluster sends.
type watcher struct {
	got   chan *smqpb.ClusterInfo // unread messages
	ended chan error
}

func (w *world) watch(addr string) *watcher {
	w.t.Helper()
	conn, err := w.conns.Get(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	stream, err := smqpb.NewMasterClient(conn).WatchCluster(ctx, &smqpb.ClusterRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	o := &watcher{got: make(chan *smqpb.ClusterInfo, 10_000), ended: make(chan error, 1)}
	go func() {
		for {
			info, err := stream.Recv()
			if err != nil {
				o.ended <- err
				return
			}
			o.got <- info
		}
	}()
	return o
}

// drain returns how many messages wait, and the last of them.
func (o *watcher) drain() (n int, last *smqpb.ClusterInfo) {
	for {
		select {
		case last = <-o.got:
			n++
		default:
			return n, last
		}
	}
}

func TestWatchClusterSendsTheStateAndEveryChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a := w.join(n, "a")
		pass(time.Second)
		o := w.watch("m:1")
		synctest.Wait()
		if n, last := o.drain(); n != 1 || len(last.GetBrokers()) != 1 || last.GetLeadingMaster() != "m:1" {
			t.Fatalf("at first %d messages, the last %v", n, last)
		}

		a.crash()
		pass(2 * watchPause)
		if n, last := o.drain(); n == 0 || !last.GetBrokers()[0].GetSilent() {
			t.Errorf("after a crash %d messages, the last %v", n, last)
		}

		// A crowd comes in a few messages.
		pass(watchPause)
		o.drain()
		for _, id := range []smq.BrokerID{"b", "c", "d", "e", "f", "g", "h"} {
			w.join(n, id)
		}
		pass(10 * watchPause)
		if n, last := o.drain(); n > 3 || len(last.GetBrokers()) != 8 {
			t.Errorf("after a crowd %d messages, the last %v", n, last)
		}
	})
}

func TestWatchClusterTellsLoadsOnceASecond(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a := w.join(n, "a")
		o := w.watch("m:1")
		pass(time.Second)
		o.drain()
		for i := range 200 {
			a.send(&smqpb.Heartbeat{Load: &smqpb.Load{Segments: uint64(i)}})
			a.granted()
			pass(50 * time.Millisecond)
		}
		pass(1500 * time.Millisecond)
		if n, last := o.drain(); n < 9 || n > 13 || last.GetBrokers()[0].GetLoad().GetSegments() != 199 {
			t.Errorf("%d messages in ten seconds, the last %v", n, last)
		}
	})
}

func TestWatchClusterEndsWithTheMaster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		o := w.watch("m:1")
		pass(time.Second)
		if err := n.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-o.ended; !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("the stream ended with %v", err)
		}
	})
}

func TestWatchClusterEndsWhenAnotherMasterLeads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		old := w.leader(nodes)
		var follower *node
		for _, n := range nodes {
			if n != old {
				follower = n
			}
		}
		o := w.watch(follower.config.Advertise)
		pass(time.Second)
		old.kill()
		now := w.leader(nodes)
		err := <-o.ended
		var notLeader *rpc.NotLeaderError
		if !errors.As(err, &notLeader) {
			t.Fatalf("the stream ended with %v", err)
		}
		if notLeader.Address != "" && notLeader.Address != now.config.Advertise {
			t.Errorf("it points to %s, %s leads", notLeader.Address, now.config.Advertise)
		}
	})
}
