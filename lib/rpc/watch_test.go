package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// pipeNet is a network of one listener in memory, whose connections can fall
// silent: they take what is written and deliver nothing, as a stopped process
// does at the other end.
type pipeNet struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
	silent chan struct{} // closed: the network is silent
}

func newPipeNet() *pipeNet {
	return &pipeNet{accept: make(chan net.Conn), closed: make(chan struct{}), silent: make(chan struct{})}
}

func (p *pipeNet) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeNet) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipeNet) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipeNet) dial(ctx context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accept <- p.mutable(theirs):
		return p.mutable(ours), nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipeNet) mutable(c net.Conn) net.Conn {
	return &mutableConn{Conn: c, silent: p.silent, closed: make(chan struct{})}
}

type mutableConn struct {
	net.Conn
	silent <-chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (c *mutableConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.silent:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *mutableConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// bubble runs test in a synctest bubble with a server of d and a connection.
func bubble(t *testing.T, d dataFuncs, test func(t *testing.T, n *pipeNet, conn *grpc.ClientConn)) {
	synctest.Test(t, func(t *testing.T) {
		n := newPipeNet()
		s := NewServer(ServerOptions{})
		RegisterData(s, d)
		go s.Serve(n)
		conn, err := Dial("peer:1", DialOptions{Dialer: n.dial})
		if err != nil {
			t.Fatal(err)
		}
		test(t, n, conn)
		conn.Close()
		s.Stop()
	})
}

// pass lets the bubble's time go by until d has passed and all is quiet.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestSilentServerIsGivenUp(t *testing.T) {
	serve := func(s PublishStream) error { <-s.Context().Done(); return nil }
	bubble(t, dataFuncs{publish: serve}, func(t *testing.T, n *pipeNet, conn *grpc.ClientConn) {
		c, err := OpenPublish(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute) // quiet, but not silent: the stream must live
		close(n.silent)
		since := time.Now()
		if err := c.Recv(&smqpb.PublishAcks{}); !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("the stream ended with %v", err)
		}
		if took := time.Since(since); took > silentAfter+quietAfter {
			t.Errorf("it took %v to notice", took)
		}
	})
}

