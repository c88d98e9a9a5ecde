package leader

import (
	"context"
	"sync/atomic"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// HandOver replaces the segments that a draining broker owns by the layouts of all
// topics, but for those that it looks after itself, and says how many are left.
// From then on the broker is given nothing. It can be repeated until none is left.
//
// A broker knows of the segments that it has opened. Those that nobody has asked
// it for yet, and those that it is given while its drain begins, are known to the
// leader alone.
func (l *Leader) HandOver(ctx context.Context, req *smqpb.HandOverRequest) (*smqpb.HandOverResponse, error) {
	if err := l.leading(); err != nil {
		return nil, err
	}
	id := smq.BrokerID(req.GetBroker())
	open := make(map[segmentKey]bool, len(req.GetOpen()))
	for _, s := range req.GetOpen() {
		open[segmentKey{smq.TopicID(s.GetTopicId()), smq.SegmentID(s.GetSegment())}] = true
	}
	l.view.leave(id)
	// All topics, also those of which versions are being written.
	complete := l.swept.Load()
	var left atomic.Int32
	err := each(ctx, l.snapshot(), func(ctx context.Context, _ int, t *topic) error {
		if err := t.settled(ctx); err != nil {
			return err
		}
		left.Add(int32(l.handOver(ctx, t, id, open)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &smqpb.HandOverResponse{SegmentsLeft: left.Load(), Incomplete: !complete}, l.leading()
}

// settled waits for the versions that are being written to be there: their owners
// may have been chosen before it was known who leaves.
func (t *topic) settled(ctx context.Context) error {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handOver replaces those of the topic's segments that a broker owns, but for the
// open ones, and returns how many are left.
func (l *Leader) handOver(ctx context.Context, t *topic, id smq.BrokerID, open map[segmentKey]bool) (left int) {
	var todo []replacement
	for _, s := range t.layout().Segments {
		if s.Owner.Broker == id && !open[segmentKey{t.ID, s.ID}] {
			todo = append(todo, replacement{segment: s, cause: layout.Drain, reason: leaves(s.Owner), owner: wish{avoid: id}})
		}
	}
	if len(todo) == 0 {
		return 0
	}
	if err := l.replaceAll(ctx, t, todo); err != nil {
		l.Logger.Debug("not all of a topic's segments are handed over yet", "topic", t.Topic.String(), "broker", id, "err", err)
	}
	now := t.layout()
	for _, r := range todo {
		if _, live := now.Get(r.segment.ID); live {
			left++
		}
	}
	return left
}
