package master

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// solo is a ready master by itself.
func solo(w *world, change func(*Config)) *node {
	n := w.start("m", change)
	<-n.Ready()
	return n
}

func TestJoinGrants(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a := w.dial("m:1", "a", 0)
		g := a.granted()
		if g.GetLeaseMs() != 2000 || g.GetStore() != "mem://" || g.GetClusterId() == "" || g.GetJoin() == 0 {
			t.Errorf("grant %v", g)
		}
		if l := g.GetLeader(); l.GetBroker() != "a" || l.GetAddress() != "a:9" || l.GetTerm() != 1 {
			t.Errorf("leader %v", l)
		}
		if len(g.GetBrokers()) != 1 {
			t.Errorf("brokers %v", g.GetBrokers())
		}
		b := w.join(n, "b")
		if g := b.beat(); len(g.GetBrokers()) != 0 || g.GetLeader().GetBroker() != "a" {
			t.Errorf("the brokers came again though nothing changed: %v", g)
		}
		w.join(n, "c")
		if g := b.beat(); len(g.GetBrokers()) != 3 {
			t.Errorf("after another joined: %v", g)
		}
	})
}

func TestLoadsReachTheLeaderAndTheInfo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a, b := w.join(n, "a"), w.join(n, "b")
		b.send(&smqpb.Heartbeat{Load: &smqpb.Load{Segments: 7}})
		b.granted()
		loads := 0
		for range 4 {
			for _, i := range a.beat().GetBrokers() {
				if i.GetId() == "b" && i.GetLoad().GetSegments() == 7 {
					loads++
				}
			}
		}
		if loads < 2 {
			t.Errorf("the leader saw the load %d times in four grants", loads)
		}
		if l := n.seen("b").GetLoad(); l.GetSegments() != 7 {
			t.Errorf("load %v", l)
		}
	})
}

func TestLeaseRunsOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a, b := w.join(n, "a"), w.join(n, "b")
		b.live()
		since := time.Now()
		pass(2900 * time.Millisecond) // a hangs: its stream is there, its heartbeats are not
		if n.seen("a") == nil || n.leads() != "a" {
			t.Error("it expired early")
		}
		if err := a.ended(); !errors.Is(err, smq.ErrConflict) {
			t.Errorf("the stream ended with %v", err)
		}
		synctest.Wait()
		if took := time.Since(since); took < 3*time.Second || took > 3*time.Second+2*tick {
			t.Errorf("it expired after %v", took)
		}
		if n.seen("a") != nil || n.leads() != "b" || n.Info().GetLeader().GetTerm() != 2 {
			t.Errorf("the cluster is %v", n.Info())
		}
		for _, join := range []uint64{0, a.join} {
			if err := w.dial("m:1", "a", join).ended(); !errors.Is(err, smq.ErrConflict) {
				t.Errorf("it came back with number %d: %v", join, err)
			}
		}
		w.join(n, "fresh")
	})
}

func TestHeartbeatsKeepTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a := w.join(n, "a")
		for range 200 {
			pass(500 * time.Millisecond)
			a.beat()
		}
		if l := n.Info().GetLeader(); l.GetBroker() != "a" || l.GetTerm() != 1 {
			t.Errorf("leader %v", l)
		}
	})
}

func TestBrokenStreamMakesSilentAtOnceAndKeepsTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a, b := w.join(n, "a"), w.join(n, "b")
		b.live()
		pass(tick / 3) // it breaks off between two looks at the leases
		a.crash()
		if !n.seen("a").GetSilent() {
			t.Error("it is not silent at once")
		}
		if n.leads() != "a" {
			t.Error("it lost the lead at once, though it may only have lost a connection")
		}
		pass(silentAfter)
		if n.leads() != "b" || n.seen("a") == nil {
			t.Errorf("the cluster is %v", n.Info())
		}

		again := w.dial("m:1", "a", a.join)
		if g := again.granted(); g.GetJoin() != a.join {
			t.Errorf("it came back with number %d, had %d", g.GetJoin(), a.join)
		}
		if n.seen("a").GetSilent() {
			t.Error("it is silent after it came back")
		}
		again.live()
		pass(10 * time.Second)
		if s := n.seen("a"); s == nil || s.GetSilent() || n.leads() != "b" {
			t.Errorf("the cluster is %v", n.Info())
		}

		again.crash()
		pass(3*time.Second - 2*tick - silentAfter)
		if n.seen("a") == nil {
			t.Error("it expired early")
		}
		pass(silentAfter + 600*time.Millisecond)
		if n.seen("a") != nil {
			t.Error("it never expired")
		}
	})
}

func TestReconnectingBrokerKeepsTheLead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a, b := w.join(n, "a"), w.join(n, "b")
		b.live()
		a.crash()
		pass(silentAfter / 2)
		w.dial("m:1", "a", a.join).live()
		pass(5 * time.Second)
		if l := n.Info().GetLeader(); l.GetBroker() != "a" || l.GetTerm() != 1 {
			t.Errorf("leader %v", l)
		}
	})
}

func TestSecondStreamReplacesTheFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		first := w.join(n, "a")
		second := w.dial("m:1", "a", first.join)
		second.granted()
		first.crash()
		if n.seen("a").GetSilent() {
			t.Error("the end of an old stream makes silent")
		}
		second.live()
		pass(5 * time.Second)
		if n.leads() != "a" {
			t.Errorf("the cluster is %v", n.Info())
		}
	})
}

func TestLeaveRemovesAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a := w.join(n, "a")
		a.send(&smqpb.Heartbeat{Leave: true})
		if err := a.ended(); err != io.EOF {
			t.Errorf("the stream ended with %v", err)
		}
		if n.seen("a") != nil || n.leads() != "" {
			t.Errorf("the cluster is %v", n.Info())
		}
		if err := w.dial("m:1", "a", a.join).ended(); !errors.Is(err, smq.ErrConflict) {
			t.Errorf("it came back: %v", err)
		}
	})
}

func TestDrainingLeaderHandsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a, b := w.join(n, "a"), w.join(n, "b")
		for range 2 {
			a.send(&smqpb.Heartbeat{Draining: true})
			if g := a.granted(); g.GetLeader().GetBroker() != "b" || g.GetLeader().GetTerm() != 2 {
				t.Errorf("grant %v", g)
			}
		}
		if !n.seen("a").GetDraining() || n.seen("b").GetDraining() {
			t.Errorf("the cluster is %v", n.Info())
		}
		if g := b.beat(); g.GetLeader().GetAddress() != "b:9" {
			t.Errorf("grant %v", g)
		}
	})
}

func TestHelloIsChecked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		solo(w, nil)
		conn, err := w.conns.Get("m:1")
		if err != nil {
			t.Fatal(err)
		}
		for name, h := range map[string]*smqpb.Hello{
			"none":       nil,
			"no id":      {Address: "a:1"},
			"no address": {Broker: "a"},
			"no port":    {Broker: "a", Address: "a"},
			"long rack":  {Broker: "a", Address: "a:1", Rack: strings.Repeat("r", 300)},
		} {
			stream, err := smqpb.NewMasterClient(conn).Join(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&smqpb.Heartbeat{Hello: h}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPausedMasterExpiresNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a, dead := w.join(n, "a"), w.join(n, "dead")
		a.live()
		dead.crash()
		pass(time.Second)
		n.jump.Store(int64(10 * time.Second)) // it wakes ten seconds later
		pass(2500 * time.Millisecond)
		if n.seen("a") == nil || n.seen("dead") == nil {
			t.Errorf("somebody expired: %v", n.Info())
		}
		pass(time.Second)
		if n.seen("a") == nil || n.seen("dead") != nil {
			t.Errorf("a full lease later: %v", n.Info())
		}
	})
}

// A machine that has too much to do stalls the master every second. Whoever
// lives keeps the lease, and whoever is dead loses it all the same.
func TestStallsDoNotKeepTheDeadAlive(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a, dead := w.join(n, "a"), w.join(n, "dead")
		a.live()
		dead.crash()
		for range 10 {
			pass(400 * time.Millisecond)
			if n.jump.Load() < int64(2*time.Second) && n.seen("dead") == nil {
				t.Errorf("expired early, after %v", time.Duration(n.jump.Load()))
			}
			n.jump.Add(int64(2 * n.config.maxPause()))
		}
		pass(100 * time.Millisecond)
		if n.seen("a") == nil || n.seen("dead") != nil {
			t.Errorf("after ten stalls: %v", n.Info())
		}
	})
}

func TestShutdownEndsStreams(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		a := w.join(n, "a")
		if err := n.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		var notLeader *rpc.NotLeaderError
		if err := a.ended(); !errors.As(err, &notLeader) {
			t.Errorf("the stream ended with %v", err)
		}
		if err := n.Shutdown(t.Context()); err != nil || n.Err() != nil {
			t.Errorf("again: %v, %v", err, n.Err())
		}
	})
}
