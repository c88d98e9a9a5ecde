package layout

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Candidate is a segment that may be moved to another broker: assigned, of
// known load, with no change under way, not changed within its topic's cool-down
// (see Memory.Changed), of a topic whose policy is Auto.
type Candidate struct {
	Topic   smq.TopicID
	Segment Segment
	Load    Load
}

// Transfer is a segment to move from one broker to another.
type Transfer struct {
	Topic    smq.TopicID
	Segment  Segment
	From, To smq.BrokerID
	Reason   string // for people
}

// Decision is the transfer as a decision about its topic.
func (t Transfer) Decision() Decision {
	return Decision{
		Cause:    Move,
		Segments: []Segment{t.Segment},
		Ranges:   []smq.Range{t.Segment.Range},
		Owners:   []smq.BrokerID{t.To},
		Reason:   t.Reason,
	}
}

// Balance is what Rebalance remembers of the cluster from look to look. The
// zero value remembers nothing.
type Balance struct {
	since time.Time // since when the brokers have been unequal
	tried time.Time // when segments to move were last looked for
	total float64   // all brokers' traffic at the last look
}

const (
	// Brokers are unequal when one carries more than this share above the
	// average, and at least so many bytes per second.
	unequalBy, unequalAt = 0.3, 1e6
	// A round of moves as this one has to take this share of what the two
	// brokers differ by.
	roundWorth = 0.1
	// While all traffic changes by more than this share from look to look,
	// averages that are of different ages say nothing about who carries more.
	steadyWithin = 0.1
	// movesAtOnce is how many segments are moved in a round.
	movesAtOnce = 4
	// Rounds begin when brokers have been unequal for a while, and wait for
	// averages to show what the last one did.
	unequalAfter = 10 * time.Second
	moveEvery    = 10 * time.Second
)

// Rebalance looks at the brokers, and when they have been unequal for long
// enough moves a few segments from those that carry most to those that carry
// least. Of a broker's segments the heaviest that fits goes first: one that
// leaves the receiver with no more than the giver, so that none is ever moved
// back. Only traffic counts; silent segments stay where they are. It is meant to
// be called every second.
//
// candidates (see Candidate) are only asked for when something is to be moved.
// e is updated with the brokers for this round, as for Plan, and takes in what
// is decided.
func Rebalance(e *Expected, candidates iter.Seq[Candidate], m Balance, now time.Time) ([]Transfer, Balance) {
	_, _, total, unequal := e.extremes()
	unsteady := math.Abs(total-m.total) > steadyWithin*total
	m.total = total
	switch {
	case !unequal:
		m.since = time.Time{}
		return nil, m
	case m.since.IsZero() || now.Before(m.since) || unsteady:
		m.since = now
	}
	if now.Sub(m.since) < unequalAfter || !m.tried.IsZero() && now.Sub(m.tried) < moveEvery && !now.Before(m.tried) {
		return nil, m
	}
	m.tried = now
	var out []Transfer
	byOwner := make(map[smq.BrokerID][]Candidate)
	for c := range candidates {
		if c.Load.Cost() > 0 && c.Load.sane() {
			byOwner[c.Segment.Owner.Broker] = append(byOwner[c.Segment.Owner.Broker], c)
		}
	}
	for len(out) < movesAtOnce {
		t, ok := e.transfer(byOwner)
		if !ok {
			break
		}
		out = append(out, t)
	}
	return out, m
}

// traffic is what the broker is expected to carry, silent segments aside.
func (e *Expected) traffic(b Broker) float64 {
	b.Segments = 0
	return e.cost(b)
}

// extremes are the brokers that carry most and least, what all carry, and
// whether that is too unequal.
func (e *Expected) extremes() (most, least Broker, total float64, unequal bool) {
	n := 0
	for _, b := range e.brokers {
		if !b.Takes() {
			continue
		}
		t := e.traffic(b)
		if n == 0 || t > e.traffic(most) || t == e.traffic(most) && b.ID < most.ID {
			most = b
		}
		if n == 0 || t < e.traffic(least) || t == e.traffic(least) && b.ID < least.ID {
			least = b
		}
		total, n = total+t, n+1
	}
	if n < 2 {
		return most, least, total, false
	}
	average, top := total/float64(n), e.traffic(most)
	return most, least, total, top > (1+unequalBy)*average && top-average > unequalAt
}

// transfer finds the next segment to move, and takes it out of the candidates.
func (e *Expected) transfer(byOwner map[smq.BrokerID][]Candidate) (Transfer, bool) {
	from, to, _, unequal := e.extremes()
	if !unequal {
		return Transfer{}, false
	}
	of := byOwner[from.ID]
	gap := e.traffic(from) - e.traffic(to)
	best := -1
	for i, c := range of {
		if cost := c.Load.Cost(); cost > gap/2+costPerSegment || movesAtOnce*cost < roundWorth*gap {
			continue
		}
		if best < 0 || heavier(c, of[best]) {
			best = i
		}
	}
	if best < 0 {
		return Transfer{}, false
	}
	c := of[best]
	byOwner[from.ID] = slices.Delete(of, best, best+1)
	reason := fmt.Sprintf("%s of it: its broker carries %s, the least loaded one %s",
		smq.ByteRate(c.Load.Bytes), smq.ByteRate(e.traffic(from)), smq.ByteRate(e.traffic(to)))
	e.add(from.ID, c.Load, -1)
	e.add(to.ID, c.Load, 1)
	return Transfer{Topic: c.Topic, Segment: c.Segment, From: from.ID, To: to.ID, Reason: reason}, true
}

// heavier sorts candidates: the heaviest first, among equals by topic and id.
func heavier(a, b Candidate) bool {
	return cmp.Or(
		cmp.Compare(a.Load.Cost(), b.Load.Cost()),
		cmp.Compare(b.Topic, a.Topic),
		cmp.Compare(b.Segment.ID, a.Segment.ID),
	) > 0
}
