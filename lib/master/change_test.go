package master

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// startJoining runs a master that waits to be added to a group, or goes on from
// what is in dir.
func (w *world) startJoining(name, dir string) *node {
	w.t.Helper()
	return w.start(name, func(c *Config) {
		c.Join, c.StoreURL, c.DataDir = true, "", dir
		c.RaftAdvertise, c.RaftListener = name+":2", w.net.listen(name+":2")
	})
}

// asLeader makes a change at whichever of the nodes leads, and again where it is
// answered that another one does.
func (w *world) asLeader(nodes map[string]*node, change func(ctx context.Context, m smqpb.MasterClient) error) error {
	w.t.Helper()
	for {
		conn, err := w.conns.Get(w.leader(nodes).config.Advertise)
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err = change(ctx, smqpb.NewMasterClient(conn))
		cancel()
		if !errors.Is(err, smq.ErrNotLeader) && !errors.Is(err, smq.ErrUnavailable) {
			return err
		}
		pass(100 * time.Millisecond)
	}
}

func (w *world) add(nodes map[string]*node, address string) (*smqpb.AddMasterResponse, error) {
	var resp *smqpb.AddMasterResponse
	return resp, w.asLeader(nodes, func(ctx context.Context, m smqpb.MasterClient) (err error) {
		resp, err = m.AddMaster(ctx, &smqpb.AddMasterRequest{Address: address})
		return err
	})
}

func (w *world) mustAdd(nodes map[string]*node, n *node) {
	w.t.Helper()
	if resp, err := w.add(nodes, n.config.Advertise); err != nil || !resp.GetChanged() {
		w.t.Fatalf("add %s: %v, %v", n.name, resp, err)
	}
	nodes[n.name] = n
	<-n.Ready()
}

func (w *world) remove(nodes map[string]*node, id string, force bool) (*smqpb.RemoveMasterResponse, error) {
	var resp *smqpb.RemoveMasterResponse
	return resp, w.asLeader(nodes, func(ctx context.Context, m smqpb.MasterClient) (err error) {
		resp, err = m.RemoveMaster(ctx, &smqpb.RemoveMasterRequest{Id: id, Force: force})
		return err
	})
}

func (w *world) mustRemove(nodes map[string]*node, id string, force bool) {
	w.t.Helper()
	if resp, err := w.remove(nodes, id, force); err != nil || !resp.GetChanged() {
		w.t.Fatalf("remove %s: %v, %v", id, resp, err)
	}
	delete(nodes, strings.Split(id, ":")[0])
}

// lose kills the node.
func (w *world) lose(nodes map[string]*node, n *node) {
	n.kill()
	delete(nodes, n.name)
}

// follower is one of the nodes that does not lead.
func (w *world) follower(nodes map[string]*node) *node {
	leader := w.leader(nodes)
	for _, n := range nodes {
		if n != leader && !n.dead {
			return n
		}
	}
	w.t.Fatal("nobody follows")
	return nil
}

// checkMembers waits until every node knows the same members, all of them with a
// vote and an address.
func (w *world) checkMembers(nodes map[string]*node, names ...string) {
	w.t.Helper()
	pass(2 * time.Second)
	want := strings.Join(names, " ")
	for _, n := range nodes {
		var got []string
		for _, m := range n.Info().GetMasters() {
			if !m.GetVoter() || m.GetAddress() != strings.Replace(m.GetId(), ":2", ":1", 1) {
				w.t.Errorf("%s knows %v", n.name, m)
			}
			got = append(got, strings.TrimSuffix(m.GetId(), ":2"))
		}
		if strings.Join(got, " ") != want {
			w.t.Errorf("%s knows the masters %v, not %s", n.name, got, want)
		}
	}
}

// Three become five, lose one that is removed then, and may lose another.
func TestMastersAreAddedAndRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		before := w.join(w.leader(nodes), "a")
		before.live()
		w.mustAdd(nodes, w.startJoining("m4", t.TempDir()))
		w.mustAdd(nodes, w.startJoining("m5", t.TempDir()))
		w.checkMembers(nodes, "m1", "m2", "m3", "m4", "m5")

		lost := w.follower(nodes)
		w.lose(nodes, lost)
		w.mustRemove(nodes, lost.config.RaftAdvertise, false)
		w.lose(nodes, w.leader(nodes))
		if now := w.leader(nodes); now.Info().GetLeader().GetBroker() != "a" {
			t.Errorf("the cluster is %v", now.Info())
		}
	})
}

