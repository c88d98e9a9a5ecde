package leader

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// sealReplicated seals a segment that has followers, so that nothing is lost of
// what its owner may have acked before it was stored.
//
// Every follower holds all of that. So any one that answers is fenced, after
// which the owner commits nothing more but by the store, and seals with what it
// holds. Only when the leases of the owner and of all followers have run out,
// and none of them can have acked anything since, does the store's word stand
// alone; the seal then says that it is unclean. An owner that has said that it
// holds nothing of the segment any more, and never will, is not waited for.
func (l *Leader) sealReplicated(ctx context.Context, c catalog.Config, s layout.Segment, ownerLost bool) (layout.Sealed, error) {
	id := c.Ident(s.ID, s.Range)
	if seal, sealed, err := seglog.FindSeal(ctx, l.Store, id); err == nil && sealed {
		return catalog.Sealed(seal), nil
	}
	lost := ownerLost || l.view.gone(s.Owner.Broker)
	var failed error
	for _, f := range s.Followers {
		if l.view.gone(f.Broker) {
			continue
		}
		lost = false
		err := l.fence(ctx, c, s, f)
		if err == nil {
			seal, sealed, err := seglog.FindSeal(ctx, l.Store, id)
			if err == nil && sealed {
				return catalog.Sealed(seal), nil
			}
			failed = errors.Join(failed, err)
			continue
		}
		l.Logger.Warn("a follower does not seal", "topic", c.Topic.String(), "segment", s.ID, "follower", f.Broker, "err", err)
		// %v: what a follower misses is not what the leader was asked for.
		failed = errors.Join(failed, fmt.Errorf("follower %s at %s: %v", f.Broker, f.Address, err))
	}
	if lost {
		sealed, err := l.sealFromStore(ctx, c, s, seglog.SealOptions{Broker: l.Self, Unclean: true})
		if err == nil && sealed.Unclean {
			l.Logger.Error("every replica of a segment is lost: it is sealed with what is stored", "topic", c.Topic.String(), "segment", s.ID)
			l.Metrics.unclean.Inc()
		}
		return sealed, err
	}
	// Nothing of a segment that was never opened can have been acked.
	if sealed, err := l.sealFromStore(ctx, c, s, seglog.SealOptions{Broker: l.Self, Unopened: true}); err == nil {
		return sealed, nil
	}
	return layout.Sealed{}, fmt.Errorf("seal segment %d: %w: no follower can: %w", s.ID, smq.ErrUnavailable, errors.Join(failed, errNobody))
}

// errNobody is the reason when there was nobody to ask.
var errNobody = errors.New("the leases of those that are gone run out first")

// fence has a follower seal. One that is fenced but cannot reach the store hands
// over what it holds, and the leader seals with that.
func (l *Leader) fence(ctx context.Context, c catalog.Config, s layout.Segment, f layout.Member) error {
	err := l.ask(ctx, f.Address, func(ctx context.Context, b smqpb.BrokerClient) error {
		_, err := b.FenceReplica(ctx, &smqpb.FenceReplicaRequest{Topic: c.Topic.String(), TopicId: string(c.ID), Segment: uint64(s.ID)})
		return err
	})
	if err == nil {
		return nil
	}
	first, held, herr := l.takeOver(ctx, c, s, f)
	if herr != nil {
		return err
	}
	_, serr := seglog.SealHeld(ctx, l.Store, c.Ident(s.ID, s.Range), catalog.Seals(s.Predecessors), first, held, seglog.SealOptions{Broker: l.Self})
	return serr
}

// takeOver fetches what a follower holds.
func (l *Leader) takeOver(ctx context.Context, c catalog.Config, s layout.Segment, f layout.Member) (first smq.Position, held []seglog.Batch, err error) {
	for more := true; more; {
		var resp *smqpb.HeldBatchesResponse
		err := l.ask(ctx, f.Address, func(ctx context.Context, b smqpb.BrokerClient) (err error) {
			resp, err = b.HeldBatches(ctx, &smqpb.HeldBatchesRequest{
				Topic: c.Topic.String(), TopicId: string(c.ID), Segment: uint64(s.ID), From: first + uint64(len(held)),
			})
			return err
		})
		if err != nil {
			return 0, nil, err
		}
		if len(resp.GetPartitions()) != len(resp.GetBatches()) {
			return 0, nil, fmt.Errorf("%w answer of follower %s", smq.ErrCorrupt, f.Broker)
		}
		if len(held) == 0 {
			first = resp.GetFirst()
		}
		for i, b := range resp.GetBatches() {
			held = append(held, seglog.Batch{Partition: resp.GetPartitions()[i], Bytes: b})
		}
		more = resp.GetMore()
	}
	return first, held, nil
}
