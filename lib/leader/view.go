package leader

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// view is the cluster's brokers as the masters tell them.
type view struct {
	changed chan struct{} // holds a token when brokers have died or come

	mu      sync.Mutex
	brokers []layout.Broker
	given   map[smq.BrokerID]gift // what was given lately
	at      time.Time             // when set was called last
	shunned shunned               // as followers
	leaving map[smq.BrokerID]bool // that they drain is known, though perhaps not to the masters yet
}

// gift is what a broker was given and its own averages do not show yet.
type gift struct {
	segments int         // since the brokers told their load last
	load     layout.Load // fading
}

// giftFades is how fast what was given counts no more: about as fast as brokers'
// averages take it in.
const giftFades = 4 * time.Second

func (v *view) init(brokers []layout.Broker) {
	v.changed = make(chan struct{}, 1)
	v.shunned = make(shunned)
	v.leaving = make(map[smq.BrokerID]bool)
	v.set(brokers)
}

func (v *view) set(brokers []layout.Broker) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := states(v.brokers)
	v.brokers = slices.Clone(brokers)
	there := make(map[smq.BrokerID]bool, len(brokers))
	for i, b := range v.brokers {
		there[b.ID] = true
		v.brokers[i].Draining = b.Draining || v.leaving[b.ID]
	}
	maps.DeleteFunc(v.leaving, func(id smq.BrokerID, _ bool) bool { return !there[id] })
	now := time.Now()
	v.fade(now.Sub(v.at))
	v.at = now
	if !slices.Equal(before, states(v.brokers)) {
		select {
		case v.changed <- struct{}{}:
		default: // a token is there already
		}
	}
}

// fade takes in that some time has passed, and that the brokers have counted
// their segments since.
func (v *view) fade(passed time.Duration) {
	left := math.Exp(-passed.Seconds() / giftFades.Seconds())
	faded := make(map[smq.BrokerID]gift, len(v.given))
	for id, g := range v.given {
		if load := g.load.Scale(left); load.Cost() >= 1 {
			faded[id] = gift{load: load}
		}
	}
	v.given = faded
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

// all returns the brokers. The slice is not to be changed.
func (v *view) all() []layout.Broker {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.brokers
}

// takesSegments reports whether the broker takes segments.
func (v *view) takesSegments(id smq.BrokerID) bool {
	b, ok := v.get(id)
	return ok && b.Takes()
}

// takes reports whether any broker takes segments.
func (v *view) takes() bool { return slices.ContainsFunc(v.all(), layout.Broker.Takes) }

// shun takes in that another broker has lost this one, which the masters have not.
func (v *view) shun(id smq.BrokerID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.ContainsFunc(v.brokers, func(b layout.Broker) bool { return b.ID == id && !b.Dead }) {
		v.shunned.add(id, time.Now())
	}
}

// leave takes in that the broker drains, which the masters may not have heard
// yet. A drain is never taken back.
func (v *view) leave(id smq.BrokerID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.brokers, func(b layout.Broker) bool { return b.ID == id })
	if i < 0 || v.leaving[id] {
		return
	}
	v.leaving[id] = true
	v.brokers = slices.Clone(v.brokers) // others may look at them
	v.brokers[i].Draining = true
}

// eligible is how many brokers there are for an owner and its followers.
func (v *view) eligible() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for _, b := range v.brokers {
		if b.Takes() && !v.shunned.has(b.ID, now) {
			n++
		}
	}
	return n
}

// wish says who should own a segment, and who should not.
type wish struct {
	prefer smq.BrokerID // if it takes segments
	avoid  smq.BrokerID // in any case
	spare  smq.BrokerID // if another one takes segments
	load   layout.Load  // that it is expected to bring
}

// choose picks the owner for a segment, as layout.ChooseOwner does, and counts
// it as given; and as many followers as there are brokers for, up to replicas
// with the owner. smq.ErrUnavailable when no broker takes segments.
func (v *view) choose(w wish, replicas int) (owner layout.Member, followers []layout.Member, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	candidates := slices.Clone(v.brokers)
	for i := range candidates {
		g := v.given[candidates[i].ID]
		candidates[i].Segments += g.segments
		candidates[i].MessagesPerSecond += g.load.Messages
		candidates[i].BytesPerSecond += g.load.Bytes
	}
	b, ok := layout.ChooseOwner(candidates, w.prefer, cmp.Or(w.avoid, w.spare))
	if !ok && w.avoid == "" && w.spare != "" {
		b, ok = layout.ChooseOwner(candidates, "", "")
	}
	if !ok {
		return layout.Member{}, nil, fmt.Errorf("%w: of %s none takes segments", smq.ErrUnavailable, smq.Count(len(candidates), "broker"))
	}
	g := v.given[b.ID]
	v.given[b.ID] = gift{g.segments + 1, g.load.Add(w.load)}
	now := time.Now()
	candidates = slices.DeleteFunc(candidates, func(c layout.Broker) bool { return v.shunned.has(c.ID, now) })
	for _, f := range layout.ChooseFollowers(candidates, b, w.avoid, replicas-1) {
		followers = append(followers, f.Member())
	}
	return b.Member(), followers, nil
}
