package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/master"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/sim"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/fault"
	"github.com/seaweedmq/smq/lib/store/mem"
)

const masterAddress = "master:7300"

// For so long things go wrong; by then all must be well again.
const (
	trouble  = 20 * time.Second
	recovery = 10 * time.Minute
)

// life is one cluster over some time.
type life struct {
	cfg      config
	limits   seglog.Limits
	dice     *sim.Dice
	net      *network
	st       *mem.Store
	topic    smq.Topic
	messages *messages
	logger   *slog.Logger
	began    time.Time
	tasks    sync.WaitGroup
	wrap     func(store.Store) store.Store

	mu       sync.Mutex
	troubled bool // things may fail
	brokers  []*process
	stores   []*fault.Store
	journal  []string
	counts   map[string]int
	broken   error
}

// story is how a life went.
type story struct {
	err     error
	journal []string
	counts  map[string]int
}

// live runs a life in a bubble of its own. The logger hears what all parts log,
// and wrap may do something wrong to the store; both may be nil.
func live(t *testing.T, cfg config, logger *slog.Logger, wrap func(store.Store) store.Store) (s story) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(cfg, logger)
		l.wrap = wrap
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s.err = l.run(ctx, stop)
		s.journal, s.counts = l.journal, l.counts
	})
	return s
}

func newLife(cfg config, logger *slog.Logger) *life {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	l := &life{cfg: cfg, dice: sim.NewDice(cfg.seed, "life"), net: newNetwork(), st: mem.New(), messages: newMessages(cfg.replicas > 1),
		topic: smq.Topic{Namespace: smq.DefaultNamespace, Name: "t"}, logger: logger, began: time.Now(), counts: make(map[string]int)}
	l.limits = limits(l.dice)
	return l
}

// clock is a process's.
func (l *life) clock() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// note keeps an event for the report.
func (l *life) note(format string, args ...any) {
	line := fmt.Sprintf("%8.3fs ", time.Since(l.began).Seconds()) + fmt.Sprintf(format, args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journal = append(l.journal, line)
}

func (l *life) count(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[event]++
}

// fail keeps the first failure.
func (l *life) fail(err error) {
	if err == nil {
		return
	}
	l.note("FAILURE %v", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
	}
}

// spawn runs a task that ends when the life does.
func (l *life) spawn(f func()) { l.tasks.Go(f) }

func (l *life) isTroubled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.troubled
}

