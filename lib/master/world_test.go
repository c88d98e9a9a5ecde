package master

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// world is a test's masters and brokers, in a synctest bubble: its time passes
// only while all of them wait.
type world struct {
	t     *testing.T
	net   *network
	conns *rpc.Conns // the brokers'
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		w := &world{t: t, net: n, conns: rpc.NewConns(rpc.DialOptions{Dialer: n.dialer("broker")})}
		t.Cleanup(w.conns.Close)
		test(t, w)
	})
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// node is a running master.
type node struct {
	*Master
	t      *testing.T
	name   string
	server *grpc.Server
	conns  *rpc.Conns
	jump   *atomic.Int64 // what its clock is ahead, ns
	dead   bool
}

// start runs a master by itself; change, if not nil, changes its configuration.
func (w *world) start(name string, change func(*Config)) *node {
	w.t.Helper()
	n := &node{t: w.t, name: name, jump: new(atomic.Int64), conns: rpc.NewConns(rpc.DialOptions{Dialer: w.net.dialer(name)})}
	begin := time.Now()
	c := Config{
		Advertise: name + ":1",
		StoreURL:  "mem://",
		RaftDial:  w.net.raftDialer(name),
		Conns:     n.conns,
		Clock:     func() time.Duration { return time.Since(begin) + time.Duration(n.jump.Load()) },
	}
	if change != nil {
		change(&c)
	}
	var err error
	if n.Master, err = Start(c); err != nil {
		w.t.Fatal(err)
	}
	n.server = rpc.NewServer(rpc.ServerOptions{})
	n.Register(n.server)
	go n.server.Serve(w.net.listen(c.Advertise))
	w.t.Cleanup(n.kill)
	return n
}

// kill ends the master as a crash would, as far as the others can see.
func (n *node) kill() {
	if n.dead {
		return
	}
	n.dead = true
	n.server.Stop()
	n.conns.Close()
	n.stop(nil)
	<-n.Done()
}

// startAll runs several masters that agree, each with the directory that dirs
// has for it.
func (w *world) startAll(dirs map[string]string) map[string]*node {
	w.t.Helper()
	nodes := make(map[string]*node)
	for name := range dirs {
		nodes[name] = w.startMember(name, dirs, nil)
	}
	for _, n := range nodes {
		<-n.Ready()
	}
	return nodes
}

func (w *world) startMember(name string, dirs map[string]string, change func(*Config)) *node {
	w.t.Helper()
	return w.start(name, func(c *Config) {
		for peer := range dirs {
			c.Peers = append(c.Peers, peer+":2")
		}
		c.RaftAdvertise = name + ":2"
		c.RaftListener = w.net.listen(name + ":2")
		c.DataDir = dirs[name]
		if change != nil {
			change(c)
		}
	})
}

func (w *world) threeDirs() map[string]string {
	return map[string]string{"m1": w.t.TempDir(), "m2": w.t.TempDir(), "m3": w.t.TempDir()}
}

// leader waits until one of the nodes leads and is ready for brokers.
func (w *world) leader(nodes map[string]*node) *node {
	w.t.Helper()
	for range 1000 {
		for _, n := range nodes {
			if _, err := n.leading(); err == nil && !n.dead {
				return n
			}
		}
		pass(10 * time.Millisecond)
	}
	w.t.Fatal("no master leads")
	return nil
}

// testBroker is a broker's stream to a master.
type testBroker struct {
	t      *testing.T
	id     smq.BrokerID
	join   uint64
	cancel context.CancelFunc
	stream grpc.BidiStreamingClient[smqpb.Heartbeat, smqpb.Grant]
	sent   uint64
}

// dial opens a stream to a master and says hello.
func (w *world) dial(addr string, id smq.BrokerID, join uint64) *testBroker {
	w.t.Helper()
	conn, err := w.conns.Get(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	b := &testBroker{t: w.t, id: id, cancel: cancel}
	if b.stream, err = smqpb.NewMasterClient(conn).Join(ctx); err != nil {
		w.t.Fatal(err)
	}
	b.send(&smqpb.Heartbeat{Hello: &smqpb.Hello{Broker: string(id), Address: string(id) + ":9", Join: join}})
	return b
}

// join dials and expects to be granted a lease.
func (w *world) join(n *node, id smq.BrokerID) *testBroker {
	w.t.Helper()
	b := w.dial(n.config.Advertise, id, 0)
	b.join = b.granted().GetJoin()
	return b
}

func (b *testBroker) send(h *smqpb.Heartbeat) {
	b.t.Helper()
	b.sent++
	h.Sequence = b.sent
	if err := b.stream.Send(h); err != nil {
		b.t.Fatal(err)
	}
}

// granted waits for the grant of the latest heartbeat.
func (b *testBroker) granted() *smqpb.Grant {
	b.t.Helper()
	g, err := b.stream.Recv()
	if err != nil {
		b.t.Fatalf("broker %s: %v", b.id, err)
	}
	if g.GetSequence() != b.sent {
		b.t.Fatalf("broker %s: a grant of heartbeat %d, want %d", b.id, g.GetSequence(), b.sent)
	}
	return g
}

// beat sends a heartbeat and waits for its grant.
func (b *testBroker) beat() *smqpb.Grant {
	b.t.Helper()
	b.send(&smqpb.Heartbeat{})
	return b.granted()
}

// live sends heartbeats until the stream ends.
func (b *testBroker) live() {
	go func() {
		for b.stream.Send(&smqpb.Heartbeat{}) == nil {
			select {
			case <-time.After(500 * time.Millisecond):
			case <-b.stream.Context().Done():
				return
			}
		}
	}()
	go func() {
		for {
			if _, err := b.stream.Recv(); err != nil {
				return
			}
		}
	}()
}

// ended waits for the end of the stream.
func (b *testBroker) ended() error {
	for {
		if _, err := b.stream.Recv(); err != nil {
			return err
		}
	}
}

// crash breaks the stream off.
func (b *testBroker) crash() {
	b.cancel()
	synctest.Wait()
}

// seen is the broker as n has it; nil when it is not there.
func (n *node) seen(id smq.BrokerID) *smqpb.BrokerInfo {
	for _, b := range n.Info().GetBrokers() {
		if b.GetId() == string(id) {
			return b
		}
	}
	return nil
}

// leads is the leading broker as n has it.
func (n *node) leads() smq.BrokerID { return smq.BrokerID(n.Info().GetLeader().GetBroker()) }
