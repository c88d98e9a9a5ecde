package layout

import (
	"cmp"
	"fmt"
	"math"
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

// cleft is a segment that is to be split.
type cleft struct {
	at     int // index in the layout
	load   SegmentLoad
	ahead  Load
	w      weights
	wanted int // pieces
	pieces int // for which there is room
}

// split divides the segments that have been above the threshold for long
// enough. When there is no room for all the pieces, the most loaded get theirs
// first.
func (p *planner) split() {
	if !p.hot {
		return
	}
	var clefts []cleft
	for i := range p.Memory.marks {
		if k := &p.Memory.marks[i]; p.above(k) && k.tried != p.now {
			if c, ok := p.cleft(i); ok {
				clefts = append(clefts, c)
			}
		}
	}
	p.allot(clefts)
	for i := range clefts {
		p.splitOne(&clefts[i])
	}
}

// cleft looks at a segment above the threshold. It reports false when it stays
// whole.
func (p *planner) cleft(i int) (cleft, bool) {
	s := p.Layout.Segments[i]
	c := cleft{at: i, load: p.Loads[s.ID], pieces: 1}
	c.ahead = p.Memory.marks[i].trend.ahead(c.load.Load, p.now)
	if p.Policy.pressure(c.ahead) <= 1 {
		return c, false // it is over
	}
	c.w = weigh(s.Range, c.load.Partitions, p.Policy.leading(c.load.Load))
	if why := p.whole(&c); why != "" {
		p.noteAbove(&c, why)
		return c, false
	}
	c.wanted = p.wanted(&c)
	return c, p.may(i)
}

// allot gives the topic's room to those that are to be split, piece by piece.
func (p *planner) allot(clefts []cleft) {
	left := func(c *cleft) float64 { return p.Policy.pressure(c.ahead) / float64(c.pieces) }
	for room := p.room(); room > 0; room-- {
		var worst *cleft
		for i := range clefts {
			if c := &clefts[i]; c.pieces < c.wanted && (worst == nil || left(c) > left(worst)) {
				worst = c
			}
		}
		if worst == nil {
			return
		}
		worst.pieces++
	}
}

func (p *planner) splitOne(c *cleft) {
	if c.pieces == 1 {
		p.noteAbove(c, p.full())
		return
	}
	ranges := c.w.cut(c.pieces)
	if heaviest := c.w.heaviest(ranges); !p.relieves(c, heaviest) {
		why := p.full()
		if c.pieces == c.wanted {
			why = c.w.hotKey()
		}
		p.noteAbove(c, why)
		return
	}
	loads := make([]Load, len(ranges))
	for j, r := range ranges {
		loads[j] = c.load.over(r, c.w.span).Scale(p.grows(c))
	}
	k := &p.Memory.marks[c.at]
	p.Memory.regrets.split(k, p.now)
	rate, limit := p.Policy.rate(c.load.Load, 1)
	lasted := time.Duration(p.now - k.above).Round(time.Second)
	p.decide(Split, c.at, c.at+1, ranges, loads, fmt.Sprintf("%s, above %s for %v", rate, limit, lasted))
}

// whole says why a segment that is above the threshold stays whole, or nothing.
func (p *planner) whole(c *cleft) string {
	r, k := p.Layout.Segments[c.at].Range, &p.Memory.marks[c.at]
	since := time.Duration(p.now - k.changed)
	switch {
	case r.Len() == 1:
		return fmt.Sprintf("partition %d is all that it has: a hot key", r.Lo)
	case len(c.w.at) > 0 && !p.relieves(c, c.w.top):
		return c.w.hotKey()
	case k.changed != 0 && since < p.Policy.CoolDown:
		return fmt.Sprintf("it changed %v ago, the cool-down is %v", since.Round(time.Second), p.Policy.CoolDown)
	case p.room() < 1:
		return p.full()
	}
	return ""
}

// full says why the topic gets no more segments.
func (p *planner) full() string {
	if p.high >= p.most || p.Expected.takers() != 1 {
		return fmt.Sprintf("the largest number of segments, %d, is reached", p.most)
	}
	return fmt.Sprintf("there is one broker only, which gets no more than %s of a topic", smq.Count(alone, "segment"))
}

func (w *weights) hotKey() string {
	return fmt.Sprintf("partition %d alone carries %.0f %%: a hot key", w.at[w.topAt], 100*w.top/w.sum)
}

// noteAbove notes why nothing is done about a segment above the threshold.
func (p *planner) noteAbove(c *cleft, why string) {
	rate, limit := p.Policy.rate(c.load.Load, 1)
	p.notes = append(p.notes, Note{
		Segment: p.Layout.Segments[c.at].ID,
		Text:    fmt.Sprintf("%s, above %s: %s", rate, limit, why),
	})
}

// room is how many more segments the topic may get because of its load.
func (p *planner) room() int {
	if p.Expected.takers() == 1 {
		return min(p.most, alone) - p.high
	}
	return p.most - p.high
}

// grows is by how much more traffic is to be expected than is measured.
func (p *planner) grows(c *cleft) float64 {
	return max(1, p.Policy.pressure(c.ahead)/p.Policy.pressure(c.load.Load))
}

// unit is one threshold in what the segment's partitions are weighed in.
func (p *planner) unit(c *cleft) float64 { return c.w.sum / p.Policy.pressure(c.load.Load) }

// relieves reports whether it is worth a split when the heaviest piece weighs
// so much.
func (p *planner) relieves(c *cleft, heaviest float64) bool {
	off := c.w.sum - heaviest
	return off >= relief*c.w.sum || off >= reliefOf*p.unit(c)
}

// wanted is how many pieces the load is heading for.
func (p *planner) wanted(c *cleft) int {
	if len(c.w.at) == 0 { // nothing is known of its partitions
		return int(max(2, min(math.Ceil(p.Policy.pressure(c.ahead)/pieceOf), float64(c.w.span.Len()))))
	}
	unit := p.unit(c)
	limit := max(pieceOf*unit/p.grows(c), c.w.top+min(hotAlone*c.w.top, hotAloneOf*unit))
	return max(2, c.w.pieces(limit))
}

// leading is the dimension in which the load is nearest to the threshold.
func (p Policy) leading(l Load) func(Load) float64 {
	if p.byMessages(l) {
		return func(l Load) float64 { return l.Messages }
	}
	return func(l Load) float64 { return l.Bytes }
}

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
			loads[j] = load.over(r, w.span)
		}
		p.decide(Split, i, i+1, ranges, loads, fmt.Sprintf("the topic is to have at least %s", smq.Count(p.least, "segment")))
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
