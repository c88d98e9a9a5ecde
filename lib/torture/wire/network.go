package wire

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Owner tells which part holds the other end of a connection that was accepted
// here: remote is that end, local ours. Empty: it is not known.
type Owner func(remote, local *net.TCPAddr) string

// Network is a set of doors, and the rules between the parts behind them. It is
// safe for concurrent use.
type Network struct {
	owner  Owner
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	// dialing is held while this process opens a connection and notes who it
	// is for, so that the door does not ask too early.
	dialing sync.Mutex
	dialed  map[string]string // by local address, the part that dialed

	mu          sync.Mutex
	rules       []*Rule // replaced, never changed
	changed     chan struct{}
	connections map[*connection]struct{}
	doors       []*Door
	accepted    int
	unknown     int
	running     sync.WaitGroup
}

// New makes a network without doors. A nil owner knows nobody.
func New(owner Owner) *Network {
	if owner == nil {
		owner = func(_, _ *net.TCPAddr) string { return "" }
	}
	n := &Network{
		owner: owner, dialed: make(map[string]string),
		changed: make(chan struct{}), connections: make(map[*connection]struct{}),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Door is where a part is reached. Its address stays the same, while the part
// behind it may come and go.
type Door struct {
	network  *Network
	part     string
	listener net.Listener

	mu      sync.Mutex
	backend string
}

// Door makes a door at a free port of the loopback interface. Nothing is
// behind it yet, so it refuses connections.
func (n *Network) Door(part string) (*Door, error) { return n.DoorAt(part, "127.0.0.1:0") }

// DoorAt makes a door at an address, host:port.
func (n *Network) DoorAt(part, address string) (*Door, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open a door to %s: %w", part, err)
	}
	d := &Door{network: n, part: part, listener: l}
	n.mu.Lock()
	n.doors = append(n.doors, d)
	n.mu.Unlock()
	n.running.Go(d.serve)
	return d, nil
}

// Address is the door's, host:port.
func (d *Door) Address() string { return d.listener.Addr().String() }

// Lead has new connections led to an address, host:port; empty: they are
// refused.
func (d *Door) Lead(backend string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.backend = backend
}

func (d *Door) leads() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.backend
}

// acceptPause follows a failed accept, for instance for want of file
// descriptors.
const acceptPause = 50 * time.Millisecond

func (d *Door) serve() {
	for {
		c, err := d.listener.Accept()
		switch {
		case err == nil:
			d.network.running.Go(func() { d.network.carry(d, c.(*net.TCPConn)) })
		case d.network.ctx.Err() != nil:
			return
		default:
			if pause(d.network.ctx, acceptPause) != nil {
				return
			}
		}
	}
}

// Dialer opens connections as a part that lives in this process.
func (n *Network) Dialer(part string) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		n.dialing.Lock()
		defer n.dialing.Unlock()
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		n.dialed[c.LocalAddr().String()] = part
		return c, nil
	}
}

// source is the part that opened a connection which the door accepted.
func (n *Network) source(c *net.TCPConn) string {
	remote, local := c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr)
	n.dialing.Lock()
	part, ours := n.dialed[remote.String()]
	delete(n.dialed, remote.String())
	n.dialing.Unlock()
	if !ours {
		part = n.owner(remote, local)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accepted++
	if part == "" {
		n.unknown++
	}
	return part
}

// Accepted is how many connections have come through the doors, and how many of
// them from parts that are not known.
func (n *Network) Accepted() (all, unknown int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.accepted, n.unknown
}

// Close breaks all connections, closes the doors, and waits until all
// goroutines have ended.
func (n *Network) Close() {
	n.cancel()
	n.mu.Lock()
	doors := n.doors
	var all []*connection
	for c := range n.connections {
		all = append(all, c)
	}
	n.mu.Unlock()
	for _, d := range doors {
		d.listener.Close()
	}
	for _, c := range all {
		c.abort()
	}
	n.running.Wait()
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
