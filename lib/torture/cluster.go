package torture

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/torture/wire"
)

// cluster is a cluster of real processes, with a network that can be broken.
type cluster struct {
	options Options
	network *wire.Network
	store   *storage
	masters []*daemon
	brokers []*daemon
	crashed func(who, how string)
	log     *os.File // what the clients say

	mu      sync.Mutex
	clients []string // parts of the network
	ending  bool     // nothing is started again
}

// newCluster makes a cluster whose processes are not started yet. crashed is
// told of each process that ends by itself.
func newCluster(ctx context.Context, o Options, crashed func(who, how string)) (*cluster, error) {
	c := &cluster{options: o, crashed: crashed}
	c.network = wire.New(wire.Processes(c.parts))
	if err := c.make(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) make(ctx context.Context) error {
	var err error
	if err := os.MkdirAll(c.logs(), 0o755); err != nil {
		return err
	}
	if c.log, err = os.Create(filepath.Join(c.logs(), "clients.log")); err != nil {
		return err
	}
	if c.store, err = newStorage(ctx, c.options, c.network, c.died); err != nil {
		return err
	}
	for i := range c.options.Masters {
		m, err := c.newDaemon("master-"+strconv.Itoa(i+1), c.options.Masters > 1)
		if err != nil {
			return err
		}
		c.masters = append(c.masters, m)
	}
	for i, m := range c.masters {
		m.command = c.masterCommand(i)
	}
	for i := range c.options.Brokers {
		b, err := c.newDaemon("broker-"+strconv.Itoa(i+1), false)
		if err != nil {
			return err
		}
		b.command = c.brokerCommand(b)
		c.brokers = append(c.brokers, b)
	}
	return nil
}

// logs is the directory for what everybody says.
func (c *cluster) logs() string { return filepath.Join(c.options.Dir, "logs") }

func (c *cluster) newDaemon(name string, raft bool) (*daemon, error) {
	d := &daemon{name: name, dir: c.logs(), died: c.died}
	doors := 1
	if raft {
		doors = 2
	}
	for range doors {
		door, err := c.network.Door(name)
		if err != nil {
			return nil, err
		}
		d.doors = append(d.doors, door)
	}
	return d, nil
}

func (c *cluster) masterCommand(i int) func([]string) *exec.Cmd {
	m := c.masters[i]
	return func(addresses []string) *exec.Cmd {
		args := []string{
			"--listen", addresses[0], "--advertise", m.address(), "--http", "off", "--addr-file", m.addrFile(),
			"--store", c.store.url, "--data", filepath.Join(c.options.Dir, m.name),
		}
		if len(m.doors) > 1 {
			args = append(args, "--peers", strings.Join(c.peers(), ","), "--raft", m.doors[1].Address(), "--raft-listen", addresses[1])
		}
		return c.options.Command("smq-master", args...)
	}
}

func (c *cluster) peers() []string {
	var all []string
	for _, m := range c.masters {
		all = append(all, m.doors[1].Address())
	}
	return all
}

// brokerDrainTimeout is what brokers have for a drain, and drainPatience what we
// have for it: a broker that takes so long hangs.
const (
	brokerDrainTimeout = 15 * time.Second
	drainPatience      = 60 * time.Second
)

func (c *cluster) brokerCommand(b *daemon) func([]string) *exec.Cmd {
	return func(addresses []string) *exec.Cmd {
		return c.options.Command("smq-broker",
			"--listen", addresses[0], "--advertise", b.address(), "--http", "off", "--addr-file", b.addrFile(),
			"--master", strings.Join(c.masterAddresses(), ","),
			"--memory", strconv.FormatInt(c.options.Memory, 10), "--drain-timeout", brokerDrainTimeout.String(),
		)
	}
}

func (c *cluster) masterAddresses() []string {
	var all []string
	for _, m := range c.masters {
		all = append(all, m.address())
	}
	return all
}

// daemons are all masters and brokers.
func (c *cluster) daemons() []*daemon { return append(append([]*daemon{}, c.masters...), c.brokers...) }

// parts are the names of the processes that run.
func (c *cluster) parts() map[int]string {
	parts := make(map[int]string)
	for _, d := range c.daemons() {
		if p := d.running(); p != nil {
			parts[p.pid()] = d.name
		}
	}
	return parts
}

// startPatience bounds the start of the whole cluster, on a machine that does
// much else.
const startPatience = 2 * time.Minute

// start starts everything and waits until it is ready.
func (c *cluster) start(ctx context.Context) error {
	if c.store.begin != nil {
		if err := c.store.begin(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for _, d := range c.daemons() {
		if err := d.start(); err != nil {
			return err
		}
	}
	for _, d := range c.daemons() {
		if err := d.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// crashPause is how long a process that has ended by itself stays down.
const crashPause = time.Second

// died reports a process that has ended by itself, and starts it again.
func (c *cluster) died(d *daemon, how string) {
	c.mu.Lock()
	ending := c.ending
	c.mu.Unlock()
	if !wantsAnotherPort(how) {
		c.crashed(d.name, how)
	}
	if ending {
		return
	}
	time.AfterFunc(crashPause, func() { c.restart(d) })
}

// restart starts a process that is down, unless all is coming to its end.
func (c *cluster) restart(d *daemon) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return
	}
	if err := d.start(); err != nil {
		c.crashed(d.name, err.Error())
	}
}

// connect makes a client that is a part of the network by a name.
func (c *cluster) connect(ctx context.Context, name string) (*client.Client, error) {
	c.mu.Lock()
	c.clients = append(c.clients, name)
	c.mu.Unlock()
	return client.Connect(ctx, client.Config{
		Masters: c.masterAddresses(),
		Logger:  slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelInfo})).With("client", name),
		Dial:    rpc.DialOptions{Dialer: c.network.Dialer(name)},
	})
}

// stop stops everything but the store in good order: first the brokers, then
// the masters. The errors are of those that did not obey.
func (c *cluster) stop(ctx context.Context) error {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	return errors.Join(stopAll(ctx, c.brokers), stopAll(ctx, c.masters))
}

func stopAll(ctx context.Context, daemons []*daemon) error {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	failed := make([]error, len(daemons))
	var g errgroup.Group
	for i, d := range daemons {
		g.Go(func() error {
			failed[i] = d.stop(ctx)
			return nil
		})
	}
	_ = g.Wait() // the errors are in failed
	return errors.Join(failed...)
}

// close kills whatever still runs, and closes the network.
func (c *cluster) close() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	for _, d := range c.daemons() {
		d.kill()
	}
	if c.store != nil && c.store.server != nil {
		c.store.server.kill()
		c.store.end()
	}
	c.network.Close()
	_ = c.log.Close() // nothing depends on it
}

// named is the daemon whose first door has an address; nil when there is none.
func (c *cluster) named(daemons []*daemon, address string) *daemon {
	for _, d := range daemons {
		if d.address() == address {
			return d
		}
	}
	return nil
}

// part is the name of the broker with an address; the address when there is none.
func (c *cluster) part(address string) string {
	if d := c.named(c.brokers, address); d != nil {
		return d.name
	}
	return address
}

func names(daemons []*daemon) []string {
	var all []string
	for _, d := range daemons {
		all = append(all, d.name)
	}
	return all
}

// clientParts are the clients' names in the network.
func (c *cluster) clientParts() wire.Parts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(make(wire.Parts, 0, len(c.clients)), c.clients...) // not nil, which stands for all
}

// isBroker reports whether a daemon is a broker.
func (c *cluster) isBroker(d *daemon) bool { return slices.Contains(c.brokers, d) }
