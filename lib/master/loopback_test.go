package master

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// tcpMember is a master on loopback, with real sockets, files and time.
type tcpMember struct {
	config Config // without its listener
	server *grpc.Server
	*Master
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (m *tcpMember) start(t *testing.T, raft, rpcs net.Listener) {
	t.Helper()
	c := m.config
	c.RaftListener = raft
	var err error
	if m.Master, err = Start(c); err != nil {
		t.Fatal(err)
	}
	m.server = rpc.NewServer(rpc.ServerOptions{})
	m.Register(m.server)
	go m.server.Serve(rpcs)
}

// kill ends the member without any farewell.
func (m *tcpMember) kill() {
	m.server.Stop()
	m.stop(nil)
	<-m.Done()
}

// threeOnLoopback starts three masters and returns them by gRPC address.
func threeOnLoopback(t *testing.T) map[string]*tcpMember {
	t.Helper()
	members := make(map[string]*tcpMember)
	var peers []string
	rafts := make(map[string]net.Listener)
	grpcs := make(map[string]net.Listener)
	for range 3 {
		raft, rpcs := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
		addr := rpcs.Addr().String()
		peers = append(peers, raft.Addr().String())
		rafts[addr], grpcs[addr] = raft, rpcs
		members[addr] = &tcpMember{config: Config{
			Advertise: addr, RaftAdvertise: raft.Addr().String(), StoreURL: "mem://", DataDir: t.TempDir(),
			LeaseDuration: time.Minute, // a slow machine must not let it run out
		}}
	}
	for addr, m := range members {
		m.config.Peers = peers
		m.start(t, rafts[addr], grpcs[addr])
		t.Cleanup(m.kill)
	}
	return members
}

// joinTCP registers a broker with whichever master leads, and keeps its lease.
// The returned function waits for the end of the stream.
func joinTCP(t *testing.T, ctx context.Context, c *rpc.Cluster, hello *smqpb.Hello) (*smqpb.Grant, func() error) {
	t.Helper()
	for {
		client, _, err := c.Master(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := client.Join(ctx)
		var grant *smqpb.Grant
		if err == nil {
			_ = stream.Send(&smqpb.Heartbeat{Hello: hello}) // Recv tells
			grant, err = stream.Recv()
		}
		if errors.Is(err, smq.ErrNotLeader) || errors.Is(err, smq.ErrUnavailable) {
			continue // the answer was of a moment before an election
		}
		if err != nil {
			t.Fatal(err)
		}
		return grant, func() error { return beatUntilEnd(stream) }
	}
}

func beatUntilEnd(stream grpc.BidiStreamingClient[smqpb.Heartbeat, smqpb.Grant]) error {
	go func() {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for stream.Send(&smqpb.Heartbeat{}) == nil {
			select {
			case <-ticker.C:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

func TestThreeOnLoopbackSurviveTheirLeaderAndARestart(t *testing.T) {
	members := threeOnLoopback(t)
	conns := rpc.NewConns(rpc.DialOptions{})
	t.Cleanup(conns.Close)
	var addrs []string
	for addr := range members {
		addrs = append(addrs, addr)
	}
	c := rpc.NewCluster(addrs, conns, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	hello := &smqpb.Hello{Broker: "b1", Address: "127.0.0.1:1"}
	first, wait := joinTCP(t, ctx, c, hello)
	ended := make(chan error, 1)
	go func() { ended <- wait() }()

	_, leading, err := c.Master(ctx)
	if err != nil {
		t.Fatal(err)
	}
	members[leading].kill()
	if err := <-ended; err == nil {
		t.Error("the stream outlived its master")
	}
	hello.Join = first.GetJoin()
	second, _ := joinTCP(t, ctx, c, hello)
	if second.GetJoin() != first.GetJoin() || second.GetClusterId() != first.GetClusterId() || second.GetLeader().GetBroker() != "b1" || second.GetLeader().GetTerm() != 1 {
		t.Errorf("grant %v, before %v", second, first)
	}

	for addr, m := range members {
		if addr != leading {
			m.kill()
		}
	}
	for addr, m := range members {
		m.start(t, listen(t, m.config.RaftAdvertise), listen(t, addr))
	}
	third, _ := joinTCP(t, ctx, c, hello)
	if third.GetJoin() != first.GetJoin() || third.GetClusterId() != first.GetClusterId() || third.GetLeader().GetTerm() != 1 {
		t.Errorf("after a restart of all %v, before %v", third, first)
	}
}
