package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// drainTimeout bounds a drain that was asked for from afar.
const drainTimeout = time.Minute

// brokerService answers for this broker.
type brokerService struct {
	smqpb.UnimplementedBrokerServer
	b *Broker
}

// ListSegments tells of the segments that the broker owns and has open.
func (s brokerService) ListSegments(context.Context, *smqpb.ListSegmentsRequest) (*smqpb.ListSegmentsResponse, error) {
	resp := &smqpb.ListSegmentsResponse{}
	for _, own := range s.b.segments().snapshot() {
		resp.Segments = append(resp.Segments, own.status())
	}
	if err := s.b.storeTrouble(); err != nil {
		resp.StoreError = err.Error()
	}
	return resp, nil
}

// Drain begins to drain the broker and returns at once. Asked again, it says how
// far that is; once it is done the broker is gone.
func (s brokerService) Drain(context.Context, *smqpb.DrainRequest) (*smqpb.DrainResponse, error) {
	s.b.drainApart.Do(func() {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
			defer cancel()
			if err := s.b.Drain(ctx); err != nil {
				s.b.log.Warn("the drain did not come to its end", "err", err)
			}
		}()
	})
	return &smqpb.DrainResponse{Done: s.b.handedOver.Load(), SegmentsLeft: int32(s.b.segmentsLeft(s.b.segments()))}, nil
}

// SealSegment seals a segment of this broker's as planned, if need be when it has
// been opened. Whoever asks changes the layout then, or seals in the store what
// this broker does not have.
func (s brokerService) SealSegment(ctx context.Context, req *smqpb.SealSegmentRequest) (*smqpb.SealSegmentResponse, error) {
	own, err := s.b.segments().await(ctx, segmentKey{smq.TopicID(req.GetTopicId()), smq.SegmentID(req.GetSegment())})
	if err != nil {
		return nil, fmt.Errorf("seal segment %d of topic %s: %w", req.GetSegment(), req.GetTopic(), err)
	}
	own.requested.Store(true)
	seal, err := own.log.Seal(ctx)
	if err != nil {
		return nil, err
	}
	return &smqpb.SealSegmentResponse{SealChunk: seal.Chunk, SealHash: seal.Hash}, nil
}
