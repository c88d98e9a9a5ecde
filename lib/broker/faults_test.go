package broker_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// gated is a store whose changes to segments wait while the gate is closed, as
// those of a paused process or of an absent store do.
type gated struct {
	store.Store
	match string // what the paths of the files concerned contain

	mu   sync.Mutex
	gate chan struct{} // nil: open
}

func (g *gated) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = make(chan struct{})
}

func (g *gated) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gate != nil {
		close(g.gate)
		g.gate = nil
	}
}

func (g *gated) Create(ctx context.Context, path string, content []store.Part) error {
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	if gate != nil && strings.Contains(path, "/segments/") && strings.Contains(path, g.match) {
		<-gate // whatever ctx says: a paused process does not notice
	}
	return g.Store.Create(ctx, path, content)
}

// While the store is away buffers fill up, publishers are held back, and told
// after a while; then everything goes on.
func TestP10TheStoreIsAway(t *testing.T) {
	b := newBed(t)
	b.memory, b.wait = 8<<20/3, 50*time.Millisecond
	g := &gated{}
	b.wrap = func(_ string, st store.Store) store.Store { g.Store = st; return g }
	b.start("a")
	b.connect(8)
	config, s := b.live(0)
	b.put(0, 0, 1)
	hello := &smqpb.PublishHello{Topic: config.GetTopic(), TopicId: config.GetTopicId()}
	big := batch(t, string(bytes.Repeat([]byte("x"), 300<<10)))
	head := &smqpb.PublishHead{Batches: []*smqpb.PublishBatch{{Segment: s.GetId(), Size: uint32(len(big))}}}

	g.shut()
	p := b.openPublish("a:7310", hello)
	for range 3 { // together they fit
		p.send(head, bytes.Clone(big))
	}
	p.send(head, bytes.Clone(big))
	p.ended(smq.ErrOverloaded)

	g.open()
	b.put(0, 4, 1) // behind the three, which are stored after all
	sub := b.openSubscribe("a:7310", &smqpb.SubscribeHello{Topic: config.GetTopic()})
	sub.ask(0, 4)
	sub.until(func() bool { return sub.next[0] == 5 })
	if sub.values[0][0] != "value 4" {
		t.Fatalf("offset 4 holds %q", sub.values[0][0])
	}
}

// A frame larger than a small broker's buffers is taken in parts; a batch that is
// larger by itself is refused, and the stream goes on.
func TestP10SmallBuffers(t *testing.T) {
	b := newBed(t)
	b.memory = 1 << 20
	b.start("a")
	b.connect(8)
	config, s := b.live(0)
	p := b.openPublish("a:7310", &smqpb.PublishHello{Topic: config.GetTopic()})
	head := &smqpb.PublishHead{}
	var payload [][]byte
	for i, size := range []int{300 << 10, 600 << 10, 300 << 10, 300 << 10} {
		one := batch(t, string(bytes.Repeat([]byte("x"), size)))
		payload = append(payload, one)
		head.Batches = append(head.Batches, &smqpb.PublishBatch{Id: uint64(i), Segment: s.GetId(), Size: uint32(len(one))})
	}
	p.send(head, payload...)
	stored := 0
	for range head.GetBatches() {
		ack := p.ack()
		switch err := rpc.FromErrorInfo(ack.GetError()); {
		case ack.GetId() == 1 && errors.Is(err, smq.ErrTooLarge):
		case ack.GetId() != 1 && err == nil:
			stored++
		default:
			t.Errorf("got %v", ack)
		}
	}
	if stored != 3 {
		t.Errorf("%d batches are stored", stored)
	}
}

