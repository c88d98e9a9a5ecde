package broker_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seaweedmq/smq/lib/broker"
	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

const masterAddress = "master:7300"

// bed is a cluster in one process: real brokers and leaders, a scripted master,
// connections in memory.
type bed struct {
	t      testing.TB
	st     *mem.Store
	master *fakeMaster
	server *grpc.Server // of the master
	conns  *rpc.Conns   // of the test's own clients
	limits seglog.Limits
	memory int64
	stuck  time.Duration                                 // StuckAfter
	wait   time.Duration                                 // BufferWait
	wrap   func(name string, st store.Store) store.Store // around each broker's handle; nil: none

	loads    chan *smqpb.ReportLoadsRequest  // what the leader is told, if the test hears it
	sealed   chan *smqpb.ReportSealedRequest // the same
	replicas int32                           // of the topic that connect makes; 0: the default

	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	brokers   map[string]*broker.Broker
}

func newBed(t testing.TB, brokers ...string) *bed {
	m := newFakeMaster()
	b := newBedOf(t, m, brokers...)
	b.master = m
	return b
}

// newBedOf makes a bed with the given master.
func newBedOf(t testing.TB, m smqpb.MasterServer, brokers ...string) *bed {
	b := &bed{t: t, st: mem.New(), listeners: make(map[string]*bufconn.Listener), brokers: make(map[string]*broker.Broker)}
	b.conns = rpc.NewConns(rpc.DialOptions{Dialer: b.dial})
	b.server = b.serve(m, masterAddress)
	t.Cleanup(func() {
		for _, br := range b.brokers {
			br.Close()
		}
		b.conns.Close()
		b.server.Stop()
	})
	for _, name := range brokers {
		b.start(name)
	}
	return b
}

// serve has the master answer at an address, until the server is stopped.
func (b *bed) serve(m smqpb.MasterServer, address string) *grpc.Server {
	server := rpc.NewServer(rpc.ServerOptions{})
	smqpb.RegisterMasterServer(server, m)
	l := b.listen(address)
	go server.Serve(l)
	return server
}

func (b *bed) listen(address string) *bufconn.Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := bufconn.Listen(1 << 20)
	b.listeners[address] = l
	return l
}

func (b *bed) dial(ctx context.Context, address string) (net.Conn, error) {
	b.mu.Lock()
	l := b.listeners[address]
	b.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("connection to %s refused", address)
	}
	return l.DialContext(ctx)
}

// cluster is a way into the cluster with connections of its own.
func (b *bed) cluster() *rpc.Cluster {
	return rpc.NewCluster([]string{masterAddress}, b.conns, b.logger())
}

