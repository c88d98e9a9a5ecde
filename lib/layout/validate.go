package layout

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// Validate checks every invariant that a version shows by itself. The error is
// an smq.ErrCorrupt: no layout that this package made fails it.
func (l Layout) Validate() error {
	switch {
	case l.Version == 0:
		return l.corrupt("it has no version")
	case !l.Cause.Valid():
		return l.corrupt("its cause %q is unknown", l.Cause)
	case len(l.Segments) == 0:
		return l.corrupt("it has no segments")
	case l.Partitions() > smq.MaxPartitions:
		return l.corrupt("it has %d partitions, the limit is %d", l.Partitions(), smq.MaxPartitions)
	}
	ids := make(map[smq.SegmentID]bool, len(l.Segments)+len(l.Sealed))
	if err := l.validateLive(ids); err != nil {
		return err
	}
	return l.validateSealed(ids)
}

func (l Layout) validateLive(ids map[smq.SegmentID]bool) error {
	var next smq.Partition
	for _, s := range l.Segments {
		switch {
		case s.Range.Lo != next || s.Range.Len() <= 0:
			return l.corrupt("segment %d has the range %v where partition %d should follow", s.ID, s.Range, next)
		case s.Assigned() != (s.Owner.Address != ""):
			return l.corrupt("segment %d has an owner without address or the reverse", s.ID)
		case len(s.Followers) > 0 && !s.Assigned():
			return l.corrupt("segment %d has followers and no owner", s.ID)
		}
		if err := l.validateID(s.ID, ids); err != nil {
			return err
		}
		if err := l.validatePredecessors(s); err != nil {
			return err
		}
		next = s.Range.Hi
	}
	return nil
}

func (l Layout) validateID(id smq.SegmentID, seen map[smq.SegmentID]bool) error {
	switch {
	case id == 0 || id >= l.NextSegment:
		return l.corrupt("segment id %d is not below the next one, %d", id, l.NextSegment)
	case seen[id]:
		return l.corrupt("segment id %d appears twice", id)
	}
	seen[id] = true
	return nil
}

// validatePredecessors checks that they are older and that each partition of
// the segment continues from exactly one of them, or none from any.
func (l Layout) validatePredecessors(s Segment) error {
	covered := 0
	for i, p := range s.Predecessors {
		switch {
		case p.Segment == 0 || p.Segment >= s.ID:
			return l.corrupt("segment %d continues from segment %d, which is not older", s.ID, p.Segment)
		case !p.Range.Overlaps(s.Range):
			return l.corrupt("segment %d, range %v, continues from segment %d, range %v", s.ID, s.Range, p.Segment, p.Range)
		}
		for _, o := range s.Predecessors[:i] {
			if common(common(s.Range, o.Range), p.Range).Len() > 0 {
				return l.corrupt("segment %d continues from segments %d and %d in one partition", s.ID, o.Segment, p.Segment)
			}
		}
		covered += common(s.Range, p.Range).Len()
	}
	if covered > 0 && covered < s.Range.Len() {
		return l.corrupt("segment %d continues from others in only %d of its %d partitions", s.ID, covered, s.Range.Len())
	}
	return nil
}

// common is what the two ranges share; its length is not positive when that is
// nothing.
func common(a, b smq.Range) smq.Range {
	return smq.Range{Lo: max(a.Lo, b.Lo), Hi: min(a.Hi, b.Hi)}
}

func (l Layout) validateSealed(ids map[smq.SegmentID]bool) error {
	var end smq.Partition
	for _, s := range l.Sealed {
		switch {
		case s.Range.Lo < end || s.Range.Len() <= 0 || s.Range.Hi > l.Partitions():
			return l.corrupt("sealed segment %d has the range %v", s.Segment, s.Range)
		case s.Empty != (len(s.Hash) == 0):
			return l.corrupt("sealed segment %d is empty and has a seal, or neither", s.Segment)
		}
		if err := l.validateID(s.Segment, ids); err != nil {
			return err
		}
		end = s.Range.Hi
	}
	return nil
}

func (l Layout) corrupt(format string, args ...any) error {
	return fmt.Errorf("layout version %d is %w: %s", l.Version, smq.ErrCorrupt, fmt.Sprintf(format, args...))
}
