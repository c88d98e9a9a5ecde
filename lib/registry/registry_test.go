package registry

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
)

const base = 1_000_000 // where registrations are numbered from

// founded is the state of a cluster with the given brokers.
func founded(t testing.TB, brokers ...smq.BrokerID) *State {
	t.Helper()
	s := New()
	apply(t, s, Command{Init: &Init{Cluster: "c", Store: "mem://", FirstJoin: base}})
	for _, id := range brokers {
		join(t, s, id)
	}
	return s
}

func apply(t testing.TB, s *State, c Command) Result {
	t.Helper()
	r := s.Apply(c)
	if r.Err != nil {
		t.Fatalf("%+v: %v", c, r.Err)
	}
	return r
}

func join(t testing.TB, s *State, id smq.BrokerID) Result {
	t.Helper()
	return apply(t, s, Command{Register: &Register{ID: id, Address: string(id) + ":1"}})
}

func drain(id smq.BrokerID) Command  { return Command{Drain: &BrokerRef{id}} }
func leave(id smq.BrokerID) Command  { return Command{Leave: &BrokerRef{id}} }
func expire(id smq.BrokerID) Command { return Command{Expire: &BrokerRef{id}} }
func silence(id smq.BrokerID, silent bool) Command {
	return Command{Silence: &Silence{id, silent}}
}

func TestWhoLeads(t *testing.T) {
	for _, test := range []struct {
		name    string
		brokers []smq.BrokerID
		do      []Command
		leader  smq.BrokerID
		term    uint64
	}{
		{"nobody", nil, nil, "", 0},
		{"the first to join", []smq.BrokerID{"c", "a", "b"}, nil, "c", 1},
		{"the next when it expires", []smq.BrokerID{"c", "b", "a"}, []Command{expire("c")}, "b", 2},
		{"the next when it leaves", []smq.BrokerID{"c", "b", "a"}, []Command{leave("c")}, "b", 2},
		{"the same when others go", []smq.BrokerID{"a", "b", "c"}, []Command{expire("b"), drain("c")}, "a", 1},
		{"the next when it drains", []smq.BrokerID{"a", "b", "c"}, []Command{drain("b"), drain("a")}, "c", 2},
		{"the next when it falls silent", []smq.BrokerID{"a", "b"}, []Command{silence("a", true)}, "b", 2},
		{"not the old one again when it speaks", []smq.BrokerID{"a", "b"}, []Command{silence("a", true), silence("a", false)}, "b", 2},
		{"the only one though it drains", []smq.BrokerID{"a"}, []Command{drain("a")}, "a", 1},
		{"the first of those that drain", []smq.BrokerID{"a", "b", "c"}, []Command{drain("b"), drain("c"), drain("a"), leave("a")}, "b", 2},
		{"nobody after the last", []smq.BrokerID{"a"}, []Command{leave("a")}, "", 2},
		{"one that joins after a time without", []smq.BrokerID{"a"}, []Command{leave("a"), {Register: &Register{ID: "b", Address: "b:1"}}}, "b", 3},
		{"a fit one that joins the draining", []smq.BrokerID{"a"}, []Command{drain("a"), {Register: &Register{ID: "b", Address: "b:1"}}}, "b", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := founded(t, test.brokers...)
			for _, c := range test.do {
				apply(t, s, c)
			}
			want := Leader{Broker: test.leader, Term: test.term}
			if test.leader != "" {
				want.Address = string(test.leader) + ":1"
			}
			if got := s.Leader(); got != want {
				t.Errorf("leader %+v, want %+v", got, want)
			}
		})
	}
}

func TestRegisterAgain(t *testing.T) {
	s := founded(t)
	first := join(t, s, "a")
	if !first.Changed || first.Join != base {
		t.Fatalf("got %+v", first)
	}
	if again := join(t, s, "a"); again.Changed || again.Join != first.Join {
		t.Errorf("again: %+v", again)
	}
	if second := join(t, s, "b"); second.Join != base+1 {
		t.Errorf("another: %+v", second)
	}
	if r := s.Apply(Command{Register: &Register{ID: "a", Address: "elsewhere:1"}}); !errors.Is(r.Err, smq.ErrConflict) || r.Changed {
		t.Errorf("another address: %+v", r)
	}
}

