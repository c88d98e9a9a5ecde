package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// network connects processes in memory. An address is "process:port".
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	lanes     map[*lane]struct{}
	cut       map[string]chan struct{} // processes cut off; closed when they are back
}

func newNetwork() *network {
	return &network{listeners: make(map[string]*bufconn.Listener), lanes: make(map[*lane]struct{}), cut: make(map[string]chan struct{})}
}

func processOf(address string) string {
	name, _, _ := strings.Cut(address, ":")
	return name
}

// listen makes an address accept connections.
func (n *network) listen(address string) net.Listener {
	l := bufconn.Listen(1 << 20)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

// dialer is the network as one process sees it.
func (n *network) dialer(from string) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		to := processOf(address)
		if err := n.wait(ctx, from, to); err != nil {
			return nil, err
		}
		n.mu.Lock()
		l := n.listeners[address]
		n.mu.Unlock()
		if l == nil {
			return nil, fmt.Errorf("connection to %s refused", address)
		}
		c, err := l.DialContext(ctx)
		if err != nil {
			return nil, err
		}
		la := &lane{Conn: c, n: n, from: from, to: to}
		la.life, la.end = context.WithCancel(context.Background())
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lanes[la] = struct{}{}
		return la, nil
	}
}

// wait returns when neither end is cut off.
func (n *network) wait(ctx context.Context, ends ...string) error {
	for _, name := range ends {
		n.mu.Lock()
		cut := n.cut[name]
		n.mu.Unlock()
		if cut == nil {
			continue
		}
		select {
		case <-cut:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// cutOff lets nothing through to and from a process until mend: what is sent
// waits, as in a network that loses packets, and nobody is told.
func (n *network) cutOff(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[name] == nil {
		n.cut[name] = make(chan struct{})
	}
}

func (n *network) mend(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cut := n.cut[name]; cut != nil {
		close(cut)
		delete(n.cut, name)
	}
}

// kill breaks all connections of a process and lets no others be made to it.
func (n *network) kill(name string) {
	n.mu.Lock()
	for address := range n.listeners {
		if processOf(address) == name {
			delete(n.listeners, address)
		}
	}
	n.mu.Unlock()
	n.breakAll(name)
}

// breakAll breaks all connections that a process has now.
func (n *network) breakAll(name string) {
	n.mu.Lock()
	var broken []*lane
	for la := range n.lanes {
		if la.from == name || la.to == name {
			broken = append(broken, la)
		}
	}
	n.mu.Unlock()
	for _, la := range broken {
		_ = la.Close() // it has no better end
	}
}

// lane is the dialling end of a connection, through which both directions pass.
type lane struct {
	net.Conn
	n        *network
	from, to string
	life     context.Context // ends by Close
	end      context.CancelFunc
}

// Read holds back what has come while an end is cut off.
func (l *lane) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err != nil {
		return n, err
	}
	if l.n.wait(l.life, l.from, l.to) != nil {
		return 0, net.ErrClosed
	}
	return n, nil
}

// Write holds back what is sent meanwhile. When the other end has closed, all is
// over, reads that are held back included, as with a connection that is reset:
// gRPC does not rest while only writes fail, and in a bubble no time passes then.
func (l *lane) Write(p []byte) (int, error) {
	if l.n.wait(l.life, l.from, l.to) != nil {
		return 0, net.ErrClosed
	}
	n, err := l.Conn.Write(p)
	if err != nil {
		_ = l.Close() // the error to tell is the other one
	}
	return n, err
}

// Close closes both ends.
func (l *lane) Close() error {
	l.end()
	l.n.mu.Lock()
	delete(l.n.lanes, l)
	l.n.mu.Unlock()
	return l.Conn.Close()
}
