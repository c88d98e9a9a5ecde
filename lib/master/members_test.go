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

func TestMembersKnowOneAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		leader := w.leader(nodes)
		pass(2 * time.Second)
		for name, n := range nodes {
			info := n.Info()
			if info.GetLeadingMaster() != leader.config.Advertise || info.GetClusterId() == "" || info.GetStore() != "mem://" {
				t.Errorf("%s knows %v", name, info)
			}
			if len(info.GetMasters()) != 3 {
				t.Fatalf("%s knows the masters %v", name, info.GetMasters())
			}
			for _, m := range info.GetMasters() {
				if m.GetId() == "" || m.GetAddress() != m.GetId()[:2]+":1" || !m.GetVoter() || m.GetLeader() != (m.GetAddress() == leader.config.Advertise) {
					t.Errorf("%s knows the master %v", name, m)
				}
			}
		}
	})
}

func TestFollowersRedirect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		leader := w.leader(nodes)
		w.join(leader, "a").live()
		pass(time.Second)
		for name, n := range nodes {
			if n == leader {
				continue
			}
			var notLeader *rpc.NotLeaderError
			if err := w.dial(n.config.Advertise, "b", 0).ended(); !errors.As(err, &notLeader) || notLeader.Address != leader.config.Advertise {
				t.Errorf("%s refused with %v", name, err)
			}
			if n.seen("a") == nil || n.leads() != "a" {
				t.Errorf("%s knows %v", name, n.Info())
			}
		}
	})
}

func TestAnotherMasterTakesOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		old := w.leader(nodes)
		a, b := w.join(old, "a"), w.join(old, "b")
		a.live()
		b.live()
		pass(5 * time.Second)
		before := old.Info()

		w.net.isolate(old.name) // a crash: nobody hears of it any more
		since := time.Now()
		delete(nodes, old.name)
		now := w.leader(nodes)
		if took := time.Since(since); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		again := w.dial(now.config.Advertise, "b", b.join)
		if g := again.granted(); g.GetJoin() != b.join || g.GetClusterId() != before.GetClusterId() || g.GetLeader().GetTerm() != before.GetLeader().GetTerm() {
			t.Errorf("grant %v, before %v", g, before)
		}
		again.live()

		// Whoever does not come back is missed, but does not expire before a full lease.
		pass(missedAfter / 2)
		if now.leads() != "a" || now.Info().GetLeader().GetTerm() != 1 {
			t.Errorf("a broker had no time to come: %v", now.Info())
		}
		pass(2*time.Second - missedAfter/2)
		if s := now.seen("a"); s == nil || !s.GetSilent() || now.leads() != "b" || now.Info().GetLeader().GetTerm() != 2 {
			t.Errorf("before the lease ends: %v", now.Info())
		}
		pass(1500 * time.Millisecond)
		if now.seen("a") != nil || now.leads() != "b" || now.Info().GetLeader().GetTerm() != 2 {
			t.Errorf("after the lease: %v", now.Info())
		}

		// The old one comes back and follows.
		w.net.heal(old.name)
		pass(10 * time.Second)
		if old.Info().GetLeadingMaster() != now.config.Advertise || old.leads() != "b" {
			t.Errorf("the old one knows %v", old.Info())
		}
	})
}

// A broker that still hears the old leading master, which the other masters do
// not hear any more, gets nothing from it, and has no lease any more when the
// new one expires it (L1).
func TestSeparatedMasterGrantsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		old := w.leader(nodes)
		a := w.join(old, "a")
		pass(time.Second)
		w.net.isolate(old.name, "m1", "m2", "m3")
		pass(time.Millisecond)
		leaseEnd := time.Now().Add(2 * time.Second)
		a.send(&smqpb.Heartbeat{})
		if g, err := a.stream.Recv(); !errors.Is(err, smq.ErrNotLeader) {
			t.Errorf("it answered %v, %v", g, err)
		}
		delete(nodes, old.name)
		now := w.leader(nodes)
		for {
			_, changed := now.hub.listen()
			if now.seen("a") == nil {
				break
			}
			<-changed
		}
		if !time.Now().After(leaseEnd) {
			t.Errorf("expired %v before the end of its lease", time.Until(leaseEnd))
		}
	})
}

// After a pause a verification may speak of the time before it, so an entry is
// committed first.
func TestMasterConfirmsItsLeadershipAfterAPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		n := w.leader(nodes)
		a := w.join(n, "a")
		pass(time.Second)
		entries := func(f func()) uint64 {
			before := n.raft.LastIndex()
			f()
			return n.raft.LastIndex() - before
		}
		beat := func() { a.beat() }
		if added := entries(beat); added != 0 {
			t.Errorf("a grant took %d entries", added)
		}
		pause := func() { n.jump.Add(int64(2 * n.config.maxPause())) }
		pause()
		if added := entries(beat); added != 1 {
			t.Errorf("a grant right after a pause took %d entries", added)
		}
		pause()
		pass(2 * tick)
		if added := entries(beat); added != 1 {
			t.Errorf("a grant some time after a pause took %d entries", added)
		}
		if added := entries(beat); added != 0 {
			t.Errorf("the next grant took %d entries", added)
		}
	})
}

func TestMastersWithoutAMajorityStillAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		leader := w.leader(nodes)
		w.join(leader, "a").live()
		pass(time.Second)
		for name, n := range nodes {
			if n != leader {
				n.kill()
				delete(nodes, name)
			}
		}
		pass(10 * time.Second)
		conn, err := w.conns.Get(leader.config.Advertise)
		if err != nil {
			t.Fatal(err)
		}
		info, err := smqpb.NewMasterClient(conn).Cluster(t.Context(), &smqpb.ClusterRequest{})
		if err != nil || info.GetLeadingMaster() != "" || info.GetLeader().GetAddress() != "a:9" || len(info.GetBrokers()) != 1 {
			t.Errorf("it answered %v, %v", info, err)
		}
		if err := w.dial(leader.config.Advertise, "b", 0).ended(); !errors.Is(err, smq.ErrNotLeader) {
			t.Errorf("a broker joined: %v", err)
		}
	})
}

func TestMemberAnnouncesItsNewAddress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dirs := w.threeDirs()
		nodes := w.startAll(dirs)
		leader := w.leader(nodes)
		for name, n := range nodes {
			if n == leader {
				continue
			}
			n.kill()
			again := w.startMember(name, dirs, func(c *Config) { c.Advertise, c.HTTPAddress = name+":77", name+":80" })
			<-again.Ready()
			pass(2 * time.Second)
			found := false
			for _, m := range leader.Info().GetMasters() {
				found = found || m.GetAddress() == name+":77" && m.GetHttpAddress() == name+":80"
			}
			if !found {
				t.Errorf("the leading master knows %v", leader.Info().GetMasters())
			}
			return
		}
	})
}

func TestAnnounceIsChecked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		for _, m := range []*smqpb.MasterInfo{nil, {Id: "stranger", Address: "s:1"}, {Id: soloID, Address: "no port"}} {
			if _, err := n.Announce(context.Background(), &smqpb.AnnounceRequest{Master: m}); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("%v: %v", m, err)
			}
		}
	})
}

func TestShutdownHandsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		old := w.leader(nodes)
		pass(time.Second)
		since := time.Now()
		if err := old.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		delete(nodes, old.name)
		w.leader(nodes)
		if took := time.Since(since); took > DefaultElectionTimeout {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
	})
}
