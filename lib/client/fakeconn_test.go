package client

import (
	"context"
	"fmt"
	"net"
	"sync"
)

func (c *fakeCluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[addr]
	if l == nil {
		return nil, fmt.Errorf("connection to %s refused", addr)
	}
	conn, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	m := &muteConn{Conn: conn, cluster: c, addr: addr, mute: make(chan struct{}), closed: make(chan struct{})}
	c.conns[addr] = append(c.conns[addr], m)
	if c.silent[addr] {
		close(m.mute)
	}
	return m, nil
}

// muteConn is a client's end of a connection; from a moment on nothing comes
// any more, and what is sent is lost. Or what comes is held up for a time.
type muteConn struct {
	net.Conn
	cluster *fakeCluster
	addr    string
	mute    chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func (c *muteConn) muted() bool {
	select {
	case <-c.mute:
		return true
	default:
		return false
	}
}

func (c *muteConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.muted() {
		<-c.closed
		return 0, net.ErrClosed
	}
	if resumed := c.cluster.pauseOf(c.addr); resumed != nil {
		select {
		case <-resumed:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

func (c *muteConn) Write(b []byte) (int, error) {
	if c.muted() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *muteConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// silence cuts a broker off without closing a connection: a paused process, a
// network that swallows packets. Its segments count as lost.
func (c *fakeCluster) silence(b *fakeBroker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent[b.addr] = true
	for _, m := range c.conns[b.addr] {
		close(m.mute)
	}
	c.conns[b.addr] = nil
}

// pause has a broker go on with its work and be heard no more, until resume lets
// all that it has said through. Its segments count as lost.
func (c *fakeCluster) pause(b *fakeBroker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused[b.addr] = make(chan struct{})
}

func (c *fakeCluster) resume(b *fakeBroker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if resumed := c.paused[b.addr]; resumed != nil {
		delete(c.paused, b.addr)
		close(resumed)
	}
}

// pauseOf is what is closed when the broker at an address is heard again; nil: it
// is heard.
func (c *fakeCluster) pauseOf(addr string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused[addr]
}
