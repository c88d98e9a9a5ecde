package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seaweedmq/smq/lib/boottime"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Config tells where the cluster is.
type Config struct {
	// Masters are the masters' gRPC addresses, host:port; one that answers is
	// enough, the others are learned.
	Masters []string
	// Logger hears what the client had to get around; nil: nobody does.
	Logger *slog.Logger
	// Dial says how to connect. Its zero value is plain TCP.
	Dial rpc.DialOptions
	// Registerer takes the client's metrics; nil: nobody does. Clients that
	// share one share the metrics.
	Registerer prometheus.Registerer
	// Clock tells the time since some moment, and goes on while the machine
	// sleeps. nil: the system's.
	Clock func() time.Duration
}

// Client is a connection to a cluster. It is safe for concurrent use.
type Client struct {
	cluster *rpc.Cluster
	conns   *rpc.Conns
	logger  *slog.Logger
	metrics *metrics
	now     clock
	ended   chan struct{} // closed by Close

	mu     sync.Mutex
	users  map[user]struct{} // what Close has to end
	closed bool
}

// clock tells the time since some moment in the past, see lib/boottime.
type clock = func() time.Duration

// user is a publisher or a subscriber.
type user interface {
	abort(cause error)
}

// Connect finds the cluster and goes on trying until ctx ends; the error then is
// an smq.ErrUnavailable that names the addresses tried. It is an smq.ErrInvalid
// for a configuration that cannot work.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	conns := rpc.NewConns(cfg.Dial)
	c := &Client{
		cluster: rpc.NewCluster(cfg.Masters, conns, logger),
		conns:   conns,
		logger:  logger,
		metrics: m,
		now:     cfg.Clock,
		ended:   make(chan struct{}),
		users:   make(map[user]struct{}),
	}
	if c.now == nil {
		c.now = boottime.Clock()
	}
	if _, err := c.Cluster(ctx); err != nil {
		conns.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the client's publishers and subscribers, without waiting for acks
// (close publishers first for that), and its connections. It may be called
// again.
func (c *Client) Close() error {
	c.mu.Lock()
	users := c.users
	if !c.closed {
		c.users, c.closed = nil, true
		close(c.ended)
	}
	c.mu.Unlock()
	for u := range users {
		u.abort(ErrClosed)
	}
	c.conns.Close()
	return nil
}

// adopt makes Close end u too.
func (c *Client) adopt(u user) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("client: %w", ErrClosed)
	}
	c.users[u] = struct{}{}
	return nil
}

// forget undoes adopt.
func (c *Client) forget(u user) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.users, u)
}

// Cluster tells where everything is, see rpc.Cluster.Info.
func (c *Client) Cluster(ctx context.Context) (*smqpb.ClusterInfo, error) {
	ctx, cancel := c.whileOpen(ctx)
	defer cancel()
	info, err := c.cluster.Info(ctx)
	if err != nil {
		return nil, closedOr(ctx, err)
	}
	return info, nil
}

// Leader makes a call to the leading broker, see rpc.Cluster.Leader: call may be
// made several times.
func (c *Client) Leader(ctx context.Context, call func(ctx context.Context, l smqpb.LeaderClient) error) error {
	ctx, cancel := c.whileOpen(ctx)
	defer cancel()
	return closedOr(ctx, c.cluster.Leader(ctx, call))
}

// Broker returns a client for the broker at a gRPC address, host:port. It does
// not wait for the connection.
func (c *Client) Broker(ctx context.Context, address string) (smqpb.BrokerClient, error) {
	return c.cluster.Broker(ctx, address)
}

// whileOpen ends ctx when the client is closed: what goes on trying until its
// context ends would never succeed.
func (c *Client) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.ended:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// closedOr is the error err, or ErrClosed if that is why.
func closedOr(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrClosed) {
		return fmt.Errorf("client: %w", ErrClosed)
	}
	return err
}

// lookup asks the leading broker for a topic's layout.
func (c *Client) lookup(ctx context.Context, req *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	var resp *smqpb.LookupResponse
	err := c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) (err error) {
		resp, err = l.Lookup(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look up topic %s: %w", req.GetTopic(), err)
	case resp.GetConfig() == nil || resp.GetLayout() == nil:
		return nil, fmt.Errorf("look up topic %s: %w answer: no layout in it", req.GetTopic(), smq.ErrInvalid)
	case resp.GetConfig().GetPartitions() < 1 || resp.GetConfig().GetPartitions() > smq.MaxPartitions:
		return nil, fmt.Errorf("look up topic %s: %w answer: %s", req.GetTopic(), smq.ErrInvalid, smq.Count(resp.GetConfig().GetPartitions(), "partition"))
	}
	return resp, nil
}
