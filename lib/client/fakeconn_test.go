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
	m := &muteConn{Conn: conn, mute: make(chan struct{}), closed: make(chan struct{})}
	c.conns[addr] = append(c.conns[addr], m)
	if c.silent[addr] {
		close(m.mute)
	}
	return m, nil
}

// muteConn is a client's end of a connection; from a moment on nothing comes
// any more, and what is sent is lost.
type muteConn struct {
	net.Conn
	mute   chan struct{}
	closed chan struct{}
	once   sync.Once
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