func (b *bed) logger() *slog.Logger {
	if os.Getenv("SMQ_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// start starts a broker.
func (b *bed) start(name string) *broker.Broker {
	b.t.Helper()
	address := name + ":7310"
	conns := rpc.NewConns(rpc.DialOptions{Dialer: b.dial})
	b.t.Cleanup(conns.Close)
	started := time.Now()
	br, err := broker.Start(b.t.Context(), broker.Config{
		Cluster:   rpc.NewCluster([]string{masterAddress}, conns, b.logger()),
		Listener:  b.listen(address),
		Advertise: address,
		OpenStore: func(context.Context, string) (store.Store, error) {
			var st store.Store = b.st.Handle()
			if b.wrap != nil {
				st = b.wrap(name, st)
			}
			return st, nil
		},
		Lead:   b.lead,
		Limits: b.limits,
		Memory: b.memory, BufferWait: b.wait, StuckAfter: b.stuck,
		Logger: b.logger(),
		Clock:  func() time.Duration { return time.Since(started) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.brokers[address] = br
	return br
}

func (b *bed) lead(o broker.LeadOptions) broker.Leading {
	l := leader.Start(leader.Config{
		Store: o.Store, Self: o.Self, Term: o.Term, Brokers: o.Brokers, Peer: o.Peer, Logger: o.Logger,
	})
	return told{Leading: l, loads: b.loads, sealed: b.sealed}
}

// told is a leader whose reports the test hears: those of loads instead of it.
type told struct {
	broker.Leading
	loads  chan<- *smqpb.ReportLoadsRequest
	sealed chan<- *smqpb.ReportSealedRequest
}

func (l told) ReportSealed(ctx context.Context, r *smqpb.ReportSealedRequest) (*smqpb.ReportSealedResponse, error) {
	if l.sealed != nil {
		l.sealed <- r
	}
	return l.Leading.ReportSealed(ctx, r)
}

func (l told) ReportLoads(ctx context.Context, r *smqpb.ReportLoadsRequest) (*smqpb.ReportLoadsResponse, error) {
	if l.loads == nil {
		return l.Leading.ReportLoads(ctx, r)
	}
	select {
	case l.loads <- r:
		return &smqpb.ReportLoadsResponse{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kill ends a broker without any farewell.
func (b *bed) kill(address string) {
	b.mu.Lock()
	br := b.brokers[address]
	delete(b.brokers, address)
	delete(b.listeners, address)
	b.mu.Unlock()
	br.Close()
}

func (b *bed) broker(address string) *broker.Broker {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.brokers[address]
}

// fakeMaster is a master whose leases never run out by themselves.
type fakeMaster struct {
	smqpb.UnimplementedMasterServer

	mu      sync.Mutex
	masters []string // addresses, the leading one's first
	told    int      // of how many masters, when last asked for the cluster
	hellos  int      // streams begun
	watches int      // the same, of those who watch
	joins   uint64
	term    uint64
	leader  string
	brokers []*registered            // in order of joining
	paused  map[string]chan struct{} // by address: closed when it may join again
	changed chan struct{}            // closed at each change
}

// silentLease is how long a broker may be silent until its lease runs out.
const silentLease = 500 * time.Millisecond

type registered struct {
	info    *smqpb.BrokerInfo
	join    uint64
	expired chan struct{} // closed: the lease has run out
	breaks  chan struct{} // closed: the stream breaks
}

func newFakeMaster() *fakeMaster {
	return &fakeMaster{masters: []string{masterAddress}, changed: make(chan struct{}), paused: make(map[string]chan struct{})}
}

// Cluster tells the state.
func (m *fakeMaster) Cluster(context.Context, *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = len(m.masters)
	return m.state(), nil
}

func (m *fakeMaster) state() *smqpb.ClusterInfo {
	info := &smqpb.ClusterInfo{ClusterId: "c1", Store: "mem:", LeadingMaster: m.masters[0], Leader: m.leaderInfo()}
	for _, address := range m.masters {
		info.Masters = append(info.Masters, &smqpb.MasterInfo{Id: address, Address: address})
	}
	for _, r := range m.brokers {
		info.Brokers = append(info.Brokers, r.info)
	}
	return info
}

func (m *fakeMaster) leaderInfo() *smqpb.LeaderInfo {
	l := &smqpb.LeaderInfo{Broker: m.leader, Term: m.term}
	if r := m.find(m.leader); r != nil {
		l.Address = r.info.Address
	}
	return l
}

func (m *fakeMaster) find(id string) *registered {
	i := slices.IndexFunc(m.brokers, func(r *registered) bool { return r.info.Id == id })
	if i < 0 {
		return nil
	}
	return m.brokers[i]
}

// update makes a change, sees to the leader and tells everybody.
func (m *fakeMaster) update(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	if now := m.find(m.leader); now == nil || now.info.Silent || now.info.Draining {
		for _, r := range m.brokers {
			if !r.info.Silent && !r.info.Draining {
				m.leader = r.info.Id
				m.term++
				break
			}
		}
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// await waits until the condition, which looks at the state, holds.
func (m *fakeMaster) await(ctx context.Context, condition func(*smqpb.ClusterInfo) bool) error {
	for {
		m.mu.Lock()
		state, changed := m.state(), m.changed
		m.mu.Unlock()
		if condition(state) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// expire ends a broker's lease.
func (m *fakeMaster) expire(id smq.BrokerID) {
	m.update(func() {
		r := m.find(string(id))
		close(r.expired)
		m.brokers = slices.DeleteFunc(m.brokers, func(o *registered) bool { return o == r })
	})
}

// lead makes the broker at the address the leader.
func (m *fakeMaster) lead(address string) {
	m.update(func() {
		for _, r := range m.brokers {
			if r.info.Address == address && r.info.Id != m.leader {
				m.leader = r.info.Id
				m.term++
			}
		}
	})
}

// pause keeps a broker from joining again, as if it did not run, until resume.
func (m *fakeMaster) pause(address string) (resume func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	paused := make(chan struct{})
	m.paused[address] = paused
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.paused, address)
		close(paused)
	}
}

// silence notes that a broker's stream has broken. If it is not back soon its
// lease runs out.
func (m *fakeMaster) silence(r *registered) {
	m.update(func() { r.info = &smqpb.BrokerInfo{Id: r.info.Id, Address: r.info.Address, Silent: true} })
	silent := r.info
	time.AfterFunc(silentLease, func() {
		m.mu.Lock()
		still := r.info == silent && m.find(silent.Id) == r
		m.mu.Unlock()
		if still {
			m.expire(smq.BrokerID(silent.Id))
		}
	})
}

// breakOff breaks a broker's stream, so that it is silent until it is back.
func (m *fakeMaster) breakOff(id smq.BrokerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.find(string(id))
	close(r.breaks)
	r.breaks = make(chan struct{})
}

func (m *fakeMaster) broken(r *registered) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return r.breaks
}

// Join keeps a broker's lease.
func (m *fakeMaster) Join(stream grpc.BidiStreamingServer[smqpb.Heartbeat, smqpb.Grant]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	m.mu.Lock()
	paused := m.paused[first.GetHello().GetAddress()]
	m.mu.Unlock()
	if paused != nil {
		select {
		case <-paused:
		case <-stream.Context().Done():
			return nil
		}
	}
	r, err := m.register(first.GetHello())
	if err != nil {
		return err
	}
	beats := make(chan *smqpb.Heartbeat)
	go func() {
		defer close(beats)
		for beat := first; err == nil; beat, err = stream.Recv() {
			select {
			case beats <- beat:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		select {
		case beat, ok := <-beats:
			if !ok {
				m.silence(r)
				return nil
			}
			if beat.GetLeave() {
				m.update(func() { m.brokers = slices.DeleteFunc(m.brokers, func(o *registered) bool { return o == r }) })
				return nil
			}
			if err := stream.Send(m.grant(r, beat)); err != nil {
				return err
			}
		case <-m.broken(r):
			m.silence(r)
			return fmt.Errorf("%w: the connection broke", smq.ErrUnavailable)
		case <-r.expired:
			return fmt.Errorf("%w: broker %s has expired", smq.ErrConflict, r.info.Id)
		}
	}
}

func (m *fakeMaster) register(hello *smqpb.Hello) (r *registered, err error) {
	m.update(func() {
		m.hellos++
		r = m.find(hello.GetBroker())
		switch {
		case r == nil && hello.GetJoin() > 0:
			err = fmt.Errorf("%w: broker %s has expired", smq.ErrConflict, hello.GetBroker())
		case r == nil:
			m.joins++
			r = &registered{join: m.joins, expired: make(chan struct{}), breaks: make(chan struct{})}
			m.brokers = append(m.brokers, r)
		}
		if err == nil {
			r.info = &smqpb.BrokerInfo{Id: hello.GetBroker(), Address: hello.GetAddress()}
		}
	})
	return r, err
}

func (m *fakeMaster) grant(r *registered, beat *smqpb.Heartbeat) *smqpb.Grant {
	if beat.GetDraining() != r.info.GetDraining() {
		m.update(func() {
			r.info = &smqpb.BrokerInfo{Id: r.info.Id, Address: r.info.Address, Draining: beat.GetDraining()}
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state()
	return &smqpb.Grant{
		Sequence: beat.GetSequence(), LeaseMs: 2000, ClusterId: s.ClusterId, Store: s.Store,
		Leader: s.Leader, Brokers: s.Brokers, Join: r.join,
	}
}

// WatchCluster tells of changes at once.
func (m *fakeMaster) WatchCluster(_ *smqpb.ClusterRequest, stream grpc.ServerStreamingServer[smqpb.ClusterInfo]) error {
	m.mu.Lock()
	m.watches++
	m.mu.Unlock()
	for {
		m.mu.Lock()
		state, changed := m.state(), m.changed
		m.mu.Unlock()
		if err := stream.Send(state); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}
