package leader

import (
	"context"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// askToSeal has the owner seal the segment.
func (l *Leader) askToSeal(ctx context.Context, c catalog.Config, s layout.Segment) error {
	return l.ask(ctx, s.Owner.Address, func(ctx context.Context, b smqpb.BrokerClient) error {
		_, err := b.SealSegment(ctx, &smqpb.SealSegmentRequest{
			Topic: c.Topic.String(), TopicId: string(c.ID), Segment: uint64(s.ID),
		})
		return err
	})
}

// ask makes a call to the broker at the address, in bounded time.
func (l *Leader) ask(ctx context.Context, address string, call func(context.Context, smqpb.BrokerClient) error) error {
	peer, err := l.Peer(ctx, address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	return call(ctx, peer)
}
