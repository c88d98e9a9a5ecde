package leader

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// view is the cluster's brokers as the masters tell them.
type view struct {
	changed chan struct{} // holds a token when brokers have died or come

	mu      sync.Mutex
	brokers []layout.Broker
	given   map[smq.BrokerID]int // segments given since the brokers told their load
}

func (v *view) init(brokers []layout.Broker) {
	v.changed = make(chan struct{}, 1)
	v.set(brokers)
}

func (v *view) set(brokers []layout.Broker) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := states(v.brokers)
	v.brokers = slices.Clone(brokers)
	v.given = make(map[smq.BrokerID]int)
	if !slices.Equal(before, states(brokers)) {
		select {
		case v.changed <- struct{}{}:
		default: // a token is there already
		}
	}
}

// state is what of a broker matters for failover.
type state struct {
	id    smq.BrokerID
	dead  bool
	takes bool
}

func states(brokers []layout.Broker) []state {
	all := make([]state, len(brokers))
	for i, b := range brokers {
		all[i] = state{b.ID, b.Dead, b.Takes()}
	}
	return all
}

// get returns the broker; false when it is not registered.
func (v *view) get(id smq.BrokerID) (layout.Broker, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.brokers, func(b layout.Broker) bool { return b.ID == id })
	if i < 0 {
		return layout.Broker{}, false
	}
	return v.brokers[i], true
}

// alive reports whether the broker is registered and not dead.
func (v *view) alive(id smq.BrokerID) bool {
	b, ok := v.get(id)
	return ok && !b.Dead
}

// gone reports whether the broker is not registered any more: its lease has run
// out, or it has left.
func (v *view) gone(id smq.BrokerID) bool {
	_, ok := v.get(id)
	return !ok
}

// live returns the brokers that are not dead.
func (v *view) live() []layout.Broker {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(v.brokers), func(b layout.Broker) bool { return b.Dead })
}

// takes reports whether any broker takes segments.
func (v *view) takes() bool { return slices.ContainsFunc(v.live(), layout.Broker.Takes) }

// wish says who should own a segment, and who should not.
type wish struct {
	prefer smq.BrokerID // if it takes segments
	avoid  smq.BrokerID // in any case
	spare  smq.BrokerID // if another one takes segments
}

// choose picks the owner for a segment, as layout.ChooseOwner does, and counts
// it as given; and as many followers as there are brokers for, up to replicas
// with the owner. smq.ErrUnavailable when no broker takes segments.
func (v *view) choose(w wish, replicas int) (owner layout.Member, followers []layout.Member, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	candidates := slices.Clone(v.brokers)
	for i := range candidates {
		candidates[i].Segments += v.given[candidates[i].ID]
	}
	b, ok := layout.ChooseOwner(candidates, w.prefer, cmp.Or(w.avoid, w.spare))
	if !ok && w.avoid == "" && w.spare != "" {
		b, ok = layout.ChooseOwner(candidates, "", "")
	}
	if !ok {
		return layout.Member{}, nil, fmt.Errorf("%w: none of %d brokers takes segments", smq.ErrUnavailable, len(candidates))
	}
	v.given[b.ID]++
	for _, f := range layout.ChooseFollowers(candidates, b, w.avoid, replicas-1) {
		followers = append(followers, f.Member())
	}
	return b.Member(), followers, nil
}
