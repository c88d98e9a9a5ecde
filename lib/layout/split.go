package layout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// pieceOf is what a split makes pieces of at most, in thresholds: far enough
	// below 1 that they stay whole, far enough above a quarter that no two of
	// them are merged again.
	pieceOf = 0.625
	// A partition that outweighs a piece is one by itself, but for neighbours
	// that add no more than this share to it, or this many thresholds.
	hotAlone, hotAloneOf = 0.05, 0.125
	// A split has to take this share off the worst piece, or this many
	// thresholds.
	relief, reliefOf = 0.1, 0.25
	// alone is how many segments a topic gets by its load while there is only
	// one broker: two flushes overlap, more would only make more files.
	alone = 2
)

// split divides the segments that have been above the threshold for long
// enough, the most loaded first.
func (p *planner) split() {
	if !p.hot {
		return
	}
	var over []int
	for i := range p.Memory.marks {
		if k := &p.Memory.marks[i]; p.above(k) && k.tried != p.now {
			over = append(over, i)
		}
	}
	pressure := func(i int) float64 {
		l, _ := p.load(i)
		return p.Policy.pressure(l)
	}
	slices.SortStableFunc(over, func(a, b int) int { return cmp.Compare(pressure(b), pressure(a)) })
	for _, i := range over {
		p.splitOne(i)
	}
}

func (p *planner) splitOne(i int) {
	s, k := p.Layout.Segments[i], &p.Memory.marks[i]
	load := p.Loads[s.ID]
	ahead := k.trend.ahead(load.Load, p.now)
	if p.Policy.pressure(ahead) <= 1 {
		return // it is over
	}
	rate, limit := p.Policy.rate(load.Load, 1)
	w := weigh(s.Range, load.Partitions, p.Policy.leading(load.Load))
	if why := p.whole(i, &w); why != "" {
		p.note(i, "%s, above %s: %s", rate, limit, why)
		return
	}
	if !p.may(i) {
		return
	}
	ranges := p.piecesOf(&w, load.Load, ahead, p.room()+1)
	if !p.relieves(&w, w.heaviest(ranges), load.Load) {
		p.note(i, "%s, above %s: there is no room for enough segments beside the topic's %d", rate, limit, p.high)
		return
	}
	loads := make([]Load, len(ranges))
	grown := max(1, p.Policy.pressure(ahead)/p.Policy.pressure(load.Load))
	for j, r := range ranges {
		loads[j] = Expect(0, r, load).Scale(grown)
	}
	p.Memory.regrets.split(*k, p.now)
	lasted := time.Duration(p.now - k.above).Round(time.Second)
	p.decide(Split, i, i+1, ranges, loads, fmt.Sprintf("%s, above %s for %v", rate, limit, lasted))
}

// whole says why a segment that is above the threshold stays whole, or nothing.
func (p *planner) whole(i int, w *weights) string {
	s, k := p.Layout.Segments[i], &p.Memory.marks[i]
	since := time.Duration(p.now - k.changed)
	switch {
	case s.Range.Len() == 1:
		return fmt.Sprintf("partition %d is all that it has, and is not divided", s.Range.Lo)
	case len(w.at) > 0 && !p.relieves(w, w.top, p.Loads[s.ID].Load):
		return fmt.Sprintf("partition %d alone carries %.0f %%: a hot key", w.at[w.topAt], 100*w.top/w.sum)
	case k.changed != 0 && since < p.Policy.CoolDown:
		return fmt.Sprintf("it changed %v ago, the cool-down is %v", since.Round(time.Second), p.Policy.CoolDown)
	case p.high >= p.most:
		return fmt.Sprintf("the topic has the most segments that it may have, %d", p.most)
	case p.room() < 1:
		return fmt.Sprintf("there is one broker only, which has %d segments of the topic", p.high)
	}
	return ""
}

// room is how many more segments the topic may get because of its load.
func (p *planner) room() int {
	if p.Expected.takers() == 1 {
		return min(p.most, alone) - p.high
	}
	return p.most - p.high
}

// relieves reports whether it is worth a split when the heaviest piece weighs
// so much.
func (p *planner) relieves(w *weights, heaviest float64, l Load) bool {
	off := w.sum - heaviest
	return off >= relief*w.sum || off >= reliefOf*p.unit(w, l)
}

// leading is the dimension in which the load is nearest to the threshold.
func (p Policy) leading(l Load) func(Load) float64 {
	if p.byMessages(l) {
		return func(l Load) float64 { return l.Messages }
	}
	return func(l Load) float64 { return l.Bytes }
}

// piecesOf divides a segment of the given load, which is heading for another,
// into as many pieces as that one asks for.
func (p *planner) piecesOf(w *weights, now, ahead Load, most int) []smq.Range {
	threshold := p.unit(w, now) // in what w counts
	grown := max(1, p.Policy.pressure(ahead)/p.Policy.pressure(now))
	limit := max(pieceOf*threshold/grown, w.top+min(hotAlone*w.top, hotAloneOf*threshold))
	n := w.pieces(limit)
	if len(w.at) == 0 { // nothing is known of its partitions
		n = int(min(p.Policy.pressure(ahead)/pieceOf, float64(w.span.Len())))
	}
	return w.cut(min(max(n, 2), most))
}

// unit is one threshold in what w counts.
func (p *planner) unit(w *weights, l Load) float64 { return w.sum / p.Policy.pressure(l) }

// fill splits the largest segments, measured or not, until there are as many
// as the topic is to have at least.
func (p *planner) fill() {
	need := p.least - p.high
	if need <= 0 {
		return
	}
	extra := make([]int, len(p.Layout.Segments)) // pieces besides the first
	for ; need > 0; need-- {
		best := -1
		for i := range extra {
			if extra[i]+1 < p.Layout.Segments[i].Range.Len() && (best < 0 || p.larger(i, extra[i], best, extra[best])) && p.may(i) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		extra[best]++
	}
	for i, n := range extra {
		if n == 0 {
			continue
		}
		load := p.Loads[p.Layout.Segments[i].ID]
		w := weigh(p.Layout.Segments[i].Range, load.Partitions, Load.Cost)
		ranges := w.cut(n + 1)
		loads := make([]Load, len(ranges))
		for j, r := range ranges {
			loads[j] = Expect(0, r, load).Load
		}
		p.decide(Split, i, i+1, ranges, loads, fmt.Sprintf("the topic is to have at least %d segments", p.least))
	}
}

// larger reports whether a piece of segment i, which is cut n times, is larger
// than one of segment j, which is cut m times: by load, else by partitions.
func (p *planner) larger(i, n, j, m int) bool {
	a, b := p.Layout.Segments[i], p.Layout.Segments[j]
	return cmp.Or(
		cmp.Compare(p.Loads[a.ID].Cost()/float64(n+1), p.Loads[b.ID].Cost()/float64(m+1)),
		cmp.Compare(float64(a.Range.Len())/float64(n+1), float64(b.Range.Len())/float64(m+1)),
	) > 0
}