// openStore is a process's way to the store.
func (l *life) openStore(name string) *fault.Store {
	d := sim.NewDice(l.cfg.seed, "store of "+name)
	var inner store.Store = l.st.Handle()
	if l.wrap != nil {
		inner = l.wrap(inner)
	}
	s := fault.New(inner, l.cfg.seed+uint64(d.IntN(1<<30)), l.cfg.rates(d))
	s.Zombies = true
	s.Before = func(op fault.Op) fault.Decision {
		if !l.isTroubled() {
			return fault.Decision{}
		}
		d := s.Roll(op)
		if d.Outcome != fault.Pass {
			l.count("store: " + d.Outcome.String())
		}
		return d
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stores = append(l.stores, s)
	return s
}

// run is the life. It ends with everything that it started.
func (l *life) run(ctx context.Context, stop context.CancelFunc) error {
	m, err := l.startMaster()
	if err != nil {
		return err
	}
	defer m.stop()
	var clients []*client.Client
	defer func() {
		stop()
		for _, c := range clients {
			_ = c.Close() // what it has not told does not matter any more
		}
		l.end()
	}()
	for i := range l.cfg.brokers {
		<-l.startBroker(ctx, fmt.Sprintf("b%d", i+1)).up
	}
	for i := range l.cfg.publishers + l.cfg.subscribers {
		c, err := l.connect(ctx, fmt.Sprintf("c%d", i+1))
		if err != nil {
			return err
		}
		clients = append(clients, c)
	}
	config, err := clients[0].CreateTopic(ctx, l.topic, client.TopicOptions{Partitions: int32(l.cfg.partitions), Replicas: int32(l.cfg.replicas)})
	if err != nil {
		return err
	}
	return l.watch(ctx, clients, sim.NewChecker(l.st, l.topic, smq.TopicID(config.GetTopicId()), l.messages))
}

// watch lets the clients work and checks what they see, through trouble to
// peace.
func (l *life) watch(ctx context.Context, clients []*client.Client, checker *sim.Checker) error {
	var publishing sync.WaitGroup
	for i := range l.cfg.publishers {
		publishing.Go(func() { l.fail(l.publish(ctx, clients[i], fmt.Sprintf("p%d", i+1))) })
	}
	published := make(chan struct{})
	l.spawn(func() {
		publishing.Wait()
		close(published)
	})
	var readings []*reading
	for i := range l.cfg.subscribers {
		r := &reading{name: fmt.Sprintf("s%d", i+1), next: make(map[smq.Partition]smq.Offset)}
		readings = append(readings, r)
		l.spawn(func() { l.fail(l.subscribe(ctx, clients[l.cfg.publishers+i], r)) })
	}
	l.setTrouble(true)
	l.chaos(ctx)
	l.scale(ctx, clients[0])
	for begin := time.Now(); time.Since(begin) < trouble; {
		pause(ctx, time.Second)
		if err := l.check(ctx, checker); err != nil {
			return err
		}
	}
	l.setTrouble(false)
	if err := l.settle(ctx, checker, published, readings); err != nil {
		return err
	}
	return l.finish(ctx, checker)
}

func (l *life) setTrouble(on bool) {
	l.note("trouble: %v", on)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.troubled = on
}

func (l *life) check(ctx context.Context, checker *sim.Checker) error {
	if err := checker.Check(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// settle waits until every message's fate is told and every subscriber has come
// to the end.
func (l *life) settle(ctx context.Context, checker *sim.Checker, published <-chan struct{}, readings []*reading) error {
	for begin := time.Now(); time.Since(begin) < recovery; {
		pause(ctx, time.Second)
		if err := l.check(ctx, checker); err != nil {
			return err
		}
		select {
		case <-published:
			if n := l.messages.missing(); n > 0 {
				return sim.Violated("answers", "nobody was told of %d messages", n)
			}
			if l.behind(checker, readings) == "" {
				return nil
			}
		default:
		}
	}
	if where := l.behind(checker, readings); where != "" {
		return sim.Violated("P4", "not everything is read: %s", where)
	}
	return sim.Violated("answers", "nobody was told of %d messages", l.messages.missing())
}

// behind says which subscriber has not read all.
func (l *life) behind(checker *sim.Checker, readings []*reading) string {
	for _, r := range readings {
		for p := range smq.Partition(l.cfg.partitions) {
			if at, end := r.at(p), checker.End(p); at < end {
				return fmt.Sprintf("%s is at offset %d of partition %d, the end is %d", r.name, at, p, end)
			}
		}
	}
	return ""
}

// finish checks what must hold at the end.
func (l *life) finish(ctx context.Context, checker *sim.Checker) error {
	pause(ctx, 10*time.Second) // what is late has come
	if err := l.check(ctx, checker); err != nil {
		return err
	}
	if err := l.messages.outstanding(); err != nil {
		return err
	}
	if err := checker.Unchanged(ctx); err != nil {
		return err
	}
	v, err := catalog.Verify(ctx, l.st, l.topic, nil)
	if err != nil {
		return sim.Violated("P6", "verify: %v", err)
	}
	if len(v.Problems) > 0 {
		return sim.Violated("P6", "verify: %s", strings.Join(v.Problems, "; "))
	}
	if v.Segments > 20 {
		l.count("many segments")
	}
	return nil
}

// end stops the brokers and everything in the background.
func (l *life) end() {
	l.mu.Lock()
	brokers := slices.Clone(l.brokers)
	l.mu.Unlock()
	for _, p := range brokers {
		p.kill()
	}
	l.tasks.Wait()
	l.mu.Lock()
	stores := slices.Clone(l.stores)
	l.mu.Unlock()
	for _, s := range stores {
		if err := s.Close(); err != nil {
			l.note("close the store: %v", err)
		}
	}
}

// runningMaster is the master with its server.
type runningMaster struct {
	*master.Master
	server *grpc.Server
	conns  *rpc.Conns
	served chan struct{}
}

func (l *life) startMaster() (*runningMaster, error) {
	m := &runningMaster{conns: rpc.NewConns(rpc.DialOptions{Dialer: l.net.dialer("master")}), served: make(chan struct{})}
	var err error
	m.Master, err = master.Start(master.Config{Advertise: masterAddress, StoreURL: "mem://", Conns: m.conns, Logger: l.logger, Clock: l.clock()})
	if err != nil {
		return nil, err
	}
	m.server = rpc.NewServer(rpc.ServerOptions{})
	m.Register(m.server)
	listener := l.net.listen(masterAddress)
	go func() {
		defer close(m.served)
		if err := m.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			l.fail(err)
		}
	}()
	<-m.Ready()
	return m, nil
}

func (m *runningMaster) stop() {
	m.server.Stop()
	<-m.served
	_ = m.Shutdown(context.Background()) // there is no deadline to miss
	m.conns.Close()
}
