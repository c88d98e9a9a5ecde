package leader

import (
	"context"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// ReportSealed replaces a segment that its owner has sealed, or can no longer
// write to, and returns the layout that no longer lists it. smq.ErrConflict: the
// segment is not sealed, and the one who reports it is not its owner.
func (l *Leader) ReportSealed(ctx context.Context, req *smqpb.ReportSealedRequest) (*smqpb.ReportSealedResponse, error) {
	t, err := l.requested(ctx, req.GetTopic(), req.GetTopicId())
	if err != nil {
		return nil, err
	}
	id := smq.SegmentID(req.GetSegment())
	if id >= t.layout().NextSegment {
		if err := l.refresh(ctx, t); err != nil {
			return nil, err
		}
	}
	if s, live := t.layout().Get(id); live {
		if err := l.replaceReported(ctx, t, s, req); err != nil {
			return nil, fmt.Errorf("replace segment %d of topic %v: %w", id, t.Topic, err)
		}
	}
	if err := l.leading(); err != nil {
		return nil, err
	}
	return &smqpb.ReportSealedResponse{Layout: layout.ToProto(t.layout())}, nil
}

func (l *Leader) replaceReported(ctx context.Context, t *topic, s layout.Segment, req *smqpb.ReportSealedRequest) error {
	r := replacement{segment: s, cause: layout.Cause(req.GetCause())}
	reporter := smq.BrokerID(req.GetBroker())
	// An owner's word is as good as the seal: it writes no more. Of others the
	// store is asked, so that nobody seals what works.
	doubtful := reporter != s.Owner.Broker && l.view.alive(s.Owner.Broker)
	sealed := false
	if doubtful || r.cause == layout.Failover {
		var err error
		if sealed, err = l.isSealed(ctx, t.config(), s); err != nil && doubtful {
			return err
		}
	}
	if doubtful && !sealed {
		return fmt.Errorf("it is not sealed: %w", smq.ErrConflict)
	}
	switch r.cause {
	case layout.Roll:
		r.owner.prefer = s.Owner.Broker
	case layout.Drain:
		r.owner.avoid, r.reason = reporter, leaves(s.Owner)
	case layout.Failover:
		// An owner that has sealed the segment is well: it has to do without a
		// follower, which was lost or is leaving.
		// A follower that has lost its owner, or its own lease.
		// An owner that has not sealed it cannot go on.
		switch {
		case sealed && reporter == s.Owner.Broker:
			r.owner.prefer = s.Owner.Broker
			r.cause, r.reason = l.without(s, req.GetLost())
		case sealed:
			r.owner.spare, r.reason = s.Owner.Broker, fmt.Sprintf("a follower has lost broker %s at %s", s.Owner.Broker, s.Owner.Address)
			l.view.shun(s.Owner.Broker)
		default:
			r.lost = reporter == s.Owner.Broker && req.GetEmptyHanded()
			r.owner.spare, r.reason = reporter, fmt.Sprintf("broker %s at %s cannot go on with it", s.Owner.Broker, s.Owner.Address)
		}
	default:
		return fmt.Errorf("%w cause %q of a sealed segment", smq.ErrInvalid, req.GetCause())
	}
	return l.replace(ctx, t, r)
}

// without takes in which followers the owner of a segment has to do without, and
// says why the segment is replaced: a drain when all of them are leaving, else a
// failover. Those that were lost follow nothing for a while. An owner that does
// not name them is of an older version: it may be any of them.
func (l *Leader) without(s layout.Segment, lost []*smqpb.LostFollower) (cause layout.Cause, reason string) {
	cause = layout.Drain
	var reasons []string
	for _, f := range s.Followers {
		i := slices.IndexFunc(lost, func(one *smqpb.LostFollower) bool { return one.GetBroker() == string(f.Broker) })
		switch {
		case i < 0 && len(lost) > 0:
		case i >= 0 && lost[i].GetLeaving():
			l.view.leave(f.Broker)
			reasons = append(reasons, leaves(f))
		default:
			l.view.shun(f.Broker)
			cause = layout.Failover
			if i >= 0 {
				reasons = append(reasons, fmt.Sprintf("follower %s at %s was lost", f.Broker, f.Address))
			}
		}
	}
	if len(reasons) == 0 {
		return layout.Failover, "a follower was lost"
	}
	return cause, joinReasons(reasons)
}
