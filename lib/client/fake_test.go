package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/boottime"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// fakeCluster is a master and brokers that serve real gRPC over pipes in memory,
// so that tests run in a synctest bubble, and whose behaviour tests script.
type fakeCluster struct {
	t  testing.TB
	mu sync.Mutex

	listeners map[string]*bufconn.Listener // by address; none: nobody listens
	conns     map[string][]*muteConn
	silent    map[string]bool
	paused    map[string]chan struct{} // closed when it is over
	brokers   []*fakeBroker
	master    *grpc.Server
	leader    int
	noLeader  bool

	config     *smqpb.TopicConfig
	deleted    bool
	layout     *smqpb.Layout
	sealed     map[uint64]bool
	logs       map[int32]*fakeLog
	changed    chan struct{}   // closed when a log or the layout has changed
	names      []string        // more topics
	damaged    map[string]bool // of them
	creates    int
	lostCreate bool // the first CreateTopic is applied and its answer lost
	lookups    []*smqpb.LookupRequest
	slowLookup time.Duration // that every lookup takes
	asItIs     bool          // lookups give no segment to another owner
	scaling    fakeScaling

	// verdict decides on a batch that has arrived; nil: keep.
	verdict func(b *fakeBroker, batch *smqpb.PublishBatch) verdict
	// feedFault ends a served partition or breaks its stream; nil: never.
	feedFault func(b *fakeBroker, partition int32) (end error, drop bool)
	// watch serves a watch of the leader's; nil: there is no such call.
	watch func(req *smqpb.WatchRequest, send func(*smqpb.WatchUpdate), ended <-chan struct{}) error
}

// verdict is what becomes of a batch.
type verdict struct {
	refuse     error         // the answer, and nothing is appended
	appendOnly bool          // it is appended, with no answer
	then       error         // it is appended, and answered with an error
	dropBefore bool          // the stream breaks, nothing is appended
	dropAfter  bool          // the stream breaks after appending
	delay      time.Duration // of the answer
	level      smqpb.AckLevel
	twice      bool // the answer comes twice
}

const fakeTopicID = "0123456789abcdef0123456789abcdef"

var fakeTopic = smq.Topic{Namespace: smq.DefaultNamespace, Name: "orders"}

func newFakeCluster(t testing.TB, brokers int, partitions int32) *fakeCluster {
	c := &fakeCluster{
		t:         t,
		listeners: make(map[string]*bufconn.Listener),
		conns:     make(map[string][]*muteConn),
		silent:    make(map[string]bool),
		paused:    make(map[string]chan struct{}),
		config:    &smqpb.TopicConfig{Topic: fakeTopic.String(), TopicId: fakeTopicID, Partitions: partitions, Key: "key"},
		sealed:    make(map[uint64]bool),
		logs:      make(map[int32]*fakeLog),
		changed:   make(chan struct{}),
	}
	for i := range brokers {
		c.brokers = append(c.brokers, &fakeBroker{cluster: c, index: i, addr: fmt.Sprintf("broker-%d:7310", i)})
	}
	c.layout = &smqpb.Layout{Version: 1, NextSegment: 2, Segments: []*smqpb.Segment{{Id: 1, Hi: partitions}}}
	c.startMaster()
	for _, b := range c.brokers {
		b.start()
	}
	return c
}

func (c *fakeCluster) startMaster() {
	c.master = rpc.NewServer(rpc.ServerOptions{})
	smqpb.RegisterMasterServer(c.master, fakeMaster{cluster: c})
	c.listen("master:7300", c.master)
}

// close stops everything, at the end of a test.
func (c *fakeCluster) close() {
	c.master.Stop()
	for _, b := range c.brokers {
		b.kill()
	}
}

func (c *fakeCluster) listen(addr string, s *grpc.Server) {
	l := bufconn.Listen(1 << 20)
	c.mu.Lock()
	c.listeners[addr] = l
	c.mu.Unlock()
	go s.Serve(l)
}

// ownerOf is the broker that owns a partition's segment.
func (c *fakeCluster) ownerOf(partition int32) *fakeBroker {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.layout.Segments {
		for _, b := range c.brokers {
			if partition >= s.Lo && partition < s.Hi && b.addr == s.OwnerAddress {
				return b
			}
		}
	}
	c.t.Fatalf("partition %d has no owner", partition)
	return nil
}

// lives reports whether a broker can be reached. The lock is held.
func (c *fakeCluster) lives(b *fakeBroker) bool {
	return b.server != nil && !c.silent[b.addr] && c.paused[b.addr] == nil
}

// connect makes a client of the cluster.
func (c *fakeCluster) connect() *Client {
	cl, err := Connect(context.Background(), Config{Masters: []string{"master:7300"}, Dial: rpc.DialOptions{Dialer: c.dial}})
	if err != nil {
		c.t.Fatal(err)
	}
	cl.now = boottime.Steady() // which synctest fakes
	return cl
}

