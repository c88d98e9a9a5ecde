// Package fault wraps a store and makes it fail, by chance or as a test says:
// the calls of one process to a store that may be slow, full, out of reach, or
// silent about what it has done.
//
//	s := fault.New(mem.New(), seed, fault.Changes(fault.Rate{Lose: 0.1, Late: 0.1, MaxLate: time.Minute}))
//
// # Chance
//
// What happens to a call depends on the seed, on its kind and path, and on how
// many calls of that kind and path came before, and on nothing else. So it is
// the same in each run, however goroutines are scheduled. Before takes the
// decision away from chance, for searches that try each failure at each place.
//
// # Processes
//
// A Store stands for one process. Several of them may wrap handles on the same
// inner store. Kill ends the process; Pause cuts it off from the store for a
// while.
//
// # Time
//
// Waiting is done by Sleep, which by default uses a timer: real time, or a
// synctest bubble's if New was called in it. Close ends what is under way in the
// background.
package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Kind is a method of a store.
type Kind int

// The methods that can be made to fail.
const (
	Create Kind = iota
	Replace
	Remove
	RemoveAll
	Upload
	Discard
	Read
	ReadAt
	Stat
	List
	Watch

	kinds = iota
)

var kindNames = [kinds]string{
	"Create", "Replace", "Remove", "RemoveAll", "Upload", "Discard", "Read", "ReadAt", "Stat", "List", "Watch",
}

// String is the method's name.
func (k Kind) String() string { return kindNames[k] }

// Changes reports whether the method changes the store.
func (k Kind) Changes() bool { return k <= Discard }

// Op is one call.
type Op struct {
	Kind Kind
	Path string // empty for Upload and Discard
	N    int    // how many calls of this kind and path came before
}

// String is the method's name, its path, and how often it came before.
func (o Op) String() string { return fmt.Sprintf("%v(%s)#%d", o.Kind, o.Path, o.N) }

// Outcome is what becomes of a call.
type Outcome int

// For calls that change nothing each outcome but Pass, DieBefore and DieAfter is
// Refuse.
const (
	Pass      Outcome = iota // the inner store's own
	Refuse                   // it is not carried out, and fails with smq.ErrUnavailable
	Full                     // it is not carried out, and fails with smq.ErrNoSpace
	Lose                     // it is carried out, and its answer is lost: store.ErrAmbiguous
	Late                     // store.ErrAmbiguous, and it is carried out afterwards
	Drop                     // store.ErrAmbiguous, and it is never carried out
	DieBefore                // the process is killed before it is carried out
	DieAfter                 // the process is killed when it has been carried out
)

var outcomeNames = [...]string{"pass", "refuse", "full", "lose", "late", "drop", "die before", "die after"}

// String is a word for the outcome.
func (o Outcome) String() string { return outcomeNames[o] }

// Decision is what shall become of a call. The zero value lets it pass.
type Decision struct {
	Outcome Outcome
	Delay   time.Duration // from the call to anything else
	LateBy  time.Duration // for Late: from the answer to the effect
}

// ErrKilled is what every call of a killed process fails with.
var ErrKilled = errors.New("the process was killed")

// Store is a process's handle on a store that fails. Set the exported fields
// before the first call.
type Store struct {
	// Before decides what becomes of a call. Nil stands for Roll, which it
	// may call too. It may be called by several goroutines at once, and may
	// call Kill, Pause and Resume.
	Before func(Op) Decision
	// Sleep waits for the duration or until the context ends, whose error it
	// then returns.
	Sleep func(ctx context.Context, d time.Duration) error
	// Zombies lets late changes of a killed process still arrive, as what is
	// in a network does. Close ends them all the same.
	Zombies bool

	inner store.Store
	seed  uint64
	rates Rates

	// The process's life ends by Kill or Close; open is until Close.
	life, open context.Context
	kill, stop context.CancelFunc

	mu     sync.Mutex
	counts map[Op]int    // of calls so far, by kind and path
	killed bool          // no call begins any more
	gate   chan struct{} // closed by Resume; nil when not paused
	log    []Entry       // the last ones

	calls sync.WaitGroup // under way; none is added once killed is set
	late  sync.WaitGroup // late changes to come
}

var _ store.Store = (*Store)(nil)

// New wraps a store. Without rates, and without Before, nothing fails.
func New(inner store.Store, seed uint64, rates Rates) *Store {
	s := &Store{Sleep: sleep, inner: inner, seed: seed, rates: rates, counts: map[Op]int{}}
	s.open, s.stop = context.WithCancel(context.Background())
	s.life, s.kill = context.WithCancel(s.open)
	return s
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends the process. Of the calls that are under way each one is cut short
// before or after it is carried out, by chance; when Kill returns all of them
// have ended. Later calls fail, and no late change arrives unless Zombies are
// let. It may be called again.
func (s *Store) Kill() {
	s.die()
	s.calls.Wait()
	if !s.Zombies {
		s.late.Wait()
	}
}

func (s *Store) die() {
	s.mu.Lock()
	s.killed = true
	s.mu.Unlock()
	s.kill()
}

// Pause makes all calls hang, and late changes too, before they are carried
// out, until Resume, or until their contexts end: then the outcome is unknown.
func (s *Store) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		s.gate = make(chan struct{})
	}
}

// Resume ends a Pause.
func (s *Store) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		close(s.gate)
		s.gate = nil
	}
}

// Close ends all that is under way in the background, and closes the inner
// store.
func (s *Store) Close() error {
	s.stop()
	s.late.Wait()
	return s.inner.Close()
}

// begin counts a call and decides on it. end must follow if it succeeds.
func (s *Store) begin(kind Kind, path string) (Op, Decision, error) {
	op := Op{Kind: kind, Path: path}
	s.mu.Lock()
	n := s.counts[op]
	s.counts[op]++
	s.mu.Unlock()
	op.N = n
	decide := s.Before
	if decide == nil {
		decide = s.Roll
	}
	d := decide(op)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		err := fmt.Errorf("%v: %w: %w", op, smq.ErrUnavailable, ErrKilled)
		s.note(Entry{Op: op, Decision: d, Err: err})
		return op, d, err
	}
	s.calls.Add(1)
	return op, d, nil
}

// end notes how a call went.
func (s *Store) end(e Entry) error {
	s.mu.Lock()
	s.note(e)
	s.mu.Unlock()
	s.calls.Done()
	return e.Err
}

// hold waits for the delay and for the end of a pause. It fails with the
// context's error, or with ErrKilled when the process ends first.
func (s *Store) hold(ctx, life context.Context, delay time.Duration) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	var err error
	if delay > 0 {
		err = s.Sleep(waiting, delay)
	}
	for gate := s.paused(); gate != nil && err == nil; gate = s.paused() {
		select {
		case <-gate:
		case <-waiting.Done():
			err = waiting.Err()
		}
	}
	switch {
	case err == nil:
		return nil
	case life.Err() != nil:
		return ErrKilled
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return err
	}
}

func (s *Store) paused() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate
}
