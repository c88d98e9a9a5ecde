package broker

import (
	"maps"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
)

// pastRates is how long the rates of a segment are kept when it is gone, for its
// successors.
const pastRates = 30 * time.Second

// measure begins to measure a segment that is just opened. If its predecessors
// were all this broker's, it continues from their rates.
func (ss *segments) measure(s *segment, listed layout.Segment) {
	s.rates.begin(s.topic.Ident(listed.ID, listed.Range), time.Now())
	ss.mu.Lock()
	defer ss.mu.Unlock()
	var before []*rates
	for _, p := range listed.Predecessors {
		key := segmentKey{s.key.topic, p.Segment}
		if past := ss.past[key]; past != nil {
			before = append(before, past)
		} else if was := ss.byKey[key]; was != nil && was.isOpen() {
			before = append(before, &was.rates)
		} else {
			return
		}
	}
	s.rates.inherit(before)
}

// expire forgets the rates of segments that have been gone for long.
func (ss *segments) expire(now time.Time) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	maps.DeleteFunc(ss.past, func(_ segmentKey, r *rates) bool { return r.olderThan(now.Add(-pastRates)) })
}

// inherit begins with the last rates of the segment's predecessors, as far as
// they are of its range: traffic does not change because its segment does.
func (r *rates) inherit(predecessors []*rates) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range predecessors {
		p.mu.Lock()
		if i == 0 || p.age < r.age {
			r.age = p.age
		}
		r.addPart(p)
		p.mu.Unlock()
	}
}

// addPart adds another segment's rates of the partitions that are in this one
// too. What its partitions are too quiet to show one by one is shared out among
// all of them. The locks of both are held.
func (r *rates) addPart(p *rates) {
	var shown, part average
	for _, a := range p.active {
		shown = shown.plus(a.now)
		if r.ident.Range.Contains(a.partition) && a.now != (average{}) {
			part = part.plus(a.now)
			own := r.activity(a.partition)
			own.now = own.now.plus(a.now)
		}
	}
	common := min(r.ident.Range.Hi, p.ident.Range.Hi) - max(r.ident.Range.Lo, p.ident.Range.Lo)
	quiet := average{max(0, p.total.messages-shown.messages), max(0, p.total.bytes-shown.bytes)}
	r.total = r.total.plus(part).plus(quiet.scaled(float64(common) / float64(p.ident.Range.Len())))
}
