package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

const (
	// startAgain is the wait before a step of the start is tried again.
	startAgain = 500 * time.Millisecond
	// healthTimeout bounds how long the store may take to show that it is there.
	healthTimeout = 5 * time.Second
	// callsTimeout bounds how long calls may take to end after a drain.
	callsTimeout = 2 * time.Second
)

// Broker is a running broker.
type Broker struct {
	cfg      Config
	log      *slog.Logger
	clock    func() time.Duration
	st       store.Store
	shared   *seglog.Shared
	tasks    *background.Group
	topics   *topics
	archive  *archive
	member   *member
	role     *role
	loads    loads
	sampled  chan struct{} // holds a token when there are new loads to report
	opening  opening
	metrics  *metrics
	server   *grpc.Server
	owned    atomic.Pointer[segments]  // of the present life
	follows  atomic.Pointer[followers] // of the present life
	draining atomic.Bool
	ending   chan struct{} // closed when streams have to end, after a drain
	drained  chan struct{} // closed when the broker has handed everything over and left

	rest       atomic.Int32 // segments that were never opened and are not handed over yet, at least
	handedOver atomic.Bool

	drainApart sync.Once // a drain asked for from afar
	drainDone  sync.Once
	close      sync.Once
}

// Start starts a broker: it learns from the masters which store there is, opens
// it, serves, and joins. It returns when the broker is a member of the cluster,
// and goes on trying until then as long as ctx lasts; the broker itself does not
// end with ctx.
//
// Errors: smq.ErrConflict when the store belongs to another cluster,
// smq.ErrInvalid or smq.ErrCorrupt when it cannot be opened at all, and what
// failed last when ctx ends.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	cfg = cfg.withDefaults()
	b := &Broker{
		cfg: cfg, log: cfg.Logger.With("broker", cfg.Advertise), clock: cfg.Clock,
		tasks: background.New(), ending: make(chan struct{}), drained: make(chan struct{}), sampled: make(chan struct{}, 1),
		shared: seglog.NewShared(seglog.SharedOptions{Buffer: cfg.Memory * 3 / 8, Replica: cfg.Memory / 4, Cache: cfg.Memory * 3 / 8, Registerer: cfg.Registerer}),
	}
	b.member = newMember(b, cfg.ID)
	b.role = &role{b: b}
	b.metrics = newMetrics(cfg.Registerer, b.member.leased)
	if err := b.findStore(ctx); err != nil {
		_ = cfg.Listener.Close() // the error that matters is the other one
		return nil, fmt.Errorf("start broker: %w", err)
	}
	b.topics = newTopics(b.st, b.tasks)
	b.topics.moved = b.moveOn
	b.archive = newArchive(b.st, b.shared, b.tasks)
	b.owned.Store(newSegments(b, cfg.ID))
	b.follow(cfg.ID)
	b.serve()
	b.tasks.Go(b.role.run)
	b.tasks.Go(b.sampleLoop)
	b.tasks.Go(b.reportLoads)
	b.tasks.Go(b.member.run)
	b.tasks.Go(b.member.watch)
	b.tasks.Go(b.probe)
	b.tasks.Go(b.probeAway)
	select {
	case <-b.member.joined:
		return b, nil
	case <-ctx.Done():
		b.Close()
		return nil, fmt.Errorf("start broker: join the cluster: %w: %w", smq.ErrTimeout, ctx.Err())
	}
}

// findStore learns from the masters which store there is and opens it. Masters
// that are just coming up for the first time may not know it yet.
func (b *Broker) findStore(ctx context.Context) error {
	for {
		info, err := b.cfg.Cluster.Info(ctx)
		if err != nil {
			return err
		}
		if info.GetStore() == "" {
			err = fmt.Errorf("%w: the masters do not know the store yet", smq.ErrUnavailable)
		} else if err = b.openStore(ctx, info); err == nil || isFinal(err) {
			return err
		}
		b.log.Warn("there is no store yet, trying again", "store", info.GetStore(), "err", err)
		if background.Wait(ctx, startAgain) != nil {
			return err
		}
	}
}

// isFinal reports whether trying again cannot help.
func isFinal(err error) bool {
	return errors.Is(err, smq.ErrInvalid) || errors.Is(err, smq.ErrConflict) || errors.Is(err, smq.ErrCorrupt)
}

func (b *Broker) openStore(ctx context.Context, info *smqpb.ClusterInfo) error {
	st, err := b.cfg.OpenStore(ctx, info.GetStore())
	if err != nil {
		return fmt.Errorf("open store %s: %w", info.GetStore(), err)
	}
	if _, err := store.Bind(ctx, st, smq.ClusterID(info.GetClusterId())); err != nil {
		_ = st.Close() // it was not used
		return fmt.Errorf("store %s: %w", st, err)
	}
	b.st = st
	return nil
}

// serve starts the gRPC server.
func (b *Broker) serve() {
	b.server = rpc.NewServer(b.cfg.Server)
	smqpb.RegisterLeaderServer(b.server, leaderService{role: b.role})
	smqpb.RegisterBrokerServer(b.server, brokerService{b: b})
	rpc.RegisterData(b.server, dataService{b: b})
	b.tasks.Go(func(context.Context) {
		if err := b.server.Serve(b.cfg.Listener); err != nil {
			b.log.Error("the gRPC server has failed", "err", err)
		}
	})
}

