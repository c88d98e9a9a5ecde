package leader

import (
	"context"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// newerWait is how long a lookup waits at most for a layout that is newer than
// the caller's.
const newerWait = 2 * time.Second

// Lookup returns the topic's layout. It never waits for the store unless
// something is wrong with what it knows: the topic is not loaded, the caller
// saw a segment sealed that the layout lists, or, with assign, segments of the
// partitions asked for have no owner that lives. It waits for others only when
// asked to, for a version newer than one that the caller knows.
func (l *Leader) Lookup(ctx context.Context, req *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	t, err := l.requested(ctx, req.GetTopic(), req.GetTopicId())
	if err != nil {
		return nil, err
	}
	if stale := smq.SegmentID(req.GetStaleSegment()); stale != 0 {
		if err := l.checkStale(ctx, t, stale); err != nil {
			return nil, err
		}
	}
	if req.GetAssign() {
		if err := l.assign(ctx, t, req.GetPartitions()); err != nil {
			return nil, err
		}
	}
	if known := req.GetNewerThan(); known != 0 {
		if err := l.awaitNewer(ctx, t, known); err != nil {
			return nil, err
		}
	}
	if err := l.leading(); err != nil {
		return nil, err
	}
	return &smqpb.LookupResponse{Config: t.config().Proto(), Layout: layout.ToProto(t.layout())}, nil
}

// requested is the topic that a request names.
func (l *Leader) requested(ctx context.Context, name, id string) (*topic, error) {
	parsed, err := smq.ParseTopic(name)
	if err != nil {
		return nil, err
	}
	return l.topic(ctx, parsed, smq.TopicID(id))
}

// checkStale asks the store about a segment that the layout still lists though
// somebody met it sealed.
func (l *Leader) checkStale(ctx context.Context, t *topic, id smq.SegmentID) error {
	if _, live := t.layout().Get(id); !live && id < t.layout().NextSegment {
		return nil
	}
	// Also when the id is one that we never gave: then another leader did.
	if err := l.refresh(ctx, t); err != nil {
		return err
	}
	s, live := t.layout().Get(id)
	if !live {
		return nil
	}
	return l.replaceSealed(ctx, t, s)
}

// assign sees to it that the segments which hold the partitions have owners
// that live.
func (l *Leader) assign(ctx context.Context, t *topic, partitions []smq.Partition) error {
	segments, err := t.layout().Overlapping(partitions)
	if err != nil {
		return err
	}
	var todo []replacement
	for _, s := range segments {
		if r, needed := l.needed(s); needed {
			todo = append(todo, r)
		}
	}
	return l.replaceAll(ctx, t, todo)
}

// awaitNewer waits until the topic's layout is newer than a version, or the
// caller has waited for long enough.
func (l *Leader) awaitNewer(ctx context.Context, t *topic, known uint64) error {
	timer := time.NewTimer(newerWait)
	defer timer.Stop()
	for {
		_, changed, over := l.hub.now()
		switch {
		case over:
			return &rpc.NotLeaderError{}
		case t.layout().Version > known:
			return nil
		}
		// Many topics may be changing, and many callers waiting.
		if err := background.Wait(ctx, watchPause); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
