//go:build unix

package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// relay stands between one broker and the master, so that their connection can
// break while both live. It tells the broker that the master is here, since
// otherwise that would find its own way.
type relay struct {
	smqpb.UnimplementedMasterServer
	t       *testing.T
	address string
	master  smqpb.MasterClient
	server  *grpc.Server
	gate    *gate
}

// newRelay makes a relay to the master, for the length of the test.
func newRelay(t *testing.T, master string) *relay {
	t.Helper()
	conn, err := rpc.Dial(master, rpc.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := &relay{t: t, address: "127.0.0.1:0", master: smqpb.NewMasterClient(conn), gate: newGate()}
	r.mend()
	t.Cleanup(r.cut)
	return r
}

// mend serves at the relay's address, and lets through what was held up.
func (r *relay) mend() {
	r.t.Helper()
	r.gate.open()
	if r.server != nil {
		return
	}
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.address = l.Addr().String()
	r.server = rpc.NewServer(rpc.ServerOptions{})
	smqpb.RegisterMasterServer(r.server, r)
	go r.server.Serve(gatedListener{l, r.gate})
}

// cut breaks all connections, and refuses new ones.
func (r *relay) cut() {
	r.gate.open() // what is held up could not end otherwise
	if r.server != nil {
		r.server.Stop()
		r.server = nil
	}
}

// freeze holds up all that is sent, as a network does that loses every packet.
func (r *relay) freeze() { r.gate.shut() }

// Cluster implements smqpb.MasterServer.
func (r *relay) Cluster(ctx context.Context, req *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	info, err := r.master.Cluster(ctx, req)
	return r.pretend(info), err
}

func (r *relay) pretend(info *smqpb.ClusterInfo) *smqpb.ClusterInfo {
	if info.GetLeadingMaster() != "" {
		info.LeadingMaster = r.address
	}
	for _, m := range info.GetMasters() {
		m.Address = r.address
	}
	return info
}

// WatchCluster implements smqpb.MasterServer.
func (r *relay) WatchCluster(req *smqpb.ClusterRequest, out grpc.ServerStreamingServer[smqpb.ClusterInfo]) error {
	in, err := r.master.WatchCluster(out.Context(), req)
	if err != nil {
		return err
	}
	return pass(in.Recv, func(info *smqpb.ClusterInfo) error { return out.Send(r.pretend(info)) })
}

// Join implements smqpb.MasterServer.
func (r *relay) Join(broker grpc.BidiStreamingServer[smqpb.Heartbeat, smqpb.Grant]) error {
	ctx, cancel := context.WithCancel(broker.Context())
	defer cancel()
	master, err := r.master.Join(ctx)
	if err != nil {
		return err
	}
	go func() {
		if pass(broker.Recv, master.Send) == nil {
			_ = master.CloseSend() // it fails when the stream has broken
			return
		}
		cancel()
	}()
	return pass(master.Recv, broker.Send)
}

// pass passes on messages until there are no more, which is nil.
func pass[M any](recv func() (M, error), send func(M) error) error {
	for {
		m, err := recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = send(m)
		}
		if err != nil {
			return err
		}
	}
}

// gate lets through or holds up.
type gate struct {
	mu   sync.Mutex
	pass chan struct{} // closed while open
}

func newGate() *gate {
	g := &gate{pass: make(chan struct{})}
	close(g.pass)
	return g
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.pass:
	default:
		close(g.pass)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.pass:
		g.pass = make(chan struct{})
	default:
	}
}

func (g *gate) await() {
	g.mu.Lock()
	pass := g.pass
	g.mu.Unlock()
	<-pass
}

// gatedListener accepts connections through a gate.
type gatedListener struct {
	net.Listener
	gate *gate
}

func (l gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.gate.await()
	if err != nil {
		return nil, err
	}
	return gatedConn{c, l.gate}, nil
}

// gatedConn sends, receives and closes through a gate: the other end is not told
// anything while it is shut.
type gatedConn struct {
	net.Conn
	gate *gate
}

func (c gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.gate.await()
	return n, err
}

func (c gatedConn) Write(b []byte) (int, error) {
	c.gate.await()
	return c.Conn.Write(b)
}

func (c gatedConn) Close() error {
	go func() {
		c.gate.await()
		c.Conn.Close()
	}()
	return nil
}
