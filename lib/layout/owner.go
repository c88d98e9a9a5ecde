package layout

import (
	"cmp"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
)

// Broker is a broker as a candidate for owning segments.
type Broker struct {
	ID                smq.BrokerID
	Address           string // gRPC, host:port
	Rack              string
	Segments          int // that it owns or is about to
	MessagesPerSecond float64
	BytesPerSecond    float64
	// Dead: its lease has run out or its connection has broken. What it owns
	// may be sealed from the store.
	Dead bool
	// Draining: it is leaving and takes nothing new.
	Draining bool
}

// Member is the broker in its role for a segment.
func (b Broker) Member() Member { return Member{Broker: b.ID, Address: b.Address} }

// Takes reports whether the broker takes new segments.
func (b Broker) Takes() bool { return !b.Dead && !b.Draining }

// What a message and a segment cost a broker besides their bytes, as bytes per
// second: a segment that is silent now may not stay so.
const (
	costPerMessage = 100
	costPerSegment = 64 << 10
)

// Cost is the broker's load as one number, in bytes per second or their like.
func (b Broker) Cost() float64 {
	return b.BytesPerSecond + costPerMessage*b.MessagesPerSecond + costPerSegment*float64(b.Segments)
}

// ChooseOwner picks the broker for a segment: the least loaded of those that
// take new ones, the lowest id among equals. prefer (may be empty) wins
// whatever its load, if it takes segments; avoid (may be empty) is never
// chosen. It reports false when there is none.
func ChooseOwner(brokers []Broker, prefer, avoid smq.BrokerID) (Broker, bool) {
	var can []Broker
	for _, b := range brokers {
		if !b.Takes() || b.ID == avoid && avoid != "" {
			continue
		}
		if b.ID == prefer {
			return b, true
		}
		can = append(can, b)
	}
	if len(can) == 0 {
		return Broker{}, false
	}
	return slices.MinFunc(can, byCost), true
}

// Carrier is the owner that carries most of what the segments take in together,
// so that fewest publishers have to go elsewhere when they become one: by load
// (see Load.Cost), which load tells of each, then by their number, then by their
// order. Owners that takes refuses are left out; without any it is empty.
func Carrier(segments []Segment, load func(i int) Load, takes func(smq.BrokerID) bool) (carrier smq.BrokerID) {
	type carried struct {
		cost     float64
		segments int
	}
	by := make(map[smq.BrokerID]carried)
	for i, s := range segments {
		if !s.Assigned() || !takes(s.Owner.Broker) {
			continue
		}
		c := by[s.Owner.Broker]
		by[s.Owner.Broker] = carried{c.cost + load(i).Cost(), c.segments + 1}
	}
	var most carried
	for _, s := range segments {
		c := by[s.Owner.Broker]
		if cmp.Or(cmp.Compare(c.cost, most.cost), cmp.Compare(c.segments, most.segments)) > 0 {
			carrier, most = s.Owner.Broker, c
		}
	}
	return carrier
}

// ChooseFollowers picks up to n followers for a segment of the given owner:
// on racks that are not taken yet first, then the least loaded, then the
// lowest id. avoid (may be empty) is never chosen.
func ChooseFollowers(brokers []Broker, owner Broker, avoid smq.BrokerID, n int) []Broker {
	taken := map[string]bool{owner.Rack: true}
	var can, chosen []Broker
	for _, b := range brokers {
		if b.Takes() && b.ID != owner.ID && (avoid == "" || b.ID != avoid) {
			can = append(can, b)
		}
	}
	for len(chosen) < n && len(can) > 0 {
		next := slices.MinFunc(can, func(a, b Broker) int {
			return cmp.Or(compareBool(taken[a.Rack], taken[b.Rack]), byCost(a, b))
		})
		chosen = append(chosen, next)
		taken[next.Rack] = true
		can = slices.DeleteFunc(can, func(b Broker) bool { return b.ID == next.ID })
	}
	return chosen
}

func byCost(a, b Broker) int {
	return cmp.Or(cmp.Compare(a.Cost(), b.Cost()), cmp.Compare(a.ID, b.ID))
}

// compareBool sorts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