// All that a group began with may go, and the cluster is the same one.
func TestMastersAreReplacedOneByOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		id := w.leader(nodes).Info().GetClusterId()
		for _, name := range []string{"m1", "m2", "m3"} {
			w.mustAdd(nodes, w.startJoining("new-"+name, t.TempDir()))
			old := nodes[name]
			w.mustRemove(nodes, name+":1", false) // by its other address, too
			<-old.Done()
			if err := old.Err(); !errors.Is(err, smq.ErrConflict) {
				t.Errorf("the removed one stopped with %v", err)
			}
		}
		w.checkMembers(nodes, "new-m1", "new-m2", "new-m3")
		if now := w.leader(nodes).Info(); now.GetClusterId() != id || now.GetStore() != "mem://" {
			t.Errorf("the cluster is %v", now)
		}
	})
}

func TestChangesOfTheGroupMayBeRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		n := w.startJoining("m4", t.TempDir())
		w.mustAdd(nodes, n)
		for _, address := range []string{"m4:1", "m2:1"} {
			if resp, err := w.add(nodes, address); err != nil || resp.GetChanged() || len(resp.GetMasters()) != 4 {
				t.Errorf("add %s again: %v, %v", address, resp, err)
			}
		}
		w.mustRemove(nodes, "m4:2", false)
		for _, id := range []string{"m4:2", "m4:1", "nobody:1"} {
			if resp, err := w.remove(nodes, id, false); err != nil || resp.GetChanged() || len(resp.GetMasters()) != 3 {
				t.Errorf("remove %s again: %v, %v", id, resp, err)
			}
		}
		<-n.Done()
	})
}

// Who is not the leading master says who is.
func TestFollowersChangeNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		n, leader := w.follower(nodes), w.leader(nodes)
		pass(time.Second)
		var notLeader *rpc.NotLeaderError
		if _, err := n.AddMaster(t.Context(), &smqpb.AddMasterRequest{Address: "m4:1"}); !errors.As(err, &notLeader) || notLeader.Address != leader.config.Advertise {
			t.Errorf("add: %v", err)
		}
		if _, err := n.RemoveMaster(t.Context(), &smqpb.RemoveMasterRequest{Id: "m1:1"}); !errors.As(err, &notLeader) {
			t.Errorf("remove: %v", err)
		}
		// The leading one hands over before it goes.
		if _, err := leader.RemoveMaster(t.Context(), &smqpb.RemoveMasterRequest{Id: leader.config.RaftAdvertise, Force: true}); !errors.Is(err, smq.ErrNotLeader) {
			t.Errorf("remove the leading one: %v", err)
		}
		w.mustRemove(nodes, leader.config.RaftAdvertise, true)
		<-leader.Done()
	})
}

// Only a master that waits to join becomes a member.
func TestOnlyWaitingMastersAreAdded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		solo(w, nil) // at m:1
		others := w.startAll(map[string]string{"o1": t.TempDir(), "o2": t.TempDir(), "o3": t.TempDir()})
		headless := w.startAll(map[string]string{"h1": t.TempDir(), "h2": t.TempDir(), "h3": t.TempDir()})
		pass(2 * time.Second)
		w.lose(headless, headless["h2"])
		w.lose(headless, headless["h3"])
		pass(5 * time.Second)
		founding := w.startMember("p1", map[string]string{"p1": t.TempDir(), "p2": "", "p3": ""}, nil)
		if resp, err := w.add(nodes, "m:1"); err == nil || !strings.Contains(err.Error(), "runs by itself") {
			t.Errorf("add m:1: %v, %v", resp, err)
		}
		for address, want := range map[string]error{
			"m:1": smq.ErrConflict, "o1:1": smq.ErrConflict, "h1:1": smq.ErrConflict, founding.config.Advertise: smq.ErrConflict,
			"nobody:1": smq.ErrTimeout, "no port": smq.ErrInvalid,
		} {
			if resp, err := w.add(nodes, address); !errors.Is(err, want) || !strings.Contains(err.Error(), address) {
				t.Errorf("add %s: %v, %v", address, resp, err)
			}
		}
		w.checkMembers(nodes, "m1", "m2", "m3")
		w.checkMembers(others, "o1", "o2", "o3")
	})
}

// A master that answers by gRPC and cannot be reached by raft gets no vote, and
// is no member afterwards; when it can, it may be added.
func TestAMasterThatDoesNotCatchUpIsNoMember(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		n := w.startJoining("m4", t.TempDir())
		// What an attempt that was cut short left says nothing of this one.
		r, err := w.leader(nodes).leading()
		if err == nil {
			err = r.setMaster(registry.Master{ID: "m4:2", Address: "m4:1"})
		}
		if err != nil {
			t.Fatal(err)
		}
		w.net.mu.Lock()
		hidden := w.net.listeners["m4:2"]
		delete(w.net.listeners, "m4:2")
		w.net.mu.Unlock()
		if resp, err := w.add(nodes, "m4:1"); !errors.Is(err, smq.ErrTimeout) || !strings.Contains(err.Error(), "m4:2") {
			t.Errorf("add: %v, %v", resp, err)
		}
		w.checkMembers(nodes, "m1", "m2", "m3")
		w.net.mu.Lock()
		w.net.listeners["m4:2"] = hidden
		w.net.mu.Unlock()
		w.mustAdd(nodes, n)
		w.checkMembers(nodes, "m1", "m2", "m3", "m4")
	})
}

func TestTheMajorityIsNotRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		pass(2 * time.Second) // for all to have announced themselves
		refused := func(id string, force bool, words ...string) {
			t.Helper()
			resp, err := w.remove(nodes, id, force)
			if !errors.Is(err, smq.ErrConflict) {
				t.Errorf("remove %s: %v, %v", id, resp, err)
				return
			}
			for _, word := range words {
				if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
					t.Errorf("remove %s: %v: %q is not in it", id, err, word)
				}
			}
		}
		leader, other := w.leader(nodes), w.follower(nodes)
		refused(other.config.RaftAdvertise, false, "--force")
		lost := other
		lost.kill()
		for _, n := range nodes {
			if n != lost {
				refused(n.config.RaftAdvertise, true, lost.config.RaftAdvertise, "start or remove")
			}
		}
		delete(nodes, lost.name)
		w.mustRemove(nodes, lost.config.RaftAdvertise, false)
		w.mustRemove(nodes, w.follower(nodes).config.RaftAdvertise, false)
		refused(leader.config.RaftAdvertise, true, "the only one")
		w.checkMembers(nodes, leader.name)
	})
}

// One that is removed while it is away learns of that when it comes back, and
// does not disturb the others. Without its data it may be added again.
func TestARemovedMasterComesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dirs := w.threeDirs()
		nodes := w.startAll(dirs)
		w.mustAdd(nodes, w.startJoining("m4", t.TempDir()))
		w.mustAdd(nodes, w.startJoining("m5", t.TempDir()))
		pass(2 * time.Second)
		lost := w.follower(nodes)
		for lost.config.Join {
			delete(nodes, lost.name)
			lost = w.follower(nodes)
		}
		w.lose(nodes, lost)
		w.mustRemove(nodes, lost.config.RaftAdvertise, false)
		pass(time.Minute) // the leading one does not try to tell it any more
		term := w.leader(nodes).Info().GetRaftTerm()
		again := w.startMember(lost.name, dirs, nil)
		<-again.Done()
		if err := again.Err(); !errors.Is(err, smq.ErrConflict) || !strings.Contains(err.Error(), "removed") {
			t.Errorf("it stopped with %v", err)
		}
		if now := w.leader(nodes).Info().GetRaftTerm(); now != term {
			t.Errorf("the term went from %d to %d", term, now)
		}
		again.kill() // which ends its server
		again = w.startJoining(lost.name, dirs[lost.name])
		if resp, err := w.add(nodes, again.config.Advertise); !errors.Is(err, smq.ErrConflict) || !strings.Contains(err.Error(), "empty --data") {
			t.Errorf("add with old data: %v, %v", resp, err)
		}
		again.kill()
		w.mustAdd(nodes, w.startJoining(lost.name, t.TempDir()))
	})
}

// A joining master that is restarted goes on, whether it is a member by then or
// not.
func TestAJoiningMasterRestarts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := w.startAll(w.threeDirs())
		dir := t.TempDir()
		w.startJoining("m4", dir).kill()
		n := w.startJoining("m4", dir)
		w.mustAdd(nodes, n)
		w.lose(nodes, n)
		nodes["m4"] = w.startJoining("m4", dir)
		<-nodes["m4"].Ready()
		w.checkMembers(nodes, "m1", "m2", "m3", "m4")
	})
}

// A master that began by itself becomes the first of a group.
func TestAMasterByItselfGetsCompany(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dir := t.TempDir()
		alone := solo(w, func(c *Config) { c.DataDir = dir })
		w.join(alone, "a").live()
		id := alone.Info().GetClusterId()
		if _, err := alone.AddMaster(t.Context(), &smqpb.AddMasterRequest{Address: "m2:1"}); !errors.Is(err, smq.ErrConflict) {
			t.Errorf("add to a master by itself: %v", err)
		}
		alone.kill()
		nodes := w.startAll(map[string]string{"m1": dir})
		if info := w.leader(nodes).Info(); info.GetClusterId() != id || info.GetLeader().GetBroker() != "a" {
			t.Errorf("the cluster is %v, it was %s", info, id)
		}
		w.mustAdd(nodes, w.startJoining("m2", t.TempDir()))
		w.mustAdd(nodes, w.startJoining("m3", t.TempDir()))
		w.checkMembers(nodes, "m1", "m2", "m3")
		w.lose(nodes, nodes["m1"])
		if info := w.leader(nodes).Info(); info.GetClusterId() != id {
			t.Errorf("the cluster is %v, it was %s", info, id)
		}
	})
}
