package layout

import (
	"cmp"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Input is all that a look at a topic goes by.
type Input struct {
	Layout Layout
	// Loads of the live segments. One that is missing is unknown.
	Loads  map[smq.SegmentID]SegmentLoad
	Policy Policy // defaults filled in
	Memory Memory // of the last look at the topic
	Now    time.Time
	// Brokers are those of the cluster. With an Expected they are not looked at.
	Brokers []Broker
	// Expected (may be nil) is updated with the brokers for this round. It takes
	// in what is decided.
	Expected *Expected
	// Busy (may be nil) reports whether a change of the segment is under way, be
	// it by an earlier decision or by anybody else.
	Busy func(smq.SegmentID) bool
}

// Decision is one thing to do in a topic: replace live segments by others. Of
// several that one look gives, none shares a segment with another, and each may
// be carried out or not.
type Decision struct {
	Cause    Cause          // Split or Merge
	Segments []Segment      // to seal, by range
	Ranges   []smq.Range    // of the successors, rising; they tile what Segments did
	Owners   []smq.BrokerID // the preferred owner for each range; empty: nobody takes segments
	Reason   string         // for people
}

// Change is the decision as a change of the layout: with the seals of its
// segments, and an owner with followers for each range.
func (d Decision) Change(sealed []Sealed, successors []Successor) Change {
	c := Change{Cause: d.Cause, Reason: d.Reason, Sealed: sealed, Successors: make([]Successor, len(d.Ranges))}
	for i, r := range d.Ranges {
		c.Successors[i] = successors[i]
		c.Successors[i].Range = r
	}
	return c
}

// Note says why nothing is done about a segment that is above the threshold.
type Note struct {
	Segment smq.SegmentID
	Text    string
}

// Plan looks at a topic and decides what to split and merge. It is meant to be
// called every second for every topic: one that is in order costs next to
// nothing.
func Plan(in Input) (out []Decision, notes []Note, next Memory) {
	if in.Policy.Mode != Auto || len(in.Layout.Segments) == 0 {
		return nil, nil, Memory{}
	}
	p := &planner{Input: in, now: in.Now.UnixNano()}
	p.Memory.follow(in.Layout, p.now)
	p.least, p.most = in.Policy.bounds(in.Layout.Partitions())
	p.watch()
	if p.due() && p.anybodyTakes() {
		p.fill()
		p.split()
		p.merge()
	}
	return p.out, p.notes, p.Memory
}

// planner is one look at one topic.
type planner struct {
	Input
	now         int64
	least, most int // segments that the topic may have

	// What watch has found: how many segments the topic has at least and at
	// most once all changes under way are done, and whether any is above, or
	// below with its neighbour, for long enough.
	low, high   int
	hot, silent bool

	out   []Decision
	notes []Note
}

// due reports whether there may be anything to decide.
func (p *planner) due() bool {
	return p.hot || p.high < p.least || p.low > p.least && (p.silent || p.low > p.most)
}

func (p *planner) anybodyTakes() bool {
	if p.Expected == nil {
		p.Expected = new(Expected)
		p.Expected.Update(p.Brokers, p.Now)
	}
	return p.Expected.takers() > 0
}

// watch brings the marks up to date.
func (p *planner) watch() {
	p.low, p.high = len(p.Memory.marks), len(p.Memory.marks)
	wait := int64(p.mergeAfter())
	var left Load
	leftKnown := false
	for i := range p.Memory.marks {
		k := &p.Memory.marks[i]
		k.changed = min(k.changed, p.now) // clocks differ, and are put back
		p.count(k)
		load, known := p.load(i)
		known = known && k.settled(p.now)
		p.watchAbove(k, load, known)
		if i > 0 {
			p.watchBelow(&p.Memory.marks[i-1], left.Add(load), known && leftKnown, wait)
		}
		left, leftKnown = load, known
	}
}

// load is that of the segment at i, and whether it is known. A segment without
// owner takes nothing in.
func (p *planner) load(i int) (Load, bool) {
	s := &p.Layout.Segments[i]
	if !s.Assigned() {
		return Load{}, true
	}
	l := p.Loads[s.ID]
	return l.Load, l.Known && l.sane()
}

// count takes in what a decision under way will make of the number of segments.
func (p *planner) count(k *mark) {
	if k.adds == 0 {
		return
	}
	if !p.busy(k.segment) {
		k.adds = 0 // it came to nothing
		return
	}
	p.high += max(k.adds, 0)
	p.low += min(k.adds, 0)
}

func (p *planner) busy(id smq.SegmentID) bool { return p.Busy != nil && p.Busy(id) }

func (p *planner) watchAbove(k *mark, l Load, known bool) {
	if !known || p.Policy.pressure(l) <= 1 {
		k.above = 0
		return
	}
	if k.above == 0 || k.above > p.now {
		k.above, k.trend = p.now, trend{}
	}
	k.trend.add(l, p.now)
	p.hot = p.hot || p.above(k)
}

// above reports whether it is so for long enough.
func (p *planner) above(k *mark) bool {
	return k.above != 0 && p.now-k.above >= int64(p.Policy.SplitAfter)
}

func (p *planner) watchBelow(left *mark, sum Load, known bool, wait int64) {
	if !known || !p.Policy.watches() || !(p.Policy.pressure(sum) < mergeBelow) {
		left.below = 0
		return
	}
	if left.below == 0 || left.below > p.now {
		left.below = p.now
	}
	p.silent = p.silent || p.now-left.below >= wait
}

// may reports whether the segment at i may be changed now: nothing else is done
// or has just been decided about it, it has been as it is for the cool-down, and
// its owner is well.
func (p *planner) may(i int) bool {
	k := &p.Memory.marks[i]
	switch s := &p.Layout.Segments[i]; {
	case p.busy(k.segment):
	case k.tried != 0 && p.now-k.tried < int64(retry) && k.tried <= p.now:
	case k.changed != 0 && p.now-k.changed < int64(p.Policy.CoolDown):
	case !s.Assigned():
		return true
	default:
		owner, ok := p.Expected.get(s.Owner.Broker)
		return ok && owner.Takes()
	}
	return false
}

// decide adds a decision about the segments from one index to another, and
// finds brokers for the successors: the heaviest goes first, and to whom is
// expected to carry least. The present owner keeps one among equals, so that
// nothing moves for nothing.
func (p *planner) decide(cause Cause, from, to int, ranges []smq.Range, loads []Load, reason string) {
	segments := p.Layout.Segments[from:to]
	load := func(i int) Load { l, _ := p.load(from + i); return l }
	carrier := Carrier(segments, load, p.Expected.takes)
	for i, s := range segments {
		p.Expected.add(s.Owner.Broker, load(i), -1)
		p.Memory.marks[from+i].tried = p.now
	}
	adds := len(ranges) - len(segments)
	p.Memory.marks[from].adds = adds
	p.high += max(adds, 0)
	p.low += min(adds, 0)

	owners := make([]smq.BrokerID, len(ranges))
	order := make([]int, len(ranges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(loads[b].Cost(), loads[a].Cost()) })
	for _, i := range order {
		slack := segmentCost(loads[i]) / 4
		if cause == Merge {
			slack += mergeSlack
		}
		owners[i] = p.Expected.choose(loads[i], carrier, slack)
	}
	p.out = append(p.out, Decision{Cause: cause, Segments: segments, Ranges: ranges, Owners: owners, Reason: reason})
}

// mergeSlack is how much more, in bytes per second, the owner that carries most
// of the merged segments may carry than the least loaded broker and still get
// the whole: these are light.
const mergeSlack = 1e6
