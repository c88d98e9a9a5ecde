package broker_test

import (
	"slices"
	"testing"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// gatedBed is a bed whose brokers' ways to the store can be shut one by one.
func gatedBed(t *testing.T, brokers ...string) (*bed, map[string]*gated) {
	b := newBed(t)
	b.replicas = 2
	gates := make(map[string]*gated)
	b.wrap = func(name string, st store.Store) store.Store {
		gates[name] = &gated{Store: st}
		return gates[name]
	}
	t.Cleanup(func() { // before the brokers are closed: a test that fails must not hang
		for _, g := range gates {
			g.open()
		}
	})
	for _, name := range brokers {
		b.start(name)
	}
	return b, gates
}

// replicated is a writer whose messages are acked when two brokers hold them.
func (b *bed) replicated(c *client.Client, partitions int32) *writer {
	w := b.write(c, partitions)
	pub, err := c.NewPublisher(within(b.t), topicT, client.PublisherOptions{Linger: client.NoLinger, Results: func(r client.Results) {
		if r.Err != nil {
			b.t.Errorf("partition %d: %v", r.Partition, r.Err)
		}
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	w.pub = pub
	return w
}

// followers are the addresses of the followers of partition p's segment.
func (b *bed) followers(p smq.Partition) []string {
	resp := b.lookup(&smqpb.LookupRequest{Topic: topicT.String(), Assign: true, Partitions: []int32{p}})
	var addresses []string
	for _, r := range resp.GetLayout().GetSegments()[0].GetReplicas() {
		addresses = append(addresses, r.GetAddress())
	}
	return addresses
}

// segment is the segment that holds partition p.
func (b *bed) segment(p smq.Partition) uint64 {
	resp := b.lookup(&smqpb.LookupRequest{Topic: topicT.String(), Assign: true, Partitions: []int32{p}})
	return resp.GetLayout().GetSegments()[0].GetId()
}

// replaced does something again and again until the segment of partition 0 has a
// successor.
func (b *bed) replaced(segment uint64, again func()) {
	b.t.Helper()
	for ctx := within(b.t); b.segment(0) == segment; again() {
		if ctx.Err() != nil {
			b.t.Fatalf("segment %d has no successor", segment)
		}
	}
}

// The owner is killed with everything it has acked in its memory, and nothing in
// the store: the follower's seal has it.
func TestP1ReplicatedAcksSurviveTheOwner(t *testing.T) {
	b, gates := gatedBed(t, "a", "b", "c")
	c := b.connect(4)
	r, w := b.read(c), b.replicated(c, 4)
	for range 5 {
		w.send(4)
		w.flush() // so that the segment is open, which takes the store
		owner := b.owner(0)
		if n := len(b.followers(0)); n != 1 {
			t.Fatalf("the segment has %d followers", n)
		}
		gates[owner[:1]].shut()
		w.send(300)
		w.flush()
		r.check(w) // readers may see it: it cannot vanish
		if v := b.verify(); v.Messages >= uint64(w.n) {
			t.Fatalf("all %d messages are stored, though the owner cannot store", v.Messages)
		}
		b.kill(owner)
		gates[owner[:1]].open()
		b.owner(0) // waits until it has another
		r.check(w)
		w.send(300)
		w.flush()
		r.check(w)
		b.start(owner[:1])
	}
	b.read(c).check(w)
}

// A follower is killed: the owner goes on by itself, then with another one.
func TestP1FollowersAreReplaced(t *testing.T) {
	b, _ := gatedBed(t, "a", "b", "c")
	c := b.connect(4)
	r, w := b.read(c), b.replicated(c, 4)
	for range 4 {
		w.send(300)
		w.flush()
		lost, segment := b.followers(0)[0], b.segment(0)
		b.kill(lost)
		w.send(300)
		w.flush()
		r.check(w)
		b.replaced(segment, func() { w.send(1); w.flush() }) // until it has another follower
		if n := len(b.followers(0)); n != 1 {
			t.Fatalf("the successor has %d followers", n)
		}
		b.start(lost[:1])
	}
	b.read(c).check(w)
}

// An owner is paused while its follower seals, and wakes: what it had sent is in
// the seal, what it had not is nowhere, and it acks accordingly.
func TestP5AnOwnerWakesBehindItsFollower(t *testing.T) {
	b, gates := gatedBed(t, "a", "b", "c")
	c := b.connect(4)
	r, w := b.read(c), b.replicated(c, 4)
	for range 4 {
		w.send(200)
		w.flush()
		owner := b.broker(b.owner(0))
		g := gates[owner.Address()[:1]]
		g.shut()
		resume := b.master.pause(owner.Address())
		w.send(200)
		b.master.expire(owner.ID())
		w.flush()
		r.check(w)
		g.open()
		resume()
		w.send(200)
		w.flush()
		r.check(w)
		err := b.master.await(within(t), func(s *smqpb.ClusterInfo) bool { return len(s.GetBrokers()) == 3 })
		if err != nil {
			t.Fatal(err)
		}
	}
	b.read(c).check(w)
}

// A follower's lease runs out, and its owner's stream to it does not break: under
// its fresh id it follows as any broker does.
func TestAFollowerStartsOver(t *testing.T) {
	b, gates := gatedBed(t, "a", "b")
	c := b.connect(4)
	w := b.replicated(c, 4)
	w.send(300)
	w.flush()
	owner, follower := b.owner(0), b.broker(b.followers(0)[0])
	old := follower.ID()
	b.master.expire(old)
	for ctx, follows := within(t), old; follows == old; {
		w.send(1)
		w.flush()
		if ctx.Err() != nil {
			t.Fatal("it follows nothing")
		}
		now := b.versions()
		if f := now[len(now)-1].Segments[0].Followers; len(f) == 1 {
			follows = f[0].Broker
		}
	}
	w.send(1)
	w.flush() // so that the segment is open, which takes the store
	gates[owner[:1]].shut()
	w.send(10)
	w.flush() // which only the follower can hold besides the owner
	gates[owner[:1]].open()
	b.read(c).check(w)
}

// Draining a follower moves its part to another broker before it leaves.
func TestDrainOfAFollower(t *testing.T) {
	b, _ := gatedBed(t, "a", "b", "c")
	c := b.connect(4)
	r, w := b.read(c), b.replicated(c, 4)
	w.send(300)
	w.flush()
	old, before := b.followers(0)[0], len(b.versions())
	if err := b.broker(old).Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	if causes := b.causes(before); len(causes) == 0 || slices.ContainsFunc(causes, func(c layout.Cause) bool { return c != layout.Drain }) {
		t.Errorf("the layout has changed because of %v, want drains", causes)
	}
	w.send(300)
	w.flush()
	r.check(w)
	if now := b.followers(0); len(now) != 1 || now[0] == old {
		t.Errorf("the followers are %v, %s has left", now, old)
	}
}

// versions are the versions of the topic's layout.
func (b *bed) versions() []layout.Layout {
	b.t.Helper()
	config, _ := b.live(0)
	page, err := catalog.Versions(within(b.t), b.st, topicT, smq.TopicID(config.GetTopicId()), 0, 1000)
	if err != nil {
		b.t.Fatal(err)
	}
	return page.Versions
}

// causes are those of the versions behind the first n.
func (b *bed) causes(n int) (causes []layout.Cause) {
	b.t.Helper()
	for _, v := range b.versions()[n:] {
		causes = append(causes, v.Cause)
	}
	return causes
}

// Of two followers one dies: the successor keeps the other one.
func TestOnlyTheLostFollowerIsReplaced(t *testing.T) {
	b := newBed(t, "a", "b", "c", "d")
	b.replicas = 3
	c := b.connect(4)
	w := b.replicated(c, 4)
	w.send(300)
	w.flush()
	owner, followers, before := b.owner(0), b.followers(0), len(b.versions())
	if len(followers) != 2 {
		t.Fatalf("the followers are %v", followers)
	}
	if owner == b.lookupLeader() || followers[0] == b.lookupLeader() {
		b.master.lead(followers[1])
	}
	segment := b.segment(0)
	b.kill(followers[0])
	b.replaced(segment, func() {})
	next := b.versions()[before]
	if s := next.Segments[0]; next.Cause != layout.Failover || s.Owner.Address != owner || len(s.Followers) != 2 ||
		!slices.ContainsFunc(s.Followers, func(m layout.Member) bool { return m.Address == followers[1] }) {
		t.Errorf("%s dies; after %s the followers are %v", followers[0], next.Cause, s.Followers)
	}
	w.send(300)
	w.flush()
	b.read(c).check(w)
}

// Every replica is lost: what is stored goes on, and the seal says that it is
// unclean.
func TestAllReplicasAreLost(t *testing.T) {
	b, _ := gatedBed(t, "a", "b", "c")
	c := b.connect(4)
	w := b.write(c, 4) // asks for stored acks
	w.send(300)
	w.flush()
	owner, follower := b.owner(0), b.followers(0)[0]
	b.kill(owner)
	b.kill(follower)
	b.start("d")
	w.send(300)
	w.flush()
	b.read(c).check(w)
}
