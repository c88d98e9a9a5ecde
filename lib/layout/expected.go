package layout

import (
	"math"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Expected is what each broker is expected to carry: what it tells, and what
// decisions of the last seconds add to it or take from it, which its averages do
// not show yet. One Expected serves all topics, so that they do not all choose
// the same broker; it is kept from look to look. The zero value knows nobody.
type Expected struct {
	brokers []Broker
	added   map[smq.BrokerID]float64 // cost, decaying
	at      time.Time
}

// fades is how fast a decision's expectation gives way to what brokers measure:
// about as fast as their averages take it in.
const fades = 4 * time.Second

// Update takes in how the brokers are now. It is called before each round of
// looks. It keeps the slice.
func (e *Expected) Update(brokers []Broker, now time.Time) {
	if age := now.Sub(e.at); age > 0 {
		left := math.Exp(-age.Seconds() / fades.Seconds())
		for id, cost := range e.added {
			if e.added[id] = cost * left; math.Abs(cost) < costPerSegment/16 {
				delete(e.added, id)
			}
		}
		e.at = now
	}
	e.brokers = brokers
}

// Cost is what the broker is expected to carry, as Broker.Cost says it. It
// reports false for one that is not known.
func (e *Expected) Cost(id smq.BrokerID) (float64, bool) {
	b, ok := e.get(id)
	return e.cost(b), ok
}

func (e *Expected) cost(b Broker) float64 { return max(0, b.Cost()+e.added[b.ID]) }

func (e *Expected) get(id smq.BrokerID) (Broker, bool) {
	for _, b := range e.brokers {
		if b.ID == id {
			return b, true
		}
	}
	return Broker{}, false
}

// takes reports whether the broker takes segments.
func (e *Expected) takes(id smq.BrokerID) bool {
	b, ok := e.get(id)
	return ok && b.Takes()
}

// takers is the number of brokers that take segments.
func (e *Expected) takers() int {
	n := 0
	for _, b := range e.brokers {
		if b.Takes() {
			n++
		}
	}
	return n
}

// add expects one more segment, or with a sign of -1 one less, of the load.
func (e *Expected) add(id smq.BrokerID, l Load, sign float64) {
	if id == "" || !l.sane() {
		return
	}
	if e.added == nil {
		e.added = make(map[smq.BrokerID]float64)
	}
	b, _ := e.get(id)
	// A broker's own averages may lag behind its segments': none carries less
	// than nothing.
	e.added[id] = max(e.added[id]+sign*segmentCost(l), -b.Cost())
}

func segmentCost(l Load) float64 { return l.Cost() + costPerSegment }

// choose picks the broker for a segment of the load and expects it there: the
// one expected to carry least, but prefer (may be empty) if it carries no more
// than slack above that. Without any that takes segments it is empty.
func (e *Expected) choose(l Load, prefer smq.BrokerID, slack float64) smq.BrokerID {
	var best Broker
	found := false
	least := math.Inf(1)
	for _, b := range e.brokers {
		cost := e.cost(b)
		if b.Takes() && (!found || cost < least || cost == least && b.ID < best.ID) {
			best, least, found = b, cost, true
		}
	}
	if p, ok := e.get(prefer); ok && p.Takes() && e.cost(p) <= least+slack {
		best = p
	}
	e.add(best.ID, l, 1)
	return best.ID
}
