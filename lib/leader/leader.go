package leader

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

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
	// SweepEvery is the time between two sweeps over all topics. Default 10
	// minutes.
	SweepEvery time.Duration
	// LoadsEvery is the time between two collections of the segments' loads.
	// Default 2 s.
	LoadsEvery time.Duration
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
	rates   rates
	flights singleflight.Group
	deposed atomic.Bool
	// deletions counts topics deleted, so that loading one notices.
	deletions atomic.Uint64
	// life runs f in the leader's name: with a context that ends with the
	// leader. It fails without running it once the leader has stopped.
	life func(f func(ctx context.Context) error) error
	stop func()

	mu     sync.Mutex
	topics map[smq.Topic]*topic
}

// Start begins to lead.
func Start(cfg Config) *Leader {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.SweepEvery <= 0 {
		cfg.SweepEvery = 10 * time.Minute
	}
	if cfg.LoadsEvery <= 0 {
		cfg.LoadsEvery = 2 * time.Second
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	l := &Leader{Config: cfg, topics: make(map[smq.Topic]*topic)}
	l.view.init(cfg.Brokers)
	l.begin()
	l.background(l.sweepLoop)
	l.background(l.reapLoop)
	l.background(l.loadsLoop)
	return l
}

// begin sets up the leader's life: a context, and the tasks that run in it.
func (l *Leader) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	var (
		mu      sync.Mutex
		tasks   sync.WaitGroup
		stopped bool
	)
	enter := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			tasks.Add(1)
		}
		return !stopped
	}
	l.life = func(f func(ctx context.Context) error) error {
		if !enter() {
			return &rpc.NotLeaderError{}
		}
		defer tasks.Done()
		return f(ctx)
	}
	l.stop = func() {
		mu.Lock()
		stopped = true
		mu.Unlock()
		cancel()
		tasks.Wait()
	}
}

// background runs f until the leader stops.
func (l *Leader) background(f func(ctx context.Context)) {
	go func() {
		// It fails only when the leader has stopped before.
		_ = l.life(func(ctx context.Context) error { f(ctx); return nil })
	}()
}

// once runs f in the leader's name, one at a time for each key: calls that come
// while it runs share its outcome. When ctx ends first f goes on.
func (l *Leader) once(ctx context.Context, key string, f func(ctx context.Context) error) error {
	outcome := l.flights.DoChan(key, func() (any, error) {
		return nil, l.life(func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, flightTimeout)
			defer cancel()
			return f(ctx)
		})
	})
	select {
	case r := <-outcome:
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", smq.ErrTimeout, ctx.Err())
	}
}

// Stop ends the leadership: requests under way fail with smq.ErrNotLeader or as
// their step does. It waits for everything that runs in the background.
func (l *Leader) Stop() { l.stop() }

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
		l.Logger.Warn("another broker leads since a later term", "term", l.Term, "later_term", s.Term, "broker", s.Leader)
	}
}

func (l *Leader) stamp() layout.Stamp {
	return layout.Stamp{Leader: l.Self, Term: l.Term, NowMS: time.Now().UnixMilli()}
}
