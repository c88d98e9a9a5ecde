package master

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// streamLayer is raft's network: connections that are accepted at one address
// and known to the others by another. Raft leaves its connections open when it
// shuts down; they are closed here.
type streamLayer struct {
	net.Listener
	advertise string
	dial      func(addr string, timeout time.Duration) (net.Conn, error)

	mu     sync.Mutex
	conns  map[*streamConn]bool
	closed bool
}

func newStreamLayer(c Config) *streamLayer {
	l := &streamLayer{Listener: c.RaftListener, advertise: c.RaftAdvertise, dial: c.RaftDial, conns: make(map[*streamConn]bool)}
	if l.dial == nil {
		l.dial = func(addr string, timeout time.Duration) (net.Conn, error) {
			return net.DialTimeout("tcp", addr, timeout)
		}
	}
	return l
}

// Dial implements raft.StreamLayer.
func (l *streamLayer) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	c, err := l.dial(string(addr), timeout)
	if err != nil {
		return nil, err
	}
	return l.track(c)
}

// Accept implements net.Listener.
func (l *streamLayer) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.track(c)
}

// Addr is what the others call this member.
func (l *streamLayer) Addr() net.Addr { return advertised(l.advertise) }

// Close stops listening and closes every connection.
func (l *streamLayer) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	l.closed = true
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for c := range conns {
		c.Conn.Close()
	}
	return err
}

func (l *streamLayer) track(c net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	tracked := &streamConn{c, l}
	l.conns[tracked] = true
	return tracked, nil
}

type streamConn struct {
	net.Conn
	layer *streamLayer
}

// Close implements net.Conn.
func (c *streamConn) Close() error {
	c.layer.mu.Lock()
	delete(c.layer.conns, c)
	c.layer.mu.Unlock()
	return c.Conn.Close()
}

// advertised is an address that others resolve.
type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }
