package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// FenceReplica seals a followed segment on the leader's word.
func (s brokerService) FenceReplica(ctx context.Context, req *smqpb.FenceReplicaRequest) (*smqpb.FenceReplicaResponse, error) {
	fl, err := s.b.followed(ctx, req.GetTopic(), req.GetTopicId(), req.GetSegment())
	if err != nil {
		return nil, err
	}
	seal, err := fl.f.Seal(ctx)
	if err != nil {
		return nil, err
	}
	return &smqpb.FenceReplicaResponse{SealChunk: seal.Chunk, SealHash: seal.Hash}, nil
}

// HeldBatches hands over what a follower holds.
func (s brokerService) HeldBatches(ctx context.Context, req *smqpb.HeldBatchesRequest) (*smqpb.HeldBatchesResponse, error) {
	fl, err := s.b.followed(ctx, req.GetTopic(), req.GetTopicId(), req.GetSegment())
	if err != nil {
		return nil, err
	}
	first, batches := fl.f.Remaining()
	skip := min(uint64(len(batches)), max(req.GetFrom(), first)-first)
	resp := &smqpb.HeldBatchesResponse{First: first + skip}
	budget := handoverBytes
	for _, b := range batches[skip:] {
		if budget <= 0 {
			resp.More = true
			break
		}
		budget -= len(b.Bytes)
		resp.Partitions = append(resp.Partitions, b.Partition)
		resp.Batches = append(resp.Batches, b.Bytes)
	}
	return resp, nil
}

// followed is the follower that a request means. When there is none the segment
// is closed to its owner all the same: a follower that has never heard of it
// holds nothing, and cannot be made to.
func (b *Broker) followed(ctx context.Context, topicName, topicID string, segment uint64) (*following, error) {
	t, err := b.topics.get(ctx, topicName, smq.TopicID(topicID))
	if err != nil {
		return nil, err
	}
	k := segmentKey{t.ID, smq.SegmentID(segment)}
	fs := b.following()
	if fl := fs.find(k); fl != nil {
		fs.fence(fl)
		return fl, nil
	}
	lay, err := t.refresh(ctx)
	if err != nil {
		return nil, err
	}
	s, live := lay.Get(k.id)
	if !live {
		return nil, fmt.Errorf("segment %d of topic %v: %w", k.id, t.Topic, smq.ErrNotFound)
	}
	fl, err := fs.get(ctx, s.Owner.Broker, &smqpb.ReplicateSegment{Topic: topicName, TopicId: topicID, Segment: segment})
	if errors.Is(err, smq.ErrDraining) {
		return fs.stranger(ctx, k, s.Owner.Broker, topicName)
	}
	if err == nil {
		fs.fence(fl)
	}
	return fl, err
}

// stranger stands for the follower of a segment that this broker, which is
// leaving, has not begun to follow and never will: it holds nothing, and need not
// be remembered for its owner to be refused.
func (fs *followers) stranger(ctx context.Context, k segmentKey, owner smq.BrokerID, topicName string) (*following, error) {
	fl := &following{key: k, owner: owner}
	return fl, fs.check(ctx, fl, topicName)
}

// fence notes that the segment takes nothing more from its owner.
func (fs *followers) fence(fl *following) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fl.fenced = true
}
