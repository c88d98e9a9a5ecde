package registry

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
)

// world is what the random commands' proposer remembers, to check R3 and to
// come back with brokers that are gone.
type world struct {
	r       *rand.Rand
	ids     []smq.BrokerID          // ever used
	numbers map[smq.BrokerID]uint64 // told to them
	gone    map[smq.BrokerID]bool
}

func (w *world) someID() smq.BrokerID {
	if len(w.ids) == 0 || w.r.IntN(4) == 0 {
		w.ids = append(w.ids, smq.BrokerID(fmt.Sprintf("b%d", len(w.ids))))
		return w.ids[len(w.ids)-1]
	}
	return w.ids[w.r.IntN(len(w.ids))]
}

func (w *world) command() Command {
	switch w.r.IntN(12) {
	case 0:
		return expire(w.someID())
	case 1:
		return leave(w.someID())
	case 2:
		return drain(w.someID())
	case 3, 4:
		return silence(w.someID(), w.r.IntN(2) == 0)
	case 5:
		return Command{SetMaster: &Master{ID: fmt.Sprint(w.r.IntN(5)), Address: fmt.Sprint(w.r.IntN(3))}}
	case 6:
		return Command{Init: &Init{Cluster: smq.ClusterID(fmt.Sprint(w.r.IntN(2))), Store: "s", FirstJoin: w.r.Uint64N(100)}}
	default:
		id := w.someID()
		c := Register{ID: id, Address: "x:1", JoinedMS: w.r.Int64N(1000)}
		if w.r.IntN(2) == 0 {
			c.Join = w.numbers[id]
		}
		return Command{Register: &c}
	}
}

func TestRandomCommandsKeepTheInvariants(t *testing.T) {
	for seed := range uint64(60) {
		w := &world{r: rand.New(rand.NewPCG(seed, 0)), numbers: map[smq.BrokerID]uint64{}, gone: map[smq.BrokerID]bool{}}
		s := founded(t)
		var log []Command
		for step := range 150 {
			c := w.command()
			log = append(log, c)
			before, old := clone(t, s), s.Leader()
			r := s.Apply(c)
			where := fmt.Sprintf("seed %d step %d", seed, step)
			checkState(t, where, s)
			checkStep(t, where, before, s, r)
			checkTerm(t, where, old, s.Leader())
			w.checkIDs(t, where, c, r, s)
			if t.Failed() {
				return
			}
		}
		checkReplay(t, seed, log, s)
	}
}

// checkState checks R1.
func checkState(t *testing.T, where string, s *State) {
	t.Helper()
	leader := s.Leader()
	b, ok := s.Broker(leader.Broker)
	brokers := s.Brokers()
	if ok != (leader.Broker != "") || ok != (len(brokers) > 0) {
		t.Errorf("%s: leader %+v of %d brokers", where, leader, len(brokers))
	}
	if ok && !b.fit() && slices.ContainsFunc(brokers, Broker.fit) {
		t.Errorf("%s: %+v leads though others are fit", where, b)
	}
	if !slices.IsSortedFunc(brokers, func(a, b Broker) int { return int(a.Join) - int(b.Join) }) {
		t.Errorf("%s: brokers out of order: %+v", where, brokers)
	}
}

// checkStep checks that a result says what happened, and R4.
func checkStep(t *testing.T, where string, before, s *State, r Result) {
	t.Helper()
	if same := bytes.Equal(encoded(t, before), encoded(t, s)); same == r.Changed {
		t.Errorf("%s: result %+v, but the state changed: %v", where, r, !same)
	}
	if r.Err != nil && r.Changed {
		t.Errorf("%s: refused and changed: %+v", where, r)
	}
	if before.Cluster() != s.Cluster() || before.Store() != s.Store() {
		t.Errorf("%s: the cluster became %s with %s", where, s.Cluster(), s.Store())
	}
}

// checkTerm checks R2.
func checkTerm(t *testing.T, where string, old, leader Leader) {
	t.Helper()
	want := old.Term
	if old.Broker != leader.Broker {
		want++
	}
	if leader.Term != want {
		t.Errorf("%s: leader %+v after %+v", where, leader, old)
	}
}

// checkIDs checks R3; no sequence here is long enough for the bounded list to
// forget one.
func (w *world) checkIDs(t *testing.T, where string, c Command, r Result, s *State) {
	t.Helper()
	if c.Register != nil && r.Err == nil {
		if w.gone[c.Register.ID] {
			t.Errorf("%s: %s came back", where, c.Register.ID)
		}
		w.numbers[c.Register.ID] = r.Join
	}
	for id := range w.numbers {
		if _, ok := s.Broker(id); !ok {
			w.gone[id] = true
		}
	}
}

// checkReplay checks that the log gives the same state anywhere, through a
// snapshot at any place and through the encoded form of the commands.
func checkReplay(t *testing.T, seed uint64, log []Command, want *State) {
	t.Helper()
	s := founded(t)
	for i, c := range log {
		if i == len(log)*int(seed%10)/10 {
			s = clone(t, s)
		}
		b, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := DecodeCommand(b)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(decoded)
	}
	if got, want := encoded(t, s), encoded(t, want); !bytes.Equal(got, want) {
		t.Errorf("seed %d: replayed to\n%s instead of\n%s", seed, got, want)
	}
}

func encoded(t *testing.T, s *State) []byte {
	t.Helper()
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// clone restores a snapshot of s and checks that it is equal.
func clone(t *testing.T, s *State) *State {
	t.Helper()
	b := encoded(t, s)
	c, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := encoded(t, c); !bytes.Equal(b, again) {
		t.Errorf("restored\n%s from\n%s", again, b)
	}
	if c.Leader() != s.Leader() || !slices.Equal(c.Brokers(), s.Brokers()) || !slices.Equal(c.Masters(), s.Masters()) || c.Cluster() != s.Cluster() || c.Store() != s.Store() {
		t.Errorf("the restored state differs from %s", b)
	}
	return c
}
