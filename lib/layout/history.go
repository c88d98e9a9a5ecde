package layout

import (
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
)

// History is what the versions of a topic's layout say together: the segments
// that were sealed, and those that are live. The zero History has seen no
// version. As with append, Add returns a new one and the old one stays as it
// was, but only the newest may be added to.
type History struct {
	Last   Layout   // the version added last
	sealed []Sealed // not empty, in the order in which they were taken out
}

// Add is the history with the next version added. An smq.ErrConflict means
// that the version does not follow the last.
func (h History) Add(l Layout) (History, error) {
	if l.Version != h.Last.Version+1 {
		return h, fmt.Errorf("layout version %d after version %d: %w", l.Version, h.Last.Version, smq.ErrConflict)
	}
	if h.Last.Version > 0 {
		if err := follows(h.Last, l); err != nil {
			return h, err
		}
	}
	sealed := h.sealed
	for _, s := range l.Sealed {
		if !s.Empty {
			sealed = append(sealed, s)
		}
	}
	return History{Last: l, sealed: sealed}, nil
}

// follows checks that next is prev with its sealed segments replaced. A break
// is an smq.ErrCorrupt.
func follows(prev, next Layout) error {
	gone := make(map[smq.SegmentID]bool, len(next.Sealed))
	for _, s := range next.Sealed {
		seg, live := prev.at(s.Segment, s.Range)
		if !live || seg.Range != s.Range || seg.Assigned() == s.Empty {
			return next.corrupt("it seals segment %d, which the version before does not list so", s.Segment)
		}
		gone[s.Segment] = true
	}
	kept := 0
	for _, s := range next.Segments {
		if s.ID < prev.NextSegment {
			kept++
		}
	}
	for _, s := range prev.Segments {
		now, live := next.at(s.ID, s.Range)
		switch {
		case live == gone[s.ID]:
			return next.corrupt("segment %d is neither live nor sealed, or both", s.ID)
		case live && (now.Range != s.Range || now.Owner != s.Owner):
			return next.corrupt("segment %d has changed", s.ID)
		}
	}
	if kept != len(prev.Segments)-len(gone) || next.NextSegment < prev.NextSegment || next.Partitions() != prev.Partitions() {
		return next.corrupt("it does not follow from version %d", prev.Version)
	}
	return nil
}

// at returns the live segment with the given id that begins with the range, without a
// look at all.
func (l Layout) at(id smq.SegmentID, r smq.Range) (Segment, bool) {
	s, found := l.Find(r.Lo)
	return s, found && s.ID == id
}

// AllSealed returns the sealed segments of all partitions, in the order in which
// they were taken out of the layout.
func (h History) AllSealed() []Sealed { return slices.Clone(h.sealed) }

// Chain returns the sealed segments that hold messages of p, oldest first.
func (h History) Chain(p smq.Partition) []Sealed {
	var chain []Sealed
	for _, s := range h.sealed {
		if s.Range.Contains(p) {
			chain = append(chain, s)
		}
	}
	return chain
}

// After returns the sealed segment that follows the given one in the chain of
// p; id 0 asks for the first. It reports false when only the live one follows.
func (h History) After(p smq.Partition, id smq.SegmentID) (Sealed, bool) {
	for _, s := range h.sealed {
		if s.Segment > id && s.Range.Contains(p) {
			return s, true
		}
	}
	return Sealed{}, false
}

// Get returns the sealed segment with the given id.
func (h History) Get(id smq.SegmentID) (Sealed, bool) {
	i := slices.IndexFunc(h.sealed, func(s Sealed) bool { return s.Segment == id })
	if i < 0 {
		return Sealed{}, false
	}
	return h.sealed[i], true
}
