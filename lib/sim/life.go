package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/fault"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// life is one run of many processes over some time, in which chance decides.
type life struct {
	cfg     config
	limits  seglog.Limits
	inline  int64 // above which chunks are uploaded ahead
	st      *mem.Store
	ledger  *Ledger
	checker *Checker
	table   *table
	dice    *Dice
	began   time.Time

	tasks sync.WaitGroup

	wrap func(store.Store) store.Store // nil, unless something is wrong with the store

	mu      sync.Mutex
	healed  bool // nothing fails any more
	hosts   []*host
	stores  []*fault.Store
	journal []string
	counts  map[string]int // of events, by kind
	broken  error          // the first violation
}

// The phases of a life: for so long things go wrong; by then all must be well
// again.
const (
	trouble  = 10 * time.Second
	recovery = 10 * time.Minute
)

// story is how a life went.
type story struct {
	err     error    // the promise that was broken
	journal []string // what happened
	counts  map[string]int
}

// live runs a life in a bubble of its own.
func live(t *testing.T, cfg config, wrap func(store.Store) store.Store) (s story) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(cfg)
		l.wrap = wrap
		ctx, stop := context.WithCancel(t.Context())
		s.err = l.run(ctx)
		stop()
		l.end()
		s.journal, s.counts = l.journal, l.counts
	})
	return s
}

func newLife(cfg config) *life {
	l := &life{cfg: cfg, st: mem.New(), ledger: NewLedger(), table: new(table), dice: NewDice(cfg.seed, "life"),
		began: time.Now(), counts: make(map[string]int)}
	l.limits = limits(l.dice)
	l.inline = int64(l.dice.IntN(2)) << 20
	l.checker = NewChecker(l.st, topic, topicID, l.ledger)
	return l
}

// note keeps an event for the report.
func (l *life) note(format string, args ...any) {
	line := fmt.Sprintf("%8.3fs ", time.Since(l.began).Seconds()) + fmt.Sprintf(format, args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journal = append(l.journal, line)
}

// count counts an event.
func (l *life) count(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[event]++
}

// fail keeps the first violation.
func (l *life) fail(err error) {
	l.note("VIOLATION %v", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
	}
}

// spawn runs a task that ends when the life does.
func (l *life) spawn(f func()) { l.tasks.Go(f) }

func (l *life) isHealed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.healed
}

// openStore is a process's way to the store.
func (l *life) openStore(name string) *fault.Store {
	d := NewDice(l.cfg.seed, "store of "+name)
	var inner store.Store = sized{l.st.Handle(), l.inline}
	if l.wrap != nil {
		inner = l.wrap(inner)
	}
	s := fault.New(inner, l.cfg.seed+uint64(d.IntN(1<<30)), l.cfg.rates(d))
	s.Zombies = true
	s.Before = func(op fault.Op) fault.Decision {
		if l.isHealed() {
			return fault.Decision{}
		}
		d := s.Roll(op)
		if op.Kind.Changes() && d.Outcome != fault.Pass {
			l.count("store: " + d.Outcome.String())
		}
		return d
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stores = append(l.stores, s)
	return s
}

// sized is a store that has content uploaded ahead from a size on.
type sized struct {
	store.Store
	inline int64
}

// Limits say so.
func (s sized) Limits() store.Limits { return store.Limits{Inline: s.inline, Piece: 1 << 20} }

// run is the life: trouble, then peace until everything is delivered and read.
func (l *life) run(ctx context.Context) error {
	var first *host
	for i := range l.cfg.hosts {
		first = l.startHost(ctx, fmt.Sprintf("h%d", i+1))
	}
	p := l.table.add(ident(1, smq.Range{Lo: 0, Hi: smq.Partition(l.cfg.partitions)}), first)
	l.spawn(func() { first.serve(p) })
	for i := range l.cfg.leaders {
		ld := l.newLeader(fmt.Sprintf("l%d", i+1))
		l.spawn(func() { ld.run(ctx) })
	}
	streams, readers := l.startStreams(ctx), l.startReaders(ctx)
	l.chaos(ctx)
	const interval = 500 * time.Millisecond
	for range int(trouble / interval) {
		time.Sleep(interval)
		if err := l.check(ctx); err != nil {
			return err
		}
	}
	l.heal()
	if err := l.settled(ctx, streams, readers); err != nil {
		return err
	}
	return l.finish(ctx)
}

// check holds what was told so far against the store.
func (l *life) check(ctx context.Context) error {
	if err := l.checker.Check(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// heal ends all trouble.
func (l *life) heal() {
	l.note("nothing fails from here on")
	l.mu.Lock()
	l.healed = true
	stores := slices.Clone(l.stores)
	l.mu.Unlock()
	for _, s := range stores {
		s.Resume()
	}
}

// settled waits until every batch is acked or given up, and everything is read.
func (l *life) settled(ctx context.Context, streams []*stream, readers []*reader) error {
	for waited := time.Duration(0); waited < recovery; waited += time.Second {
		time.Sleep(time.Second)
		if err := l.check(ctx); err != nil {
			return err
		}
		busy := slices.ContainsFunc(streams, func(s *stream) bool { return !s.isDone() })
		if !busy && !slices.ContainsFunc(readers, func(r *reader) bool { return r.at() < l.checker.End(r.partition) }) {
			return nil
		}
	}
	for _, s := range streams {
		if !s.isDone() {
			return Violated("answers", "%s is still not done: %s", s.name, s.describe())
		}
	}
	for _, r := range readers {
		if end := l.checker.End(r.partition); r.at() < end {
			return Violated("P4", "%s is at offset %d and does not come to the end, %d", r.name, r.at(), end)
		}
	}
	return nil
}

// finish checks what must hold at the end.
func (l *life) finish(ctx context.Context) error {
	time.Sleep(10 * time.Second) // what is late has come
	if err := l.check(ctx); err != nil {
		return err
	}
	if err := l.checker.Unchanged(ctx); err != nil {
		return err
	}
	if err := l.unanswered(ctx); err != nil {
		return err
	}
	for _, id := range l.checker.Segments() {
		report, err := seglog.Verify(ctx, l.st, id)
		if err != nil {
			return Violated("P1", "verify %v: %v", id, err)
		}
		if len(report.Problems) > 0 {
			return Violated("P1", "verify %v: %s", id, strings.Join(report.Problems, "; "))
		}
	}
	return nil
}

// unanswered checks that living hosts have answered all that they were sent,
// and given its memory back.
func (l *life) unanswered(ctx context.Context) error {
	l.mu.Lock()
	hosts := slices.Clone(l.hosts)
	l.mu.Unlock()
	for _, h := range hosts {
		if h.isDead() {
			continue
		}
		if keys := l.ledger.Unanswered(h.name); len(keys) > 0 {
			return Violated("answers", "%s never answers %v", h.name, keys)
		}
		if err := h.released(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end stops everything.
func (l *life) end() {
	l.mu.Lock()
	hosts, stores := slices.Clone(l.hosts), slices.Clone(l.stores)
	l.mu.Unlock()
	for _, h := range hosts {
		h.kill()
	}
	l.tasks.Wait()
	for _, s := range stores {
		if err := s.Close(); err != nil {
			l.note("close the store: %v", err)
		}
	}
}