// ID is the broker's present id. It changes when its lease has run out.
func (b *Broker) ID() smq.BrokerID {
	self, _, _ := b.member.cluster()
	return self
}

// Address is where others reach the broker.
func (b *Broker) Address() string { return b.cfg.Advertise }

// segments are those of the present life.
func (b *Broker) segments() *segments { return b.owned.Load() }

// moveOn takes in a newer layout of a topic.
func (b *Broker) moveOn(t *topic, lay layout.Layout) { b.segments().moveOn(t, lay) }

// following are the segments that are followed in the present life.
func (b *Broker) following() *followers { return b.follows.Load() }

// follow begins to follow under an id. What was followed under the last one is
// sealed.
func (b *Broker) follow(id smq.BrokerID) {
	fs := newFollowers(b, id)
	if old := b.follows.Swap(fs); old != nil {
		old.end()
	}
	if b.draining.Load() {
		fs.drain()
	}
	b.tasks.Go(fs.run)
	b.tasks.Go(fs.sweep)
}

// begin starts a new life. What the last one owned is given up: the leader seals
// it, as that of any broker whose lease has run out.
func (b *Broker) begin(id smq.BrokerID) {
	old := b.owned.Swap(newSegments(b, id))
	if b.draining.Load() {
		b.segments().finish(layout.Drain)
	}
	b.follow(id)
	old.finish(layout.Failover)
	for _, s := range old.snapshot() {
		s.log.Close()
	}
}

// Health says whether the broker can do its work: nil, or what is missing.
func (b *Broker) Health(ctx context.Context) error {
	if b.draining.Load() {
		return smq.ErrDraining
	}
	if !b.member.leased() {
		return fmt.Errorf("%w: the lease with the masters has run out", smq.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if _, err := b.st.List(ctx, "/", "", 1); err != nil {
		return fmt.Errorf("store %s: %w", b.st, err)
	}
	if err := b.storeTrouble(); err != nil {
		return fmt.Errorf("%w: cannot write to the store %s: %w", smq.ErrUnavailable, b.st, err)
	}
	return nil
}

// Drain hands the broker's segments over to others and leaves the cluster. It
// returns when that is done and the broker is closed. When ctx ends first, what
// is not handed over yet is left to the leader, and the error says so.
func (b *Broker) Drain(ctx context.Context) error {
	b.startDrain()
	err := b.handOver(ctx)
	if err == nil {
		b.handedOver.Store(true)
	}
	leaveCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*leaveTimeout)
	defer cancel()
	b.member.leave(leaveCtx)
	b.drainDone.Do(func() {
		close(b.ending)
		b.endCalls()
		close(b.drained)
	})
	b.Close()
	return err
}

// endCalls stops serving, and lets calls that are being answered come to their
// end.
func (b *Broker) endCalls() {
	done := make(chan struct{})
	go func() {
		b.server.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(callsTimeout):
	}
}

// Drained is closed when a drain, whoever asked for it, has come to its end; the
// process may end then.
func (b *Broker) Drained() <-chan struct{} { return b.drained }

// startDrain lets no more segments in and begins to seal those that are open.
func (b *Broker) startDrain() {
	if !b.draining.CompareAndSwap(false, true) {
		return
	}
	b.log.Info("draining", "segments", b.segments().left())
	b.member.beat()
	b.role.drain()
	b.segments().finish(layout.Drain)
	b.following().drain()
}

// handOver waits until no layout lists a segment of this broker any more; or,
// when nobody is there to take them, until all are sealed.
func (b *Broker) handOver(ctx context.Context) error {
	own := b.segments()
	empty, rest := own.empty, b.handOverRest(ctx, own)
	for _, s := range own.all() {
		select {
		case <-s.sealed:
		case <-s.gone:
		case <-ctx.Done():
			return b.leftBehind(own)
		}
	}
	for empty != nil || rest != nil {
		select {
		case <-empty:
			empty = nil
		case <-rest:
			if ctx.Err() != nil {
				return b.leftBehind(own)
			}
			rest = nil
			b.rest.Store(0)
		case <-time.After(renewEvery):
			if b.alone() {
				b.log.Warn("no other broker takes the segments; they are sealed and wait for one", "segments", own.left())
				return nil
			}
		case <-ctx.Done():
			return b.leftBehind(own)
		}
	}
	return b.following().wait(ctx)
}

func (b *Broker) leftBehind(own *segments) error {
	return fmt.Errorf("drain: %w: not handed over: %s", smq.ErrTimeout, smq.Count(b.segmentsLeft(own), "segment"))
}

// segmentsLeft is how many segments are not handed over yet, at least.
func (b *Broker) segmentsLeft(own *segments) int { return own.left() + int(b.rest.Load()) }

// alone reports whether no other broker takes segments.
func (b *Broker) alone() bool {
	self, _, brokers := b.member.cluster()
	for _, other := range brokers {
		if other.ID != self && other.Takes() {
			return false
		}
	}
	return true
}

// Close stops the broker at once. Segments stay unsealed, as when its process
// is killed: batches that are not stored are not acked, and may be stored all
// the same.
func (b *Broker) Close() {
	b.close.Do(func() {
		if b.server != nil {
			b.server.Stop()
		}
		b.tasks.Stop()
		_ = b.st.Close() // nothing is under way any more
	})
}
