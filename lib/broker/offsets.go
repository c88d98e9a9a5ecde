package broker

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// parallelOffsets bounds the partitions of a request that are looked at at once.
const parallelOffsets = 16

// none stands for a message that is not there.
const none = -1

// Offsets resolves positions. smq.ErrNotOwner when the answer lies with another
// broker: the end of its partitions, and what is not found by time in sealed
// segments.
func (s brokerService) Offsets(ctx context.Context, req *smqpb.OffsetsRequest) (*smqpb.OffsetsResponse, error) {
	t, err := s.b.topics.get(ctx, req.GetTopic(), smq.TopicID(req.GetTopicId()))
	if err != nil {
		return nil, err
	}
	partitions := req.GetPartitions()
	if len(partitions) > int(t.Partitions) {
		return nil, fmt.Errorf("%w request: %s, topic %v has %d", smq.ErrInvalid, smq.Count(len(partitions), "partition"), t.Topic, t.Partitions)
	}
	if len(partitions) == 0 {
		for p := range t.Partitions {
			partitions = append(partitions, p)
		}
	}
	resp := &smqpb.OffsetsResponse{
		TopicId: string(t.ID), Partitions: partitions,
		Offsets: make([]int64, len(partitions)), Timestamps: make([]int64, len(partitions)),
	}
	if _, err := t.refresh(ctx); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelOffsets)
	for i, p := range partitions {
		group.Go(func() (err error) {
			f := finder{b: s.b, topic: t, fresh: true}
			resp.Offsets[i], resp.Timestamps[i], err = f.resolve(ctx, p, req)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return resp, nil
}

// resolve finds one partition's offset, and the timestamp of the message there
// if it was looked for by time.
func (f *finder) resolve(ctx context.Context, p smq.Partition, req *smqpb.OffsetsRequest) (offset, timestamp int64, err error) {
	switch req.GetKind() {
	case smqpb.OffsetsRequest_EARLIEST:
		offset, err = f.earliest(ctx, p)
	case smqpb.OffsetsRequest_END:
		offset, err = f.end(ctx, p)
	case smqpb.OffsetsRequest_TIME:
		return f.byTime(ctx, p, req.GetTimeMs(), seglog.RecordTime)
	case smqpb.OffsetsRequest_APPEND_TIME:
		return f.byTime(ctx, p, req.GetTimeMs(), seglog.AppendTime)
	default:
		err = fmt.Errorf("%w kind of offset %v", smq.ErrInvalid, req.GetKind())
	}
	return offset, none, err
}

// earliest is the offset of the partition's first message.
func (f *finder) earliest(ctx context.Context, p smq.Partition) (smq.Offset, error) {
	if err := f.check(p); err != nil {
		return 0, err
	}
	chain, err := f.chain(ctx, p)
	if err != nil || len(chain) == 0 {
		return 0, err // the first segment starts at 0
	}
	start, _, err := f.bounds(ctx, chain[0], p)
	return start, err
}

// end is the offset behind the partition's last message.
func (f *finder) end(ctx context.Context, p smq.Partition) (smq.Offset, error) {
	own, err := f.live(ctx, p, 0)
	if err == nil {
		_, end, err := own.log.Offsets(ctx, p)
		return end, err
	}
	if listed, ok := f.topic.layout().Find(p); !ok || listed.Assigned() || !errors.Is(err, smq.ErrNotOwner) {
		return 0, err
	}
	// Nobody writes to it, so it ends where the sealed ones do.
	chain, err := f.chain(ctx, p)
	if err != nil || len(chain) == 0 {
		return 0, err
	}
	_, end, err := f.bounds(ctx, chain[len(chain)-1], p)
	return end, err
}

// firstReaching is the first of the sealed segments that can hold a message of
// the partition whose time is at or after ms. What a segment begins with tells
// the latest time of all that came before it, so few of them have to be opened,
// though times need not rise.
func (f *finder) firstReaching(ctx context.Context, chain []layout.Sealed, p smq.Partition, ms int64, kind seglog.TimeKind) (int, error) {
	var failed error
	reached := sort.Search(len(chain), func(i int) bool {
		if failed != nil {
			return true
		}
		src, err := f.sealed(ctx, chain[i])
		if err != nil {
			failed = err
			return true
		}
		before, err := seglog.ReachedBefore(ctx, src, p, ms, kind)
		failed = err
		return before
	})
	return max(reached-1, 0), failed
}

// byTime is the partition's first message whose time is at or after ms, or its
// end.
func (f *finder) byTime(ctx context.Context, p smq.Partition, ms int64, kind seglog.TimeKind) (offset, timestamp int64, err error) {
	if err := f.check(p); err != nil {
		return 0, none, err
	}
	chain, err := f.chain(ctx, p)
	if err != nil {
		return 0, none, err
	}
	from, err := f.firstReaching(ctx, chain, p, ms, kind)
	if err != nil {
		return 0, none, err
	}
	for _, s := range chain[from:] {
		src, err := f.sealed(ctx, s)
		if err != nil {
			return 0, none, err
		}
		found, ok, err := seglog.OffsetForTime(ctx, src, p, ms, kind)
		if ok || err != nil {
			return found.Offset, found.Timestamp, err
		}
	}
	if own, err := f.live(ctx, p, 0); err == nil {
		found, ok, err := seglog.OffsetForTime(ctx, own.log, p, ms, kind)
		if ok || err != nil {
			return found.Offset, found.Timestamp, err
		}
	}
	offset, err = f.end(ctx, p)
	return offset, none, err
}