func TestSilentClientIsGivenUp(t *testing.T) {
	var ended time.Time
	serve := func(s PublishStream) error {
		<-s.Context().Done()
		ended = time.Now()
		return nil
	}
	bubble(t, dataFuncs{publish: serve}, func(t *testing.T, n *pipeNet, conn *grpc.ClientConn) {
		if _, err := OpenPublish(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		close(n.silent)
		since := time.Now()
		pass(2 * silentAfter)
		if took := ended.Sub(since); took < 0 || took > silentAfter+quietAfter {
			t.Errorf("it took %v to notice", took)
		}
	})
}

// A publisher that sends all the time, to a broker that has no ack to give,
// hears nothing of its own accord: the server's pings only fill quiet times.
func TestServerWithNothingToSayIsNotSilent(t *testing.T) {
	serve := func(s PublishStream) error {
		for {
			if _, err := s.Recv(&smqpb.PublishHead{}); err != nil {
				if err == io.EOF {
					return nil
				}
				return err
			}
		}
	}
	bubble(t, dataFuncs{publish: serve}, func(t *testing.T, n *pipeNet, conn *grpc.ClientConn) {
		c, err := OpenPublish(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		for range 600 {
			if err := c.Send(&smqpb.PublishHead{}, []byte("x")); err != nil {
				t.Fatal(err, c.Recv(&smqpb.PublishAcks{}))
			}
			pass(100 * time.Millisecond)
		}
		if err := c.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := c.Recv(&smqpb.PublishAcks{}); err != io.EOF {
			t.Errorf("the stream ended with %v", err)
		}
	})
}

// stuckConn takes in nothing any more once stuck is closed.
type stuckConn struct {
	net.Conn
	stuck  <-chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (c *stuckConn) Write(b []byte) (int, error) {
	select {
	case <-c.stuck:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return c.Conn.Write(b)
	}
}

func (c *stuckConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Were Get to wait for the lock while Close waits for a peer, no time would pass
// in the bubble, and this would never end.
func TestConnsCloseHoldsNobodyUp(t *testing.T) {
	serve := func(s PublishStream) error { <-s.Context().Done(); return nil }
	bubble(t, dataFuncs{publish: serve}, func(t *testing.T, n *pipeNet, _ *grpc.ClientConn) {
		stuck := make(chan struct{})
		conns := NewConns(DialOptions{Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := n.dial(ctx, addr)
			return &stuckConn{Conn: c, stuck: stuck, closed: make(chan struct{})}, err
		}})
		for _, addr := range []string{"a:1", "b:1"} {
			conn, err := conns.Get(addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := OpenPublish(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
		}
		close(stuck)
		since := time.Now()
		closed := make(chan time.Duration)
		go func() {
			conns.Close()
			closed <- time.Since(since)
		}()
		synctest.Wait()
		if _, err := conns.Get("a:1"); !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("while it closes: %v", err)
		}
		if took := time.Since(since); took != 0 {
			t.Errorf("Get waited %v", took)
		}
		// gRPC gives a peer five seconds to take in a farewell.
		if took := <-closed; took == 0 || took > 6*time.Second {
			t.Errorf("two peers that take nothing in held Close up for %v", took)
		}
	})
}

// gRPC opens a stream anew, unasked, when the server cannot have seen it, and holds
// a lock of the stream's while it waits for a connection: whoever receives would be
// stuck for as long as the sender, whatever its context says, and in this bubble
// for ever.
func TestUnseenStreamIsNotOpenedAnew(t *testing.T) {
	serve := func(s PublishStream) error { <-s.Context().Done(); return nil }
	bubble(t, dataFuncs{publish: serve}, func(t *testing.T, n *pipeNet, _ *grpc.ClientConn) {
		stuck, dials := make(chan struct{}), 0
		var first *stuckConn
		conn, err := Dial("peer:1", DialOptions{Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			if dials++; dials > 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			c, err := n.dial(ctx, addr)
			first = &stuckConn{Conn: c, stuck: stuck, closed: make(chan struct{})}
			return first, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		seen, err := OpenPublish(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(stuck)
		if err := seen.Send(&smqpb.PublishHead{}); err != nil { // is on its way
			t.Fatal(err)
		}
		synctest.Wait()
		unseen, err := OpenPublish(t.Context(), conn) // queues behind
		if err != nil {
			t.Fatal(err)
		}
		first.Close()
		synctest.Wait()
		since := time.Now()
		received := make(chan error)
		go func() { received <- unseen.Recv(&smqpb.PublishAcks{}) }()
		synctest.Wait()
		if err := unseen.Send(&smqpb.PublishHead{}); err == nil {
			t.Error("the stream still takes something in")
		}
		if err := <-received; !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("the stream ended with %v", err)
		}
		if took := time.Since(since); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// quietTest runs test in a bubble with a connection to a server whose publish
// streams are served by serve, and a count of how often its peer was told to be
// quiet.
func quietTest(t *testing.T, serve func(PublishStream) error, test func(n *pipeNet, c *PublishClient, told *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		n := newPipeNet()
		s := NewServer(ServerOptions{})
		RegisterData(s, dataFuncs{publish: serve})
		go s.Serve(n)
		conns := NewConns(DialOptions{Dialer: n.dial})
		var told atomic.Int32
		defer conns.OnQuiet("peer:1", func() { told.Add(1) })()
		conns.OnQuiet("peer:1", func() { t.Error("somebody is told who has had enough") })()
		defer conns.OnQuiet("other:1", func() { t.Error("another peer is told of") })()
		conn, err := conns.Get("peer:1")
		if err != nil {
			t.Fatal(err)
		}
		c, err := OpenPublish(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		test(n, c, &told)
		conns.Close()
		s.Stop()
	})
}

// A peer that falls silent is told of once, before it is given up.
func TestQuietPeerIsToldOf(t *testing.T) {
	serve := func(s PublishStream) error { <-s.Context().Done(); return nil }
	quietTest(t, serve, func(n *pipeNet, c *PublishClient, told *atomic.Int32) {
		pass(time.Minute) // the server has nothing to say but that it lives
		if told.Load() != 0 {
			t.Errorf("told %d times of a peer that lives", told.Load())
		}
		close(n.silent)
		pass(quietAfter)
		if told.Load() != 0 {
			t.Error("told of what may be the time between two signs of life")
		}
		pass(quietAfter)
		if told.Load() != 1 {
			t.Errorf("told %d times", told.Load())
		}
		if err := c.Recv(&smqpb.PublishAcks{}); !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("the stream ended with %v", err)
		}
		if told.Load() != 1 {
			t.Errorf("told %d times of one silence", told.Load())
		}
	})
}

// A peer that is asked for a sign of life and gives one is not told of.
func TestBusyPeerIsNotToldOf(t *testing.T) {
	serve := func(s PublishStream) error {
		for {
			if _, err := s.Recv(&smqpb.PublishHead{}); err != nil {
				return nil
			}
		}
	}
	quietTest(t, serve, func(_ *pipeNet, c *PublishClient, told *atomic.Int32) {
		for range 600 {
			if err := c.Send(&smqpb.PublishHead{}, []byte("x")); err != nil {
				t.Fatal(err)
			}
			pass(100 * time.Millisecond)
		}
		if told.Load() != 0 {
			t.Errorf("told %d times", told.Load())
		}
	})
}
