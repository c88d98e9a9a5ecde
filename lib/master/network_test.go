package master

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// network connects the nodes of a test in memory. An address is "node:port".
// Nodes can be separated: what they send each other gets lost, without anybody
// being told.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	conns     map[*lossyConn]bool
	cut       map[string][]string // a node, and those that it is separated from
}

// everybody stands for all nodes in cut.
const everybody = "*"

func newNetwork() *network {
	return &network{listeners: map[string]*listener{}, conns: map[*lossyConn]bool{}, cut: map[string][]string{}}
}

// listener is bufconn's, closed as a net.Listener is.
type listener struct {
	*bufconn.Listener
	n    *network
	addr string
}

func (n *network) listen(addr string) *listener {
	l := &listener{bufconn.Listen(1 << 20), n, addr}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[addr] = l
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *listener) Close() error {
	l.n.mu.Lock()
	if l.n.listeners[l.addr] == l {
		delete(l.n.listeners, l.addr)
	}
	l.n.mu.Unlock()
	return l.Listener.Close()
}

// dialer is the network as the given node sees it.
func (n *network) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		to, _, _ := strings.Cut(addr, ":")
		n.mu.Lock()
		l, lost := n.listeners[addr], n.separated(from, to)
		n.mu.Unlock()
		if lost {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if l == nil {
			return nil, errors.New("connection refused")
		}
		c, err := l.DialContext(ctx)
		if err != nil {
			return nil, err
		}
		lossy := &lossyConn{Conn: c, n: n, ends: [2]string{from, to}}
		n.mu.Lock()
		n.conns[lossy] = true
		n.mu.Unlock()
		return lossy, nil
	}
}

func (n *network) raftDialer(from string) func(string, time.Duration) (net.Conn, error) {
	dial := n.dialer(from)
	return func(addr string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return dial(ctx, addr)
	}
}

// isolate separates a node from the given ones, or from everybody.
func (n *network) isolate(node string, from ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(from) == 0 {
		from = []string{everybody}
	}
	n.cut[node] = from
}

// heal ends the isolation of a node. Its connections are broken, since bytes
// are missing in them.
func (n *network) heal(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if n.separated(c.ends[0], c.ends[1]) {
			go c.Close()
		}
	}
	delete(n.cut, node)
}

// separated is called with the lock held.
func (n *network) separated(a, b string) bool {
	cuts := func(a, b string) bool { return slices.Contains(n.cut[a], b) || slices.Contains(n.cut[a], everybody) }
	return cuts(a, b) || cuts(b, a)
}

func (n *network) loses(c *lossyConn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.separated(c.ends[0], c.ends[1])
}

// lossyConn is the dialing end of a connection, and loses what passes it in
// either direction while its ends are separated.
type lossyConn struct {
	net.Conn
	n    *network
	ends [2]string
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if c.n.loses(c) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *lossyConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.n.loses(c) {
			return n, err
		}
	}
}

func (c *lossyConn) Close() error {
	c.n.mu.Lock()
	delete(c.n.conns, c)
	c.n.mu.Unlock()
	return c.Conn.Close()
}
