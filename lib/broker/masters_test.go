package broker_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// await waits until the condition, which looks at the master, holds.
func (b *bed) await(what string, condition func() bool) {
	b.t.Helper()
	for ctx := within(b.t); ; {
		b.master.mu.Lock()
		holds := condition()
		b.master.mu.Unlock()
		if holds {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			b.t.Fatal(what)
		}
	}
}

// A broker goes with the masters, also when all that it was told of at its start
// are gone.
func TestBrokersFollowTheMasters(t *testing.T) {
	b := newBed(t, "a")
	const next = "next:7300"
	after := b.serve(b.master, next)
	t.Cleanup(after.Stop)
	hellos := 0
	// When it asks for the second time it has the first answer.
	for n, masters := range [][]string{{masterAddress, next}, {masterAddress, next, "other:7300"}} {
		b.master.update(func() { b.master.masters = masters })
		b.await("the broker does not ask who the masters are", func() bool { return b.master.told == n+2 })
	}
	b.master.update(func() { b.master.masters, hellos = []string{next}, b.master.hellos })
	b.mu.Lock()
	delete(b.listeners, masterAddress)
	b.mu.Unlock()
	b.server.Stop()
	b.await("the broker does not join at the next master", func() bool { return b.master.hellos > hellos })
}

// hangingMaster takes everything in, and from some time on says nothing.
type hangingMaster struct {
	*fakeMaster
	hung chan struct{} // closed: it says nothing
}

// wait returns when the master has something to say, or nobody waits for it.
func (m hangingMaster) wait(ctx context.Context) {
	select {
	case <-m.hung:
		<-ctx.Done()
	default:
	}
}

func (m hangingMaster) Cluster(ctx context.Context, req *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	m.wait(ctx)
	return m.fakeMaster.Cluster(ctx, req)
}

func (m hangingMaster) Join(s grpc.BidiStreamingServer[smqpb.Heartbeat, smqpb.Grant]) error {
	return m.fakeMaster.Join(hangingJoin{s, m})
}

func (m hangingMaster) WatchCluster(req *smqpb.ClusterRequest, s grpc.ServerStreamingServer[smqpb.ClusterInfo]) error {
	return m.fakeMaster.WatchCluster(req, hangingWatch{s, m})
}

type hangingJoin struct {
	grpc.BidiStreamingServer[smqpb.Heartbeat, smqpb.Grant]
	m hangingMaster
}

func (s hangingJoin) Send(g *smqpb.Grant) error {
	s.m.wait(s.Context())
	return s.BidiStreamingServer.Send(g)
}

type hangingWatch struct {
	grpc.ServerStreamingServer[smqpb.ClusterInfo]
	m hangingMaster
}

func (s hangingWatch) Send(info *smqpb.ClusterInfo) error {
	s.m.wait(s.Context())
	return s.ServerStreamingServer.Send(info)
}

// A master that is paused does not break off, and gives no leases. Its brokers join at
// the one that leads by now, and hear from that how the cluster is.
func TestBrokersLeaveAMasterThatHangs(t *testing.T) {
	const next = "next:7300"
	m := hangingMaster{newFakeMaster(), make(chan struct{})}
	m.masters = []string{masterAddress, next}
	b := newBedOf(t, m)
	b.master = m.fakeMaster
	t.Cleanup(b.serve(m.fakeMaster, next).Stop)
	b.start("a")
	b.await("the broker does not watch the masters", func() bool { return m.hellos == 1 && m.watches > 0 })

	close(m.hung)
	hellos, watches := 0, 0
	m.update(func() { m.masters, hellos, watches = []string{next, masterAddress}, m.hellos, m.watches })
	b.await("the broker does not join at the next master", func() bool { return m.hellos > hellos })
	b.await("the broker does not watch the next master", func() bool { return m.watches > watches })
}
