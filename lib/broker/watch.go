package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Times around the report that a segment is sealed.
const (
	reportTimeout = 5 * time.Second
	reportAgain   = 50 * time.Millisecond // doubles up to
	reportAtMost  = 2 * time.Second
	reportFor     = time.Minute // in the background
	// requestedGrace is how long whoever asked for a seal has to change the
	// layout as it likes.
	requestedGrace = 2 * time.Second
	lookAgain      = 10 * time.Millisecond // doubles
)

// watch waits for the segment's end, seals it if nobody else has, and has it
// replaced.
func (ss *segments) watch(ctx context.Context, s *segment) {
	cause := layout.Roll
	select {
	case <-s.log.ShouldRoll():
	case cause = <-s.end:
	case <-s.log.Done():
	case <-ctx.Done():
		s.log.Close()
		return
	}
	_, err := s.log.Seal(ctx)
	ss.links.detach(s.log)
	close(s.sealed)
	if ctx.Err() != nil {
		s.log.Close()
		return
	}
	if err != nil {
		// The log could not go on. The leader seals what the store holds.
		ss.b.log.Error("a segment's log has failed, it gets a successor", "topic", s.topic.Topic.String(), "segment", s.key.id, "err", err)
		cause = layout.Failover
	}
	if s.requested.Load() {
		ss.b.giveWay(ctx, s.topic, s.key.id)
	}
	if ss.b.report(ctx, s.topic, s.key.id, notice{cause: cause, by: ss.self, without: &s.without, emptyHanded: err != nil}) == nil {
		ss.follow(s)
	}
}

// giveWay waits, for a while, for whoever asked for the segment's end to replace
// it.
func (b *Broker) giveWay(ctx context.Context, t *topic, id smq.SegmentID) {
	ctx, cancel := context.WithTimeout(ctx, requestedGrace)
	defer cancel()
	for wait := lookAgain; background.Wait(ctx, wait) == nil; wait *= 2 {
		if lay, err := t.refresh(ctx); err == nil && isReplaced(lay, id) {
			return
		}
	}
}

// isReplaced reports whether the layout once listed the segment, and no longer
// does.
func isReplaced(lay layout.Layout, id smq.SegmentID) bool {
	_, live := lay.Get(id)
	return !live && id < lay.NextSegment
}

// follow opens the successors of a segment that are this broker's, so that they
// are open when the publishers come.
func (ss *segments) follow(s *segment) {
	r := s.log.Ident().Range
	for _, next := range s.topic.layout().Segments {
		if next.Range.Overlaps(r) && next.Owner.Broker == ss.self {
			ss.begin(s.topic, next.ID)
		}
	}
}

// giveUp has another broker take over the segment, which this one cannot bring
// into the store.
func (ss *segments) giveUp(s *segment) {
	if !s.stuck.CompareAndSwap(false, true) {
		return // it is under way
	}
	ss.b.log.Warn("messages wait for the store too long, another broker is to take over", "topic", s.topic.Topic.String(), "segment", s.key.id)
	ss.b.tasks.Go(func(ctx context.Context) {
		defer s.stuck.Store(false)
		ctx, cancel := context.WithTimeout(ctx, reportFor)
		defer cancel()
		if ss.b.report(ctx, s.topic, s.key.id, notice{cause: layout.Failover, by: ss.self}) == nil {
			s.log.Close()
		}
	})
}

// notice is what the leading broker is told of a segment that is sealed, or has
// to be.
type notice struct {
	cause layout.Cause
	by    smq.BrokerID
	// without (may be nil) are the followers that its owner has to do without.
	without *without
	// emptyHanded: the owner, which this broker is, has no log of it, and can never
	// have one again.
	emptyHanded bool
}

// without are followers that a segment's owner has to do without, and whether
// they are leaving. Others may follow the first one until the segment is sealed.
type without struct {
	mu        sync.Mutex
	followers []*smqpb.LostFollower
}

func (w *without) add(follower smq.BrokerID, leaving bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.followers {
		if f.GetBroker() == string(follower) {
			return // the first word counts: who has said farewell may be gone a moment later
		}
	}
	w.followers = append(w.followers, &smqpb.LostFollower{Broker: string(follower), Leaving: leaving})
}

func (w *without) list() []*smqpb.LostFollower {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.followers)
}

// reportLater reports the segment in the background.
func (b *Broker) reportLater(t *topic, id smq.SegmentID, n notice) {
	b.tasks.Go(func(ctx context.Context) {
		// Whoever meets the segment again has it reported again.
		_ = b.tasks.Once(ctx, fmt.Sprintf("report %s/%d", t.ID, id), reportFor, func(ctx context.Context) error {
			return b.report(ctx, t, id, n)
		})
	})
}

// report tells the leading broker that the segment is sealed, or has to be,
// until the layout does not list it any more. It fails when that will not
// happen: ctx has ended, or the topic is deleted; or not soon, while the broker
// drains: the topic is damaged.
func (b *Broker) report(ctx context.Context, t *topic, id smq.SegmentID, n notice) error {
	for wait := reportAgain; ; wait = min(2*wait, reportAtMost) {
		err := b.reportOnce(ctx, t, id, n)
		if err == nil || errors.Is(err, smq.ErrNotFound) || errors.Is(err, smq.ErrConflict) {
			return err
		}
		if b.draining.Load() && errors.Is(err, smq.ErrCorrupt) {
			// Nobody can take it before a file is mended, and it is all in the store.
			b.log.Error("a sealed segment of a damaged topic is left listed", "topic", t.Topic.String(), "segment", id, "err", err)
			return err
		}
		b.log.Debug("a sealed segment is still listed", "topic", t.Topic.String(), "segment", id, "err", err)
		if err := background.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

func (b *Broker) reportOnce(ctx context.Context, t *topic, id smq.SegmentID, n notice) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	lay, err := t.refresh(ctx)
	if err != nil {
		return err
	}
	if isReplaced(lay, id) {
		return nil // somebody else has been faster
	}
	return b.cfg.Cluster.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		resp, err := l.ReportSealed(ctx, &smqpb.ReportSealedRequest{
			Topic: t.Topic.String(), TopicId: string(t.ID), Segment: uint64(id),
			Cause: string(n.cause), Broker: string(n.by), Lost: n.without.list(), EmptyHanded: n.emptyHanded,
		})
		if err != nil {
			return err
		}
		lay, err := layout.FromProto(resp.GetLayout())
		if err != nil {
			return err
		}
		t.adopt(lay)
		if !isReplaced(t.layout(), id) {
			return fmt.Errorf("%w: the leader's layout still lists segment %d", smq.ErrUnavailable, id)
		}
		return nil
	})
}
