package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// connection is one that passes through a door: from its source to the door,
// and from there on to what is behind.
type connection struct {
	from, to string
	front    net.Conn // to the source
	back     net.Conn // to what is behind the door
	cancel   context.CancelFunc
}

// dialTimeout bounds the way from a door to what is behind it, on this machine.
const dialTimeout = 5 * time.Second

// carry serves a connection that a door has accepted, until it ends.
func (n *Network) carry(d *Door, front *net.TCPConn) {
	from := n.source(front)
	back, err := n.reach(d, from)
	if err != nil {
		reset(front)
		return
	}
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	c := &connection{from: from, to: d.part, front: front, back: back, cancel: cancel}
	if !n.enter(c) {
		c.abort()
		return
	}
	defer n.leave(c)
	var lanes sync.WaitGroup
	lanes.Go(func() { c.lane(ctx, n, from, d.part, front, back) })
	lanes.Go(func() { c.lane(ctx, n, d.part, from, back, front) })
	lanes.Wait()
	front.Close()
	back.Close()
}

var errRefused = errors.New("refused")

// reach connects to what is behind a door, when the rules let it.
func (n *Network) reach(d *Door, from string) (net.Conn, error) {
	// Opening a connection takes both ways.
	if err := n.awaitPassage(n.ctx, from, d.part); err != nil {
		return nil, err
	}
	if err := n.awaitPassage(n.ctx, d.part, from); err != nil {
		return nil, err
	}
	backend := d.leads()
	if backend == "" || n.refuses(from, d.part) {
		return nil, errRefused
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(n.ctx, "tcp", backend)
}

// enter notes a connection, unless the network is closed or a rule has come into
// force meanwhile that refuses it.
func (n *Network) enter(c *connection) bool {
	if n.refuses(c.from, c.to) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return false
	}
	n.connections[c] = struct{}{}
	return true
}

func (n *Network) leave(c *connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.connections, c)
}

// abort breaks the connection at both ends.
func (c *connection) abort() {
	c.cancel()
	reset(c.front)
	reset(c.back)
}

// reset closes a connection so that the other end sees it break.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // it fails when the connection is closed already
	}
	c.Close()
}

// Sizes of what a lane holds: bytes read at once, and how many times that much
// may be under way.
const (
	parcelSize = 32 << 10
	underWay   = 64
)

// parcel is what was read at once, or why nothing more comes.
type parcel struct {
	data []byte
	due  time.Time // not to arrive before
	err  error
}

// lane carries what comes from src on to dst, as the rules say for bytes that
// travel from one part to another. It returns when no more can come.
func (c *connection) lane(ctx context.Context, n *Network, from, to string, src, dst net.Conn) {
	queue := make(chan parcel, underWay)
	go receive(ctx, n, from, to, src, queue)
	lost := false // nobody takes it any more
	for p := range queue {
		if pause(ctx, time.Until(p.due)) != nil || n.awaitPassage(ctx, from, to) != nil {
			c.abort()
			return
		}
		switch {
		case p.err == nil && !lost:
			lost = !send(ctx, n, from, to, dst, p.data)
		case errors.Is(p.err, io.EOF):
			closeWrite(dst)
		case p.err != nil:
			c.abort()
		}
	}
}

// receive reads until the end.
func receive(ctx context.Context, n *Network, from, to string, src net.Conn, queue chan<- parcel) {
	defer close(queue)
	for {
		data := make([]byte, parcelSize)
		size, err := src.Read(data)
		e, _ := n.effect(from, to)
		due := time.Now().Add(e.delay)
		if size > 0 && !push(ctx, queue, parcel{data: data[:size], due: due}) {
			return
		}
		if err != nil {
			push(ctx, queue, parcel{err: err, due: due})
			return
		}
	}
}

func push(ctx context.Context, queue chan<- parcel, p parcel) bool {
	select {
	case queue <- p:
		return true
	case <-ctx.Done():
		return false
	}
}

// send writes data no faster than the rules allow. It reports whether the other
// end takes any.
func send(ctx context.Context, n *Network, from, to string, dst net.Conn, data []byte) bool {
	if e, _ := n.effect(from, to); e.rate > 0 {
		took := time.Duration(int64(len(data)) * int64(time.Second) / e.rate)
		if pause(ctx, took) != nil {
			return false
		}
	}
	_, err := dst.Write(data)
	return err == nil
}

// closeWrite tells the other end that nothing more comes.
func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite() // it fails when the other end has gone
		return
	}
	c.Close()
}