// touch wakes whoever waits for a change. The lock is held.
func (c *fakeCluster) touch() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// log is a partition's log. The lock is held.
func (c *fakeCluster) log(partition int32) *fakeLog {
	l := c.logs[partition]
	if l == nil {
		l = &fakeLog{producers: make(map[int64]*fakeProducer)}
		c.logs[partition] = l
	}
	return l
}

// values is what a partition holds.
func (c *fakeCluster) values(partition int32) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log(partition).values()
}

func (c *fakeCluster) segment(id uint64) *smqpb.Segment {
	for _, s := range c.layout.Segments {
		if s.Id == id {
			return s
		}
	}
	return nil
}

// seal seals the segment of a partition; the layout tells once it is asked.
func (c *fakeCluster) seal(partition int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.layout.Segments {
		if partition >= s.Lo && partition < s.Hi {
			c.sealed[s.Id] = true
		}
	}
	c.touch()
}

// replace seals the segments of [lo, hi) and puts new ones, of the given
// ranges' lower ends, into the layout at once.
func (c *fakeCluster) replace(lo, hi int32, at ...int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(func(s *smqpb.Segment) bool { return s.Lo < hi && lo < s.Hi })
	for i, from := range at {
		to := hi
		if i+1 < len(at) {
			to = at[i+1]
		}
		c.place(from, to)
	}
	c.touch()
}

// change begins a layout version without the segments that gone names.
func (c *fakeCluster) change(gone func(*smqpb.Segment) bool) (removed []*smqpb.Segment) {
	next := proto.Clone(c.layout).(*smqpb.Layout)
	next.Version++
	next.Segments = nil
	for _, s := range c.layout.Segments {
		if gone(s) {
			c.sealed[s.Id] = true
			removed = append(removed, s)
		} else {
			next.Segments = append(next.Segments, s)
		}
	}
	c.layout = next
	return removed
}

// place adds a segment with a living owner, if there is one.
func (c *fakeCluster) place(lo, hi int32) {
	s := &smqpb.Segment{Id: c.layout.NextSegment, Lo: lo, Hi: hi}
	c.layout.NextSegment++
	var alive []*fakeBroker
	for _, b := range c.brokers {
		if c.lives(b) {
			alive = append(alive, b)
		}
	}
	if len(alive) > 0 {
		s.OwnerAddress = alive[int(s.Id)%len(alive)].addr
		s.Owner = s.OwnerAddress
	}
	c.layout.Segments = append(c.layout.Segments, s)
	slices.SortFunc(c.layout.Segments, func(a, b *smqpb.Segment) int { return cmp.Compare(a.Lo, b.Lo) })
}

// repair replaces the segments that have no living owner or are sealed.
func (c *fakeCluster) repair() {
	bad := func(s *smqpb.Segment) bool {
		return c.sealed[s.Id] || !slices.ContainsFunc(c.brokers, func(b *fakeBroker) bool { return c.lives(b) && b.addr == s.OwnerAddress })
	}
	if !slices.ContainsFunc(c.layout.Segments, bad) {
		return
	}
	for _, s := range c.change(bad) {
		c.place(s.Lo, s.Hi)
	}
	c.touch()
}

// fakeMaster is the master.
type fakeMaster struct {
	smqpb.UnimplementedMasterServer
	cluster *fakeCluster
}

// fakeBroker is a broker.
type fakeBroker struct {
	smqpb.UnimplementedLeaderServer
	smqpb.UnimplementedBrokerServer
	cluster *fakeCluster
	index   int
	addr    string
	server  *grpc.Server // nil: dead
	frames  []int        // batches in each frame so far
}

func (b *fakeBroker) start() {
	s := rpc.NewServer(rpc.ServerOptions{})
	smqpb.RegisterLeaderServer(s, b)
	smqpb.RegisterBrokerServer(s, b)
	rpc.RegisterData(s, b)
	b.cluster.mu.Lock()
	b.server = s
	b.cluster.mu.Unlock()
	b.cluster.listen(b.addr, s)
}

// startAll starts the brokers that are dead.
func (c *fakeCluster) startAll() {
	for _, b := range c.brokers {
		if b.server == nil {
			b.start()
		}
	}
}

// kill ends the broker at once. It may be started again.
func (b *fakeBroker) kill() {
	b.cluster.mu.Lock()
	s := b.server
	b.server = nil
	delete(b.cluster.listeners, b.addr)
	b.cluster.touch()
	b.cluster.mu.Unlock()
	b.cluster.resume(b) // a connection's end is heard even so
	if s != nil {
		s.Stop()
	}
}