func TestExpiredBrokerNeverComesBack(t *testing.T) {
	s := founded(t)
	told := join(t, s, "told").Join
	join(t, s, "untold")
	apply(t, s, expire("told"))
	apply(t, s, leave("untold"))
	refused := func(id smq.BrokerID, number uint64) bool {
		r := s.Apply(Command{Register: &Register{ID: id, Address: "x:1", Join: number}})
		return errors.Is(r.Err, smq.ErrConflict) && !r.Changed
	}
	if !refused("told", told) || !refused("told", 0) || !refused("untold", 0) {
		t.Error("a broker came back")
	}
	// The list of ids is bounded; a number is remembered for ever.
	for i := range maxExpired {
		id := smq.BrokerID(fmt.Sprint(i))
		join(t, s, id)
		apply(t, s, expire(id))
	}
	if len(s.d.Expired) != maxExpired {
		t.Errorf("%d ids are kept", len(s.d.Expired))
	}
	if !refused("told", told) {
		t.Error("a broker came back after a long time")
	}
}

// A registry that was lost, or restored from an old copy, takes the brokers
// that live on.
func TestBrokersOfALostRegistryRegister(t *testing.T) {
	s := New()
	apply(t, s, Command{Init: &Init{Cluster: "c", Store: "mem://", FirstJoin: base}})
	for id, number := range map[smq.BrokerID]uint64{"before": base - 1, "after": base + 500} {
		r := apply(t, s, Command{Register: &Register{ID: id, Address: "x:1", Join: number}})
		if !r.Changed || !s.given(r.Join) {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

func TestClusterAndStoreAreFixed(t *testing.T) {
	s := New()
	if r := s.Apply(Command{Register: &Register{ID: "a", Address: "a:1"}}); !errors.Is(r.Err, smq.ErrUnavailable) {
		t.Errorf("a broker before the founding: %+v", r)
	}
	if r := s.Apply(Command{Init: &Init{Cluster: "c"}}); !errors.Is(r.Err, smq.ErrInvalid) {
		t.Errorf("without a store: %+v", r)
	}
	init := Init{Cluster: "c", Store: "mem://", FirstJoin: 5}
	if r := apply(t, s, Command{Init: &init}); !r.Changed {
		t.Errorf("got %+v", r)
	}
	init.FirstJoin = 6
	if r := apply(t, s, Command{Init: &init}); r.Changed {
		t.Errorf("the same again: %+v", r)
	}
	for _, other := range []Init{{Cluster: "d", Store: "mem://"}, {Cluster: "c", Store: "dir:///x"}} {
		if r := s.Apply(Command{Init: &other}); !errors.Is(r.Err, smq.ErrConflict) {
			t.Errorf("%+v: %+v", other, r)
		}
	}
	if s.Cluster() != "c" || s.Store() != "mem://" {
		t.Errorf("it is %s with %s", s.Cluster(), s.Store())
	}
}

func TestMasters(t *testing.T) {
	s := founded(t)
	for _, m := range []Master{{ID: "b", Address: "b:1"}, {ID: "a", Address: "a:1"}, {ID: "b", Address: "b:2"}} {
		if r := apply(t, s, Command{SetMaster: &m}); !r.Changed {
			t.Errorf("%+v changed nothing", m)
		}
		if r := apply(t, s, Command{SetMaster: &m}); r.Changed {
			t.Errorf("%+v again changed something", m)
		}
	}
	if got := s.Masters(); len(got) != 2 || got[0].ID != "a" || got[1] != (Master{ID: "b", Address: "b:2"}) {
		t.Errorf("masters %+v", got)
	}
	if m, ok := s.Master("a"); !ok || m.Address != "a:1" {
		t.Errorf("a is %+v", m)
	}
	if _, ok := s.Master("c"); ok {
		t.Error("c is known")
	}
	if r := s.Apply(Command{SetMaster: &Master{}}); !errors.Is(r.Err, smq.ErrInvalid) {
		t.Errorf("without an id: %+v", r)
	}
}

func TestUnknownBrokersAndCommands(t *testing.T) {
	s := founded(t, "a")
	for _, c := range []Command{drain("x"), leave("x"), expire("x"), silence("x", true)} {
		if r := s.Apply(c); r.Err != nil || r.Changed {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	future, err := DecodeCommand([]byte(`{"promote":{"id":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Apply(future); !errors.Is(r.Err, smq.ErrInvalid) || r.Changed {
		t.Errorf("a command of the future: %+v", r)
	}
	if _, err := DecodeCommand([]byte("{")); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("garbage: %v", err)
	}
}

func TestRestoreRefusesWhatItCannotRead(t *testing.T) {
	for text, want := range map[string]error{
		"":             smq.ErrCorrupt,
		"{":            smq.ErrCorrupt,
		"{}":           smq.ErrInvalid,
		`{"format":2}`: smq.ErrInvalid,
	} {
		if _, err := Restore([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
