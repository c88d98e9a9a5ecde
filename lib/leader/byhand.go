package leader

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// SplitSegment replaces a live segment by two: at the partition named, or where
// its measured load halves. smq.ErrConflict when it is being changed.
func (l *Leader) SplitSegment(ctx context.Context, req *smqpb.SplitSegmentRequest) (*smqpb.SplitSegmentResponse, error) {
	t, err := l.requested(ctx, req.GetTopic(), req.GetTopicId())
	if err != nil {
		return nil, err
	}
	p, err := l.splitPlan(ctx, t, smq.SegmentID(req.GetSegment()), req.GetAt())
	if err == nil {
		err = l.carryOut(ctx, t, p)
	}
	if err != nil {
		return nil, err
	}
	return &smqpb.SplitSegmentResponse{Layout: layout.ToProto(t.layout())}, nil
}

func (l *Leader) splitPlan(ctx context.Context, t *topic, id smq.SegmentID, at smq.Partition) (plan, error) {
	if err := l.scales(t); err != nil {
		return plan{}, err
	}
	live, err := l.liveSegments(ctx, t, []smq.SegmentID{id})
	if err != nil {
		return plan{}, err
	}
	s := live[0]
	if half, err := layout.SplitPoint(s, t.traffic.of(id)); err != nil {
		return plan{}, err
	} else if at == 0 {
		at = half
	}
	if at <= s.Range.Lo || at >= s.Range.Hi {
		return plan{}, fmt.Errorf("%w place to split: it has the partitions %v, and partition %d cannot begin its second half", smq.ErrInvalid, s.Range, at)
	}
	return plan{
		cause: layout.Split, reason: "by hand", segments: live,
		successors: []successor{
			{smq.Range{Lo: s.Range.Lo, Hi: at}, wish{prefer: s.Owner.Broker}},
			{smq.Range{Lo: at, Hi: s.Range.Hi}, wish{}},
		},
	}, nil
}

// MergeSegments replaces live segments, neighbours of one another, by one.
// smq.ErrConflict when one of them is being changed.
func (l *Leader) MergeSegments(ctx context.Context, req *smqpb.MergeSegmentsRequest) (*smqpb.MergeSegmentsResponse, error) {
	t, err := l.requested(ctx, req.GetTopic(), req.GetTopicId())
	if err != nil {
		return nil, err
	}
	ids := make([]smq.SegmentID, len(req.GetSegments()))
	for i, id := range req.GetSegments() {
		ids[i] = smq.SegmentID(id)
	}
	p, err := l.mergePlan(ctx, t, ids)
	if err == nil {
		err = l.carryOut(ctx, t, p)
	}
	if err != nil {
		return nil, err
	}
	return &smqpb.MergeSegmentsResponse{Layout: layout.ToProto(t.layout())}, nil
}

func (l *Leader) mergePlan(ctx context.Context, t *topic, ids []smq.SegmentID) (plan, error) {
	if err := l.scales(t); err != nil {
		return plan{}, err
	}
	if len(ids) < 2 {
		return plan{}, fmt.Errorf("%w merge: it takes two segments or more", smq.ErrInvalid)
	}
	live, err := l.liveSegments(ctx, t, ids)
	if err != nil {
		return plan{}, err
	}
	slices.SortFunc(live, func(a, b layout.Segment) int { return cmp.Compare(a.Range.Lo, b.Range.Lo) })
	for i, s := range live[1:] {
		if before := live[i]; before.Range.Hi != s.Range.Lo {
			return plan{}, fmt.Errorf("%w merge: segments %d, partitions %v, and %d, partitions %v, are no neighbours", smq.ErrInvalid, before.ID, before.Range, s.ID, s.Range)
		}
	}
	load := func(i int) layout.Load { return t.traffic.of(live[i].ID).Load }
	return plan{
		cause: layout.Merge, reason: "by hand", segments: live,
		successors: []successor{{
			smq.Range{Lo: live[0].Range.Lo, Hi: live[len(live)-1].Range.Hi},
			wish{prefer: layout.Carrier(live, load, l.view.takesSegments)},
		}},
	}, nil
}

// scales refuses, with an smq.ErrConflict, what the topic's mode of scaling does
// not allow.
func (l *Leader) scales(t *topic) error {
	if l.policy(t).Mode == layout.Off {
		return fmt.Errorf("%w: its scaling is off; set it to manual or auto first", smq.ErrConflict)
	}
	return nil
}

// policy is the topic's scaling as it applies.
func (l *Leader) policy(t *topic) layout.Policy { return t.config().Scaling.WithDefaults(l.Scaling) }

// liveSegments finds the segments in the topic's layout, asking the store for
// ids that are newer than what is known. smq.ErrNotFound when one is not live.
func (l *Leader) liveSegments(ctx context.Context, t *topic, ids []smq.SegmentID) ([]layout.Segment, error) {
	if slices.ContainsFunc(ids, func(id smq.SegmentID) bool { return id >= t.layout().NextSegment }) {
		if err := l.refresh(ctx, t); err != nil {
			return nil, err
		}
	}
	now := t.layout()
	var live []layout.Segment
	for _, id := range ids {
		s, ok := now.Get(id)
		if !ok {
			return nil, fmt.Errorf("live segment %d: %w", id, smq.ErrNotFound)
		}
		live = append(live, s)
	}
	return live, nil
}
