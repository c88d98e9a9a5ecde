package layout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
)

// Change takes live segments out of a layout and puts successors in their
// place. Several replacements that have the same cause may share one change,
// and so one version.
type Change struct {
	Cause Cause
	// Sealed are the segments that go, each with its seal. One without owner
	// needs none: it goes as an empty one.
	Sealed []Sealed
	// Successors tile together exactly what Sealed covers.
	Successors []Successor
	// Reason, Loads and PauseMS go into the version; see Layout.
	Reason  string
	Loads   []SegmentLoad
	PauseMS int64
}

// Successor is a segment to come. Its id and predecessors follow from the
// layout.
type Successor struct {
	Range     smq.Range
	Owner     Member // zero: unassigned
	Followers []Member
}

// Next is the version that follows l by the change. smq.ErrConflict: a segment
// to seal is not live in l, so the change was made for another version.
// smq.ErrInvalid: the change would break an invariant of every layout.
func (l Layout) Next(c Change, s Stamp) (Layout, error) {
	next := Layout{
		Version:     l.Version + 1,
		Cause:       c.Cause,
		Stamp:       s,
		NextSegment: l.NextSegment,
		Sealed:      slices.SortedFunc(slices.Values(c.Sealed), bySealedRange),
		Reason:      c.Reason,
		Loads:       c.Loads,
		PauseMS:     c.PauseMS,
	}
	gone, err := l.take(next.Sealed)
	if err != nil {
		return Layout{}, err
	}
	next.Segments = l.without(gone)
	for _, succ := range slices.SortedFunc(slices.Values(c.Successors), bySuccessorRange) {
		next.Segments = append(next.Segments, Segment{
			ID:           next.NextSegment,
			Range:        succ.Range,
			Owner:        succ.Owner,
			Followers:    succ.Followers,
			Predecessors: continues(succ.Range, gone, next.Sealed),
		})
		next.NextSegment++
	}
	slices.SortFunc(next.Segments, bySegmentRange)
	if err := next.Validate(); err != nil {
		return Layout{}, fmt.Errorf("%w change of layout version %d: %v", smq.ErrInvalid, l.Version, err)
	}
	if next.Partitions() != l.Partitions() {
		return Layout{}, fmt.Errorf("%w change of layout version %d: it would leave %d of %s", smq.ErrInvalid, l.Version, next.Partitions(), smq.Count(l.Partitions(), "partition"))
	}
	return next, nil
}

// take finds the live segments that the seals are of, in their order.
func (l Layout) take(sealed []Sealed) ([]Segment, error) {
	if len(sealed) == 0 {
		return nil, fmt.Errorf("%w change of layout version %d: it seals nothing", smq.ErrInvalid, l.Version)
	}
	gone := make([]Segment, 0, len(sealed))
	for _, s := range sealed {
		seg, live := l.Get(s.Segment)
		switch {
		case !live:
			return nil, fmt.Errorf("segment %d is not live in layout version %d: %w", s.Segment, l.Version, smq.ErrConflict)
		case seg.Range != s.Range:
			return nil, fmt.Errorf("%w change of layout version %d: segment %d has the range %v, the seal is of %v", smq.ErrInvalid, l.Version, seg.ID, seg.Range, s.Range)
		case seg.Assigned() == s.Empty:
			return nil, fmt.Errorf("%w change of layout version %d: segment %d goes without seal though it has an owner, or the reverse", smq.ErrInvalid, l.Version, seg.ID)
		}
		gone = append(gone, seg)
	}
	return gone, nil
}

// without returns the live segments that are not among the given ones.
func (l Layout) without(gone []Segment) []Segment {
	ids := make(map[smq.SegmentID]bool, len(gone))
	for _, s := range gone {
		ids[s.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(l.Segments), func(s Segment) bool { return ids[s.ID] })
}

// continues collects the seals that a successor over r continues from: those
// of the sealed segments that overlap it, and of an empty one those which that
// one would have continued from.
func continues(r smq.Range, gone []Segment, sealed []Sealed) []Predecessor {
	var preds []Predecessor
	for i, s := range sealed {
		if !s.Range.Overlaps(r) {
			continue
		}
		if !s.Empty {
			preds = append(preds, Predecessor{Segment: s.Segment, Range: s.Range, Chunk: s.Chunk, Hash: s.Hash})
			continue
		}
		for _, p := range gone[i].Predecessors {
			if p.Range.Overlaps(r) {
				preds = append(preds, p)
			}
		}
	}
	slices.SortFunc(preds, func(a, b Predecessor) int { return cmp.Compare(a.Segment, b.Segment) })
	return slices.CompactFunc(preds, func(a, b Predecessor) bool { return a.Segment == b.Segment })
}

func bySuccessorRange(a, b Successor) int { return cmp.Compare(a.Range.Lo, b.Range.Lo) }

// Replace is the change that gives the range of each sealed segment to one
// successor. owners are by the order of sealed.
func Replace(cause Cause, sealed []Sealed, owners []Member) Change {
	c := Change{Cause: cause, Sealed: sealed, Successors: make([]Successor, len(sealed))}
	for i, s := range sealed {
		c.Successors[i] = Successor{Range: s.Range, Owner: owners[i]}
	}
	return c
}

// EmptyOf is the entry in a change for a live segment without owner.
func EmptyOf(s Segment) Sealed {
	return Sealed{Segment: s.ID, Range: s.Range, Empty: true}
}
