package rpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// watcher makes the connections below one ClientConn, says when a peer falls
// silent, and gives it up in the end. gRPC's own keepalive on the dialing side
// waits for no less than ten seconds.
type watcher struct {
	dial  func(ctx context.Context, addr string) (net.Conn, error)
	quiet func()        // is told of a peer that does not answer, once for each time; may be nil
	dials *dials        // see reach
	ready chan struct{} // closed when conn is set
	conn  *grpc.ClientConn
}

func (w *watcher) connect(ctx context.Context, addr string) (net.Conn, error) {
	w.dials.begin()
	raw, err := w.dial(ctx, addr)
	if err != nil {
		w.dials.end()
		return nil, dialError(err)
	}
	c := &watchedConn{Conn: raw, ended: w.dials.end, closed: make(chan struct{})}
	go w.watch(c)
	return c, nil
}

// tick is how often a connection is looked at. A peer that has been quiet for
// askTicks is asked for a sign of life; one that gives none is told of after
// quietTicks, and given up after silentTicks.
const (
	tick        = quietAfter / 4
	askTicks    = int(quietAfter / tick)
	quietTicks  = askTicks + 1
	silentTicks = int(silentAfter / tick)
)

// watch looks at c a few times a second. Servers ping connections that are
// quiet in both directions, so that a ping of ours is rare: it takes a peer
// that receives and has nothing to say.
func (w *watcher) watch(c *watchedConn) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var seen uint64 // reads so far
	quiet := 0      // ticks without one
	for {
		select {
		case <-c.closed:
			return
		case <-ticker.C:
		}
		if n := c.reads.Load(); n != seen {
			seen, quiet = n, 0
			continue
		}
		// Counting ticks instead of comparing times forgives a pause of this
		// very process, during which the peer had no chance.
		quiet++
		switch quiet {
		case askTicks:
			go w.ping(ctx)
		case quietTicks:
			if w.quiet != nil {
				w.quiet()
			}
		case silentTicks:
			c.Close()
			return
		}
	}
}

// ping asks for a sign of life; any answer is one, even a refusal.
func (w *watcher) ping(ctx context.Context) {
	select {
	case <-w.ready:
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, silentAfter)
	defer cancel()
	var empty emptypb.Empty
	_ = w.conn.Invoke(ctx, pingMethod, &empty, &empty)
}

// watchedConn counts reads, and says when it is closed.
type watchedConn struct {
	net.Conn
	reads  atomic.Uint64
	ended  func() // is told once that it is closed
	once   sync.Once
	closed chan struct{}
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}

func (c *watchedConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.ended()
	})
	return c.Conn.Close()
}
