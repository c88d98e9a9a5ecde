package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seaweedmq/smq/lib/smq"
)

// Result is what a command did.
type Result struct {
	Err     error  // the command was refused and changed nothing
	Changed bool   // the state is not what it was
	Join    uint64 // of Register: the registration's number
}

// Apply applies a command. It never fails half-way.
func (s *State) Apply(c Command) Result {
	var r Result
	switch {
	case c.Init != nil:
		r = s.init(*c.Init)
	case c.SetMaster != nil:
		r = s.setMaster(*c.SetMaster)
	case c.Register != nil:
		r = s.register(*c.Register)
	case c.Drain != nil:
		r = s.update(c.Drain.ID, func(b *Broker) { b.Draining = true })
	case c.Silence != nil:
		r = s.update(c.Silence.ID, func(b *Broker) { b.Silent = c.Silence.Silent })
	case c.Leave != nil:
		r = s.remove(c.Leave.ID)
	case c.Expire != nil:
		r = s.remove(c.Expire.ID)
	default:
		r.Err = fmt.Errorf("%w registry command: of a kind that is not known here", smq.ErrInvalid)
	}
	if r.Changed {
		s.chooseLeader()
	}
	return r
}

func (s *State) init(c Init) Result {
	switch {
	case c.Cluster == "" || c.Store == "":
		return refuse("%w: a cluster needs an id and a store", smq.ErrInvalid)
	case s.d.Cluster == "":
		s.d.Cluster, s.d.Store, s.d.FirstJoin = c.Cluster, c.Store, max(c.FirstJoin, 1)
		s.d.NextJoin = s.d.FirstJoin
		s.d.Term = c.FirstTerm
		return Result{Changed: true}
	case s.d.Cluster != c.Cluster || s.d.Store != c.Store:
		return refuse("%w: the cluster is %s with the store %s", smq.ErrConflict, s.d.Cluster, s.d.Store)
	}
	return Result{}
}

func (s *State) setMaster(m Master) Result {
	if m.ID == "" {
		return refuse("%w master: it has no id", smq.ErrInvalid)
	}
	i, ok := slices.BinarySearchFunc(s.d.Masters, m.ID, masterByID)
	switch {
	case !ok:
		s.d.Masters = slices.Insert(s.d.Masters, i, m)
	case s.d.Masters[i] == m:
		return Result{}
	default:
		s.d.Masters[i] = m
	}
	return Result{Changed: true}
}

func masterByID(m Master, id string) int { return strings.Compare(m.ID, id) }

func (s *State) register(c Register) Result {
	if s.d.Cluster == "" {
		return refuse("%w: the cluster has not been founded yet", smq.ErrUnavailable)
	}
	if c.ID == "" || c.Address == "" {
		return refuse("%w broker: it needs an id and an address", smq.ErrInvalid)
	}
	if b, ok := s.Broker(c.ID); ok {
		if b.Address != c.Address {
			return refuse("%w: broker %s is at %s already", smq.ErrConflict, c.ID, b.Address)
		}
		return Result{Join: b.Join}
	}
	if s.given(c.Join) || slices.Contains(s.d.Expired, c.ID) {
		return refuse("%w: broker %s has left or expired; it must start over with a fresh id", smq.ErrConflict, c.ID)
	}
	b := Broker{
		ID: c.ID, Address: c.Address, HTTPAddress: c.HTTPAddress, Rack: c.Rack, Version: c.Version,
		Join: s.d.NextJoin, JoinedMS: c.JoinedMS,
	}
	s.d.NextJoin++
	s.d.Brokers = append(s.d.Brokers, b)
	return Result{Changed: true, Join: b.Join}
}

// given reports whether this registry has given the number.
func (s *State) given(join uint64) bool { return join >= s.d.FirstJoin && join < s.d.NextJoin }

func (s *State) update(id smq.BrokerID, change func(*Broker)) Result {
	i := s.index(id)
	if i < 0 {
		return Result{}
	}
	before := s.d.Brokers[i]
	change(&s.d.Brokers[i])
	return Result{Changed: s.d.Brokers[i] != before}
}

// remove ends a registration, for good: see the package documentation.
func (s *State) remove(id smq.BrokerID) Result {
	i := s.index(id)
	if i < 0 {
		return Result{}
	}
	s.d.Brokers = slices.Delete(s.d.Brokers, i, i+1)
	s.d.Expired = append(s.d.Expired, id)
	if n := len(s.d.Expired) - maxExpired; n > 0 {
		s.d.Expired = slices.Delete(s.d.Expired, 0, n)
	}
	return Result{Changed: true}
}

// chooseLeader applies the rule of the package documentation.
func (s *State) chooseLeader() {
	next := s.pickLeader()
	if next == s.d.Leader {
		return
	}
	s.d.Leader = next
	s.d.Term++
}

func (s *State) pickLeader() smq.BrokerID {
	present, registered := s.Broker(s.d.Leader)
	if registered && present.fit() {
		return present.ID
	}
	if i := slices.IndexFunc(s.d.Brokers, Broker.fit); i >= 0 {
		return s.d.Brokers[i].ID
	}
	if registered {
		return present.ID
	}
	if len(s.d.Brokers) > 0 {
		return s.d.Brokers[0].ID
	}
	return ""
}

func refuse(format string, args ...any) Result { return Result{Err: fmt.Errorf(format, args...)} }
