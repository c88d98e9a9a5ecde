package layout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// merge joins neighbours that have been below half the threshold for long
// enough: those with the least traffic first, more than two at once as long as
// all of them together stay below it. When the topic has more segments than it
// may have, it joins those with the least traffic, whatever it is.
func (p *planner) merge() {
	if p.low <= p.least || !p.silent && p.low <= p.most {
		return
	}
	pairs := p.pairs()
	if len(pairs) == 0 {
		return
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.pressure, b.pressure), cmp.Compare(a.left, b.left))
	})
	reason := p.whyMerge()
	runs := newRuns(p)
	spare, excess := p.low-p.least, p.low-p.most
	for _, q := range pairs {
		if spare == 0 || !q.quiet && excess <= 0 {
			continue
		}
		limit := mergeBelow
		if excess > 0 {
			limit = 0 // none
		}
		if runs.join(q.left, limit) {
			spare--
			excess--
		}
	}
	for _, r := range runs.all() {
		p.mergeRun(r, reason)
	}
}

// pair is two neighbours, the left one by its index.
type pair struct {
	left     int
	pressure float64 // of both together
	quiet    bool    // they have been below half the threshold for long enough
}

// mergeNearly is the share of the time to wait after which neighbours go along
// when others are due: one change is better than two.
const mergeNearly = 0.75

// pairs are the neighbours that may be merged now.
func (p *planner) pairs() []pair {
	var out []pair
	wait := int64(mergeNearly * float64(p.mergeAfter()))
	force := p.low > p.most
	could := p.mergeable(0)
	for i := range len(p.Memory.marks) - 1 {
		k, left := &p.Memory.marks[i], could
		quiet := k.below != 0 && p.now-k.below >= wait
		could = (quiet || force || p.Memory.marks[i+1].below != 0) && p.mergeable(i+1)
		if left && could && (quiet || force) {
			a, _ := p.load(i)
			b, _ := p.load(i + 1)
			out = append(out, pair{left: i, pressure: p.Policy.pressure(a.Add(b)), quiet: quiet})
		}
	}
	return out
}

func (p *planner) mergeable(i int) bool {
	_, known := p.load(i)
	return known && p.may(i)
}

// whyMerge gives the reason for merging segments of the load.
func (p *planner) whyMerge() func(Load) string {
	excess := p.low > p.most
	return func(l Load) string {
		rate, limit := p.Policy.rate(l, mergeBelow)
		if excess {
			return fmt.Sprintf("%s together: the topic is to have at most %s", rate, smq.Count(p.most, "segment"))
		}
		return fmt.Sprintf("%s together, below %s for %v", rate, limit, p.mergeAfter())
	}
}

// mergeAfter is how long neighbours have to be below half the threshold.
func (p *planner) mergeAfter() time.Duration {
	return p.Policy.MergeAfter * time.Duration(p.Memory.regrets.patience(p.now))
}

// mergeRun decides to merge the segments of a run.
func (p *planner) mergeRun(r run, reason func(Load) string) {
	first, last := p.Layout.Segments[r.from], p.Layout.Segments[r.to-1]
	span := smq.Range{Lo: first.Range.Lo, Hi: last.Range.Hi}
	p.decide(Merge, r.from, r.to, []smq.Range{span}, []Load{r.load}, reason(r.load))
}

// run is neighbours that become one segment, by their indexes.
type run struct {
	from, to int
	load     Load
}

// runs groups a layout's segments into runs. At first each is one by itself.
type runs struct {
	p *planner
	// ends holds a run at its first and at its last segment; what lies between
	// is never asked for. Without any it is zero.
	ends []run
}

func newRuns(p *planner) runs { return runs{p: p, ends: make([]run, len(p.Layout.Segments))} }

func (r runs) at(i int) run {
	if r.ends[i].to != 0 {
		return r.ends[i]
	}
	l, _ := r.p.load(i)
	return run{from: i, to: i + 1, load: l}
}

// join joins the run of the segment at left with that of its neighbour, unless
// together they have the limit's pressure (0: none), or could not be one segment.
func (r runs) join(left int, limit float64) bool {
	a, b := r.at(left), r.at(left+1)
	both := run{from: a.from, to: b.to, load: a.load.Add(b.load)}
	if limit > 0 && !(r.p.Policy.pressure(both.load) < limit) || !r.p.Layout.joinable(both) {
		return false
	}
	r.ends[both.from], r.ends[both.to-1] = both, both
	return true
}

// all are the runs of two or more, by range.
func (r runs) all() []run {
	var out []run
	for i := 0; i < len(r.ends); {
		x := r.ends[i]
		if x.to == 0 {
			i++
			continue
		}
		out = append(out, x)
		i = x.to
	}
	return out
}

// mergeAtOnce is how many segments become one at most: each has to be sealed
// before traffic goes on.
const mergeAtOnce = 64

// joinable reports whether the layout may have one segment in place of the
// run's; see the third invariant. Only those without owner can be in the way.
func (l Layout) joinable(r run) bool {
	gone := l.Segments[r.from:r.to]
	if len(gone) > mergeAtOnce {
		return false
	}
	if !slices.ContainsFunc(gone, func(s Segment) bool { return !s.Assigned() }) {
		return true
	}
	seals := make([]Sealed, len(gone))
	for i, s := range gone {
		seals[i] = Sealed{Segment: s.ID, Range: s.Range, Empty: !s.Assigned()}
	}
	one := Segment{ID: l.NextSegment, Range: smq.Range{Lo: gone[0].Range.Lo, Hi: gone[len(gone)-1].Range.Hi}}
	one.Predecessors = continues(one.Range, gone, seals)
	return l.validatePredecessors(one) == nil
}
