// Package node wires masters and brokers together from their parts, for
// whatever process they run in: a daemon of their own, or smq-admin up.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/broker"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/master"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/open"
)

// bindTimeout bounds how long a master that starts waits for its store. The
// store matters then only for founding a cluster.
const bindTimeout = 10 * time.Second

// OpenStore opens the store at a URL.
func OpenStore(ctx context.Context, url string, logger *slog.Logger) (store.Store, error) {
	return open.Open(ctx, url, open.Options{Logger: logger})
}

// Master is a master with its gRPC server.
type Master struct {
	*master.Master
	// Adopted is the cluster that the store belonged to already when a master
	// by itself that knew nothing of it was started; else empty. Another master
	// may run for it.
	Adopted smq.ClusterID
	server  *grpc.Server
}

// StartMaster starts a master that serves on listener. It takes the cluster's id
// from the store, if that is bound to a cluster already.
func StartMaster(ctx context.Context, listener net.Listener, cfg master.Config) (*Master, error) {
	var adopted smq.ClusterID
	if cfg.StoreURL != "" && !cfg.Join {
		known := hasState(cfg.DataDir)
		if err := storedCluster(ctx, &cfg); err != nil {
			return nil, err
		}
		// Of several masters that start together one binds the store, and the
		// others find it bound.
		if cfg.Adopted && !known && len(cfg.Peers) == 0 {
			adopted = cfg.ClusterID
			cfg.Logger.Warn(AdoptedText, "cluster", adopted, "store", cfg.StoreURL)
		}
	}
	m, err := master.Start(cfg)
	if err != nil {
		return nil, err
	}
	server := rpc.NewServer(rpc.ServerOptions{Logger: cfg.Logger})
	m.Register(server)
	go func() {
		if err := server.Serve(listener); err != nil {
			cfg.Logger.Error("the gRPC server has ended", "error", err)
		}
	}()
	return &Master{Master: m, Adopted: adopted, server: server}, nil
}

// AdoptedText is the warning of a store that belongs to a cluster already.
const AdoptedText = "the store belongs to a cluster already, and this master goes on as that one: no other master may run for it"

// storedCluster fills in the cluster that the store belongs to; one that belongs
// to none is bound to a new one. A store that does not answer is no obstacle to
// a master that has state of its own.
func storedCluster(ctx context.Context, cfg *master.Config) error {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	err := bindStore(ctx, cfg)
	if err == nil || errors.Is(err, smq.ErrInvalid) || !hasState(cfg.DataDir) {
		return err
	}
	cfg.Logger.Warn("the store does not answer; starting from what is recorded", "error", err)
	return nil
}

func bindStore(ctx context.Context, cfg *master.Config) error {
	st, err := OpenStore(ctx, cfg.StoreURL, cfg.Logger)
	if err != nil {
		return fmt.Errorf("open store %s: %w", cfg.StoreURL, err)
	}
	defer st.Close() // nothing is under way
	fresh := smq.NewClusterID()
	bound, err := store.Bind(ctx, st, fresh)
	if errors.Is(err, smq.ErrConflict) && bound != "" {
		cfg.Adopted, err = true, nil
	}
	cfg.ClusterID = bound
	return err
}

func hasState(dir string) bool {
	if dir == "" {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// Stop stops the master in good order, or as soon as ctx ends.
func (m *Master) Stop(ctx context.Context) error {
	err := m.Shutdown(ctx)
	m.server.Stop()
	return err
}

// BrokerOptions say how a broker runs.
type BrokerOptions struct {
	Masters     []string
	Listener    net.Listener
	Advertise   string
	HTTPAddress string
	Rack        string
	Memory      int64
	Replicas    int           // of topics that do not say, when it leads; 0: catalog.DefaultReplicas
	Scaling     layout.Policy // of topics that do not say, when it leads; what is 0 is layout.DefaultPolicy's
	Logger      *slog.Logger
	Registerer  prometheus.Registerer
}

// Broker is a broker with its connections.
type Broker struct {
	*broker.Broker
	conns *rpc.Conns
}

// StartBroker starts a broker that may also lead. It returns when the broker is
// a member of the cluster, see broker.Start.
func StartBroker(ctx context.Context, o BrokerOptions) (*Broker, error) {
	conns := rpc.NewConns(rpc.DialOptions{})
	metrics := leader.NewMetrics(o.Registerer)
	b, err := broker.Start(ctx, broker.Config{
		Cluster:     rpc.NewCluster(o.Masters, conns, o.Logger),
		Listener:    o.Listener,
		Server:      rpc.ServerOptions{Logger: o.Logger},
		Advertise:   o.Advertise,
		HTTPAddress: o.HTTPAddress,
		Rack:        o.Rack,
		Version:     cli.Version(),
		Memory:      o.Memory,
		Logger:      o.Logger,
		Registerer:  o.Registerer,
		OpenStore: func(ctx context.Context, url string) (store.Store, error) {
			return OpenStore(ctx, url, o.Logger)
		},
		Lead: func(l broker.LeadOptions) broker.Leading {
			return leader.Start(leader.Config{
				Store: l.Store, Self: l.Self, Term: l.Term, Brokers: l.Brokers, Peer: l.Peer, Cluster: l.Masters,
				Logger: l.Logger, Metrics: metrics,
				Replicas: o.Replicas, Scaling: o.Scaling,
			})
		},
	})
	if err != nil {
		conns.Close()
		return nil, err
	}
	return &Broker{Broker: b, conns: conns}, nil
}

// Stop drains the broker and ends it, also when ctx ends before the drain does.
func (b *Broker) Stop(ctx context.Context) error {
	err := b.Drain(ctx)
	b.conns.Close()
	return err
}

// Kill ends the broker as the end of its process would.
func (b *Broker) Kill() {
	b.Close()
	b.conns.Close()
}
