// Package local runs a whole cluster in one process: a master and some brokers.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/command/node"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/master"
)

// Options say which cluster.
type Options struct {
	Listener net.Listener // of the master
	Brokers  int
	StoreURL string // empty: a directory below DataDir
	DataDir  string // for the master's state, and the store
	Memory   int64  // of each broker
	// Scaling is for topics that do not say; what is 0 is layout.DefaultPolicy's.
	Scaling layout.Policy
	Logger  *slog.Logger // of the brokers
	// MasterLogger is apart, because a master warns of every election, also of
	// that which makes it the only one.
	MasterLogger *slog.Logger
	// Registerer takes the metrics, which are labelled by broker; nil: nobody
	// does.
	Registerer prometheus.Registerer
}

// Cluster is a running cluster.
type Cluster struct {
	Master  *node.Master
	Brokers []*node.Broker
	Address string // of the master
}

// Start starts a cluster. It returns when all of it is ready; when ctx ends
// before, or something fails, nothing of it is left running.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.StoreURL == "" {
		o.StoreURL = "dir://" + filepath.ToSlash(filepath.Join(o.DataDir, "store"))
	}
	c := &Cluster{Address: o.Listener.Addr().String()}
	if err := c.start(ctx, o); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	var err error
	c.Master, err = node.StartMaster(ctx, o.Listener, master.Config{
		Advertise: c.Address, StoreURL: o.StoreURL, DataDir: filepath.Join(o.DataDir, "master"),
		Logger: o.MasterLogger,
	})
	if err != nil {
		o.Listener.Close() // nobody serves on it
		return err
	}
	if id := c.Master.Adopted; id != "" && o.Logger != nil {
		o.Logger.Warn(node.AdoptedText, "cluster", id, "store", o.StoreURL)
	}
	select {
	case <-c.Master.Ready():
	case <-c.Master.Done():
		return c.Master.Err()
	case <-ctx.Done():
		return fmt.Errorf("start the master: %w", context.Cause(ctx))
	}
	return c.startBrokers(ctx, o)
}

// startBrokers starts all brokers at once.
func (c *Cluster) startBrokers(ctx context.Context, o Options) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for i := range o.Brokers {
		g.Go(func() error {
			b, err := startBroker(ctx, c.Address, strconv.Itoa(i+1), o)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			c.Brokers = append(c.Brokers, b)
			return nil
		})
	}
	return g.Wait()
}

func startBroker(ctx context.Context, master, name string, o Options) (*node.Broker, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host(master), "0"))
	if err != nil {
		return nil, err
	}
	options := node.BrokerOptions{
		Masters: []string{master}, Listener: l, Advertise: l.Addr().String(), Memory: o.Memory,
		// The brokers are one process, and die together: there is no safety in
		// their numbers.
		Replicas: 1, Scaling: o.Scaling,
		Logger: o.Logger.With("part", "broker-"+name),
	}
	if o.Registerer != nil {
		options.Registerer = prometheus.WrapRegistererWith(prometheus.Labels{"broker": name}, o.Registerer)
	}
	return node.StartBroker(ctx, options)
}

func host(address string) string {
	h, _, err := net.SplitHostPort(address)
	if err != nil {
		return "127.0.0.1" // a listener's own address always has a port
	}
	return h
}

// Stop drains the brokers and stops the master, or as soon as ctx ends.
func (c *Cluster) Stop(ctx context.Context) error {
	var mu sync.Mutex
	var failed []error
	var g errgroup.Group
	for _, b := range c.Brokers {
		g.Go(func() error {
			if err := b.Stop(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in failed
	return errors.Join(append(failed, c.Master.Stop(ctx))...)
}

// kill ends what has been started, when not all could be.
func (c *Cluster) kill() {
	for _, b := range c.Brokers {
		b.Kill()
	}
	if c.Master != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Master.Stop(ended) // it ends in the background
	}
}
