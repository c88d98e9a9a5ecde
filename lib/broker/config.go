package broker

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seaweedmq/smq/lib/boottime"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// Config says how a broker runs.
type Config struct {
	// ID is the broker's first id; empty: a fresh one.
	ID smq.BrokerID
	// Cluster finds the masters and the leading broker.
	Cluster *rpc.Cluster
	// Listener is where the broker serves; it closes it.
	Listener net.Listener
	// Server configures the gRPC server.
	Server rpc.ServerOptions
	// Advertise is the address, host:port, by which others reach Listener;
	// empty: the listener's own.
	Advertise string
	// HTTPAddress, Rack and Version are told to the cluster as they are.
	HTTPAddress, Rack, Version string
	// OpenStore opens the store that the masters name.
	OpenStore func(ctx context.Context, url string) (store.Store, error)
	// Lead begins to lead the cluster, when the masters choose this broker.
	Lead func(LeadOptions) Leading
	// Memory bounds what is buffered and cached, in bytes: three eighths of it
	// for messages that are not stored yet, a quarter for what is held for other
	// brokers' segments, three eighths for chunks kept for readers. Default
	// 256 MiB.
	Memory int64
	// BufferWait is how long a publisher is kept waiting while the buffers are
	// full before it is told so. Default 10 s.
	BufferWait time.Duration
	// StuckAfter is how long messages may wait for the store before the leader
	// is asked to give their segment to another broker, which may have a store
	// that works. Default 15 s.
	StuckAfter time.Duration
	// Limits shape the segments.
	Limits     seglog.Limits
	Logger     *slog.Logger          // nil: nothing is logged
	Registerer prometheus.Registerer // nil: metrics are not registered
	// Clock tells the time since some moment, and goes on while the machine
	// sleeps. nil: the system's.
	Clock func() time.Duration
}

// LeadOptions are what a leader is given for one term.
type LeadOptions struct {
	Store   store.Store
	Self    smq.BrokerID
	Term    uint64
	Brokers []layout.Broker
	Peer    func(ctx context.Context, address string) (smqpb.BrokerClient, error)
	// Masters tells of the cluster as the masters see it.
	Masters func(ctx context.Context) (*smqpb.ClusterInfo, error)
	Logger  *slog.Logger
}

// Leading is a leader at work.
type Leading interface {
	smqpb.LeaderServer
	// SetBrokers tells the cluster's present state.
	SetBrokers([]layout.Broker)
	// Stop ends the leadership and waits for what runs in its name.
	Stop()
}

func (c Config) withDefaults() Config {
	if c.ID == "" {
		c.ID = smq.NewBrokerID()
	}
	if c.Advertise == "" {
		c.Advertise = c.Listener.Addr().String()
	}
	if c.Memory <= 0 {
		c.Memory = 256 << 20
	}
	if c.BufferWait <= 0 {
		c.BufferWait = 10 * time.Second
	}
	if c.StuckAfter <= 0 {
		c.StuckAfter = 15 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = boottime.Clock()
	}
	if c.Server.Logger == nil {
		c.Server.Logger = c.Logger
	}
	return c
}
