package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// Config says who leads, over what.
type Config struct {
	Store store.Store
	Self  smq.BrokerID // the broker that leads
	Term  uint64       // of its leadership
	// Brokers is the cluster as first known; SetBrokers brings later states.
	Brokers []layout.Broker
	// Peer returns a client for the broker at an address. It does not wait
	// for the connection.
	Peer    func(ctx context.Context, address string) (smqpb.BrokerClient, error)
	Logger  *slog.Logger // nil: nothing is logged
	Metrics *Metrics     // nil: nothing is counted
	// Replicas is for topics that do not say how many brokers hold what is not
	// stored yet. Default catalog.DefaultReplicas.
	Replicas int
	// SweepEvery is the time between two sweeps over all topics. Default 10
	// minutes.
	SweepEvery time.Duration
	// Cluster tells of the cluster as the masters see it, for watchers. nil: they
	// see the brokers only.
	Cluster func(ctx context.Context) (*smqpb.ClusterInfo, error)
	// Scaling is what topics leave open of theirs; what it leaves open itself is
	// layout.DefaultPolicy.
	Scaling layout.Policy
}

// Bounds of what the leader does at once and of the time it allows.
const (
	parallel      = 32               // store operations of one kind
	flightTimeout = 20 * time.Second // of one shared task
	peerTimeout   = 2 * time.Second  // of a call to another broker
)

// Leader answers smqpb.Leader for one term. Make it with Start.
type Leader struct {
	smqpb.UnimplementedLeaderServer
	Config

	view    view
	loads   *loads
	hub     *hub
	tasks   *background.Group
	deposed atomic.Bool
	swept   atomic.Bool // all topics have been looked at once
	cluster clusterCache
	// deletions counts topics deleted, so that loading one notices.
	deletions atomic.Uint64

	mu     sync.Mutex
	topics map[smq.Topic]*topic
	damage map[smq.Topic]*damage // topics that cannot be loaded
}

// Start begins to lead.
func Start(cfg Config) *Leader {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.SweepEvery <= 0 {
		cfg.SweepEvery = 10 * time.Minute
	}
	cfg.Scaling = cfg.Scaling.WithDefaults(layout.DefaultPolicy())
	if cfg.Replicas <= 0 {
		cfg.Replicas = catalog.DefaultReplicas
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	l := &Leader{Config: cfg, loads: newLoads(), hub: newHub(), tasks: background.New(), topics: make(map[smq.Topic]*topic), damage: make(map[smq.Topic]*damage)}
	l.view.init(cfg.Brokers)
	l.tasks.Go(l.sweepLoop)
	l.tasks.Go(l.reapLoop)
	l.tasks.Go(l.scaleLoop)
	l.tasks.Go(func(ctx context.Context) {
		<-ctx.Done()
		l.hub.close()
	})
	return l
}

// once runs f in the leader's name, one at a time for each key; see
// background.Group.
func (l *Leader) once(ctx context.Context, key string, f func(ctx context.Context) error) error {
	return ended(l.tasks.Once(ctx, key, flightTimeout, f))
}

// ended turns the news that the leader has stopped into what a caller is told.
func ended(err error) error {
	if errors.Is(err, background.ErrStopped) {
		return &rpc.NotLeaderError{}
	}
	return err
}

// Stop ends the leadership: requests under way fail with smq.ErrNotLeader or as
// their step does. It waits for everything that runs in the background.
func (l *Leader) Stop() {
	l.tasks.Stop()
	l.Metrics.clear()
}

// SetBrokers tells the cluster's present state: every broker, dead ones as
// such. A broker that is not listed is dead.
func (l *Leader) SetBrokers(brokers []layout.Broker) { l.view.set(brokers) }

// leading fails when another leader is known to have taken over.
func (l *Leader) leading() error {
	if l.deposed.Load() {
		return &rpc.NotLeaderError{}
	}
	return nil
}

// met looks at a layout version's writer: a later term than ours ends ours.
func (l *Leader) met(s layout.Stamp) {
	if s.Term > l.Term && l.deposed.CompareAndSwap(false, true) {
		l.hub.close()
		l.Logger.Warn("another broker leads since a later term", "term", l.Term, "later_term", s.Term, "broker", s.Leader)
		l.tasks.Go(func(ctx context.Context) {
			if background.Wait(ctx, deposedFor) == nil {
				l.Logger.Error("another leader writes to this store, and the masters do not say so: either they cannot be reached, or another cluster uses the store",
					"broker", s.Leader, "term", s.Term)
			}
		})
	}
}

// deposedFor is longer than masters that can be reached take to name another
// leader.
const deposedFor = 15 * time.Second

func (l *Leader) stamp() layout.Stamp {
	return layout.Stamp{Leader: l.Self, Term: l.Term, NowMS: time.Now().UnixMilli()}
}