// An owner that is paused in the middle of storing, and fenced meanwhile, acks
// nothing that is not in the log when it wakes.
func TestP5PausedOwner(t *testing.T) {
	b := newBed(t)
	gates := make(map[string]*gated)
	b.wrap = func(name string, st store.Store) store.Store {
		gates[name] = &gated{Store: st}
		return gates[name]
	}
	b.start("a")
	b.start("b")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	for range 4 {
		w.send(200)
		w.flush()
		owner := b.broker(b.owner(0))
		g := gates[owner.Address()[:1]]
		g.shut()
		resume := b.master.pause(owner.Address())
		w.send(200) // stuck in the paused owner
		b.master.expire(owner.ID())
		w.flush() // by way of another one
		r.check(w)
		g.open()
		resume()
		w.send(200)
		w.flush()
		r.check(w)
		err := b.master.await(within(t), func(s *smqpb.ClusterInfo) bool { return len(s.GetBrokers()) == 2 })
		if err != nil {
			t.Fatal(err)
		}
	}
	if v := b.verify(); v.Messages != uint64(w.n) {
		t.Fatalf("%d written: %+v", w.n, v)
	}
}

// A broker that alone has lost the store loses its segments to one that has not.
func TestABrokerWithoutStore(t *testing.T) {
	b := newBed(t)
	b.stuck = 100 * time.Millisecond
	gates := make(map[string]*gated)
	b.wrap = func(name string, st store.Store) store.Store {
		gates[name] = &gated{Store: st}
		return gates[name]
	}
	b.start("a")
	b.start("b")
	c := b.connect(4)
	w := b.write(c, 4)
	w.send(200)
	w.flush()
	owner, other := b.owner(0), "a:7310"
	if owner == other {
		other = "b:7310"
	}
	b.master.lead(other)
	g := gates[owner[:1]]
	g.shut()
	w.send(200)
	w.flush()
	g.open()
	b.read(c).check(w)
	if v := b.verify(); v.Messages != uint64(w.n) {
		t.Fatalf("%d written: %+v", w.n, v)
	}
}

func TestP1P3P7KilledLeader(t *testing.T) {
	b := newBed(t, "a", "b", "c")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	for range 4 {
		w.send(500)
		leader := b.lookupLeader()
		b.kill(leader)
		w.send(500)
		w.flush()
		r.check(w)
		b.start(leader[:1])
	}
	if v := b.verify(); v.Messages != uint64(w.n) {
		t.Fatalf("%d written: %+v", w.n, v)
	}
}

func (b *bed) lookupLeader() string {
	b.t.Helper()
	info, err := b.cluster().Info(within(b.t))
	if err != nil {
		b.t.Fatal(err)
	}
	return info.GetLeader().GetAddress()
}

// A broker that is leaving also hands over what it owns and never opened, at
// once, though something else keeps it from being gone.
func TestDrainOfASegmentThatWasNeverOpened(t *testing.T) {
	b := newBed(t)
	g := &gated{match: "/other/"}
	b.wrap = func(name string, st store.Store) store.Store {
		if name != "a" {
			return st
		}
		g.Store = st
		return g
	}
	b.start("a")
	c := b.connect(4)
	b.live(0)
	other := smq.Topic{Namespace: smq.DefaultNamespace, Name: "other"}
	if _, err := c.CreateTopic(within(t), other, client.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	pub, err := c.NewPublisher(within(t), other, client.PublisherOptions{})
	if err == nil {
		_, _, err = pub.PublishSync(within(t), &client.Message{Partition: client.AnyPartition})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.start("b")
	g.shut()
	drained := make(chan error, 1)
	go func() { drained <- b.broker("a:7310").Drain(within(t)) }()
	err = b.master.await(within(t), func(s *smqpb.ClusterInfo) bool { return s.GetLeader().GetAddress() == "b:7310" })
	if err != nil {
		t.Fatal(err)
	}
	w := b.write(c, 4)
	w.send(10)
	w.flush()
	if len(drained) > 0 {
		t.Fatalf("the drain has come to its end: %v", <-drained)
	}
	g.open()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	b.read(c).check(w)
}

func TestNotTheLeader(t *testing.T) {
	b := newBed(t, "a", "b")
	b.connect(4)
	conn, err := b.cluster().Conn("b:7310")
	if err != nil {
		t.Fatal(err)
	}
	_, err = smqpb.NewLeaderClient(conn).Lookup(within(t), &smqpb.LookupRequest{Topic: "t"})
	var other *rpc.NotLeaderError
	if !errors.As(err, &other) || other.Address != "a:7310" {
		t.Fatalf("got %v", err)
	}
}
