package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Replicate serves the stream of an owner, in one life of this broker.
func (d dataService) Replicate(stream rpc.ReplicateStream) error {
	var head smqpb.ReplicateHead
	if _, err := stream.Recv(&head); err != nil {
		return ended(err)
	}
	owner := smq.BrokerID(head.GetHello().GetBroker())
	if owner == "" || len(head.GetSegments()) > 0 {
		return fmt.Errorf("%w frame: a stream begins with a hello and nothing else", smq.ErrInvalid)
	}
	fs := d.b.following()
	for {
		payload, err := stream.Recv(&head)
		if err != nil {
			return ended(err)
		}
		if d.b.following() != fs {
			// What is followed under the fresh id has nothing to do with this stream:
			// here it would be refused as by a broker that is leaving.
			return fmt.Errorf("%w: this broker has started over with a fresh id", smq.ErrUnavailable)
		}
		fs.hear(owner)
		acks, err := fs.take(stream.Context(), owner, head.GetSegments(), payload)
		if err != nil {
			return err
		}
		acks = append(acks, fs.farewells(owner)...)
		if len(acks) == 0 {
			continue
		}
		if err := stream.Send(&smqpb.ReplicaAcks{Acks: acks}); err != nil {
			return err
		}
	}
}

func (fs *followers) hear(owner smq.BrokerID) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.heard[owner]++
}

// take takes a frame in, segment by segment. All that are new are looked up at once.
func (fs *followers) take(ctx context.Context, owner smq.BrokerID, segs []*smqpb.ReplicateSegment, payload []byte) ([]*smqpb.ReplicaAck, error) {
	for _, s := range segs {
		if !s.GetClosed() && fs.mayBegin(keyOf(s)) == nil {
			fs.known(owner, s)
		}
	}
	acks := make([]*smqpb.ReplicaAck, 0, len(segs))
	for _, s := range segs {
		var (
			batches []seglog.Batch
			err     error
		)
		if batches, payload, err = cutBatches(s, payload); err != nil {
			return nil, err
		}
		ack := &smqpb.ReplicaAck{TopicId: s.GetTopicId(), Segment: s.GetSegment()}
		held, err := fs.append(ctx, owner, s, batches)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ack.Held, ack.Error = held, rpc.ErrorInfo(err)
		if !s.GetClosed() {
			acks = append(acks, ack)
		}
	}
	if len(payload) > 0 {
		return nil, fmt.Errorf("%w frame: %d bytes too many", smq.ErrInvalid, len(payload))
	}
	return acks, nil
}

func keyOf(s *smqpb.ReplicateSegment) segmentKey {
	return segmentKey{smq.TopicID(s.GetTopicId()), smq.SegmentID(s.GetSegment())}
}

// cutBatches takes a segment's batches off the payload.
func cutBatches(s *smqpb.ReplicateSegment, payload []byte) ([]seglog.Batch, []byte, error) {
	if len(s.GetSizes()) != len(s.GetPartitions()) {
		return nil, nil, fmt.Errorf("%w frame: %d sizes of %d batches", smq.ErrInvalid, len(s.GetSizes()), len(s.GetPartitions()))
	}
	batches := make([]seglog.Batch, len(s.GetSizes()))
	for i, size := range s.GetSizes() {
		if int(size) > len(payload) {
			return nil, nil, fmt.Errorf("%w frame: it ends early", smq.ErrInvalid)
		}
		batches[i] = seglog.Batch{Partition: s.GetPartitions()[i], Bytes: payload[:size:size]}
		payload = payload[size:]
	}
	return batches, payload, nil
}

// append gives batches to the follower of their segment.
func (fs *followers) append(ctx context.Context, owner smq.BrokerID, s *smqpb.ReplicateSegment, batches []seglog.Batch) (smq.Position, error) {
	if s.GetClosed() {
		fs.letGo(keyOf(s), owner)
		return s.GetStored(), nil
	}
	if err := fs.mayBegin(keyOf(s)); err != nil {
		return 0, err
	}
	fl := fs.known(owner, s)
	if fl == nil {
		return 0, smq.ErrDraining
	}
	if err := fl.checked(ctx); err != nil {
		return 0, err
	}
	if err := fl.follows(owner); err != nil {
		return 0, err
	}
	var n int64
	for i := range batches {
		n += int64(len(batches[i].Bytes))
	}
	if full := fs.b.shared.ReserveReplica(n); full != nil {
		return fl.doWithout(s, full)
	}
	held, err := fl.f.Append(s.GetFirst(), s.GetStored(), batches)
	switch {
	case err == nil:
		fl.short.Store(false)
	case fl.short.Load() && errors.Is(err, smq.ErrConflict):
		err = fmt.Errorf("%w: what comes before was not taken", smq.ErrOverloaded)
	}
	return held, err
}

// doWithout takes the owner's news in and not its batches, for which there is no
// memory. The owner sends them again, from what is held on, unless it has stored them
// before; what it had sent already does not fit until then.
func (fl *following) doWithout(s *smqpb.ReplicateSegment, full error) (smq.Position, error) {
	fl.short.Store(true)
	held, err := fl.f.Append(0, s.GetStored(), nil)
	if err != nil {
		return held, err
	}
	return held, full
}

// mayBegin refuses a segment that is not followed yet while the lease has run
// out: it would be sealed at the next look, and its successor again.
func (fs *followers) mayBegin(k segmentKey) error {
	if fs.b.member.leased() {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byKey[k] != nil || fs.ending {
		return nil
	}
	return fmt.Errorf("%w: the follower's lease with the masters has run out", smq.ErrUnavailable)
}
