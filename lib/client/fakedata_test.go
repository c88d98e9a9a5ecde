package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var errDrop = errors.New("the test breaks the stream")

// Publish serves a publisher's stream. Answers go out in order, a delayed one
// holds up those behind it.
func (b *fakeBroker) Publish(s rpc.PublishStream) error {
	c := b.cluster
	var head smqpb.PublishHead
	if _, err := s.Recv(&head); err != nil {
		return err
	}
	c.mu.Lock()
	err := b.known(head.GetHello().GetTopic(), head.GetHello().GetTopicId())
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for {
		payload, err := s.Recv(&head)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		b.frames = append(b.frames, len(head.Batches))
		c.mu.Unlock()
		if err := b.take(s, head.Batches, payload); err != nil {
			return err
		}
	}
}

func (b *fakeBroker) take(s rpc.PublishStream, batches []*smqpb.PublishBatch, payload []byte) error {
	acks := &smqpb.PublishAcks{}
	for _, batch := range batches {
		bytes := payload[:batch.Size]
		payload = payload[batch.Size:]
		ack, v := b.judge(batch, bytes)
		if ack != nil && v.delay == 0 {
			acks.Acks = append(acks.Acks, ack)
			if v.twice {
				acks.Acks = append(acks.Acks, ack)
			}
		}
		if v.delay > 0 || v.dropBefore || v.dropAfter {
			if err := s.Send(acks); err != nil {
				return err
			}
			acks = &smqpb.PublishAcks{}
		}
		if v.dropBefore || v.dropAfter {
			return errDrop
		}
		if v.delay > 0 {
			select {
			case <-time.After(v.delay):
			case <-s.Context().Done():
				return s.Context().Err()
			}
			acks.Acks = append(acks.Acks, ack)
		}
	}
	if len(acks.Acks) == 0 {
		return nil
	}
	return s.Send(acks)
}

// judge appends a batch, or what the script says. No ack: no answer.
func (b *fakeBroker) judge(batch *smqpb.PublishBatch, bytes []byte) (*smqpb.PublishAck, verdict) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	ack := &smqpb.PublishAck{Id: batch.Id, Level: smqpb.AckLevel_STORED}
	refuse := func(err error) *smqpb.PublishAck {
		ack.Error, ack.BaseOffset = rpc.ErrorInfo(err), -1
		return ack
	}
	var v verdict
	if c.verdict != nil {
		v = c.verdict(b, batch)
	}
	if v.level != 0 {
		ack.Level = v.level
	}
	seg := c.segment(batch.Segment)
	switch {
	case v.dropBefore:
		return nil, v
	case v.refuse != nil:
		return refuse(v.refuse), v
	case seg == nil || c.sealed[batch.Segment]:
		return refuse(fmt.Errorf("segment %d: %w", batch.Segment, smq.ErrSegmentSealed)), v
	case seg.OwnerAddress != b.addr:
		return refuse(smq.ErrNotOwner), v
	case batch.Partition < seg.Lo || batch.Partition >= seg.Hi:
		return refuse(smq.ErrInvalid), v
	}
	base, duplicate, err := c.log(batch.Partition).append(bytes, smq.SegmentID(batch.Segment).LeaderEpoch())
	if err != nil {
		return refuse(err), v
	}
	c.touch()
	if v.then != nil {
		return refuse(v.then), v
	}
	if v.appendOnly || v.dropAfter {
		return nil, v
	}
	ack.BaseOffset, ack.Duplicate = base, duplicate
	return ack, v
}

// fakeFeed is a subscriber's stream at a broker.
type fakeFeed struct {
	broker *fakeBroker
	at     map[int32]int64 // next offset of each partition served
	told   map[int32]bool  // caught up
	wake   chan *smqpb.SubscribeHead
}

// Subscribe serves a subscriber's stream.
func (b *fakeBroker) Subscribe(s rpc.SubscribeStream) error {
	var hello smqpb.SubscribeHead
	if err := s.Recv(&hello); err != nil {
		return err
	}
	b.cluster.mu.Lock()
	err := b.known(hello.GetHello().GetTopic(), hello.GetHello().GetTopicId())
	b.cluster.mu.Unlock()
	if err != nil {
		return err
	}
	f := &fakeFeed{broker: b, at: make(map[int32]int64), told: make(map[int32]bool), wake: make(chan *smqpb.SubscribeHead)}
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	go f.receive(ctx, s)
	for {
		b.cluster.mu.Lock()
		changed := b.cluster.changed
		head, payload, drop := f.next()
		b.cluster.mu.Unlock()
		if drop {
			return errDrop
		}
		if len(head.Batches)+len(head.Ends)+len(head.CaughtUp) > 0 {
			if err := s.Send(head, payload...); err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
		case req, ok := <-f.wake:
			if !ok {
				return nil
			}
			f.apply(req)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fakeFeed) receive(ctx context.Context, s rpc.SubscribeStream) {
	defer close(f.wake)
	for {
		req := new(smqpb.SubscribeHead)
		if s.Recv(req) != nil {
			return
		}
		select {
		case f.wake <- req:
		case <-ctx.Done():
			return
		}
	}
}

func (f *fakeFeed) apply(req *smqpb.SubscribeHead) {
	for _, p := range req.Remove {
		delete(f.at, p)
		delete(f.told, p)
	}
	for i, p := range req.Partitions {
		f.at[p] = req.Offsets[i]
		delete(f.told, p)
	}
}

// next is the next frame: at most two batches of one partition. The cluster's
// lock is held.
func (f *fakeFeed) next() (head *smqpb.DeliverHead, payload [][]byte, drop bool) {
	c := f.broker.cluster
	head = &smqpb.DeliverHead{}
	for p, at := range f.at {
		l := c.log(p)
		if c.feedFault != nil {
			end, broken := c.feedFault(f.broker, p)
			if broken {
				return head, nil, true
			}
			if end != nil {
				delete(f.at, p)
				head.Ends = append(head.Ends, &smqpb.PartitionEnd{Partition: p, NextOffset: at, Error: rpc.ErrorInfo(end)})
				continue
			}
		}
		if at > l.end {
			delete(f.at, p)
			head.Ends = append(head.Ends, &smqpb.PartitionEnd{Partition: p, NextOffset: at, Error: rpc.ErrorInfo(smq.ErrOffsetOutOfRange)})
			continue
		}
		for _, b := range l.from(at) {
			if len(head.Batches) == 2 {
				return head, payload, false
			}
			h, _ := record.ParseHeader(b)
			head.Batches = append(head.Batches, &smqpb.DeliverBatch{Partition: p, Size: uint32(len(b))})
			payload = append(payload, b)
			f.at[p] = h.LastOffset() + 1
		}
		if f.at[p] == l.end {
			f.tail(head, p)
		}
	}
	return head, payload, false
}

// tail says that a partition has been served as far as it goes.
func (f *fakeFeed) tail(head *smqpb.DeliverHead, p int32) {
	c := f.broker.cluster
	for _, s := range c.layout.Segments {
		if p < s.Lo || p >= s.Hi {
			continue
		}
		var err error
		if c.sealed[s.Id] {
			err = smq.ErrSegmentSealed
		} else if s.OwnerAddress != f.broker.addr {
			err = smq.ErrNotOwner
		}
		if err != nil {
			head.Ends = append(head.Ends, &smqpb.PartitionEnd{Partition: p, NextOffset: f.at[p], Error: rpc.ErrorInfo(err), Segment: s.Id})
			delete(f.at, p)
			return
		}
	}
	if !f.told[p] {
		f.told[p] = true
		head.CaughtUp = append(head.CaughtUp, p)
		head.CaughtUpOffsets = append(head.CaughtUpOffsets, f.at[p])
	}
}

// Offsets resolves positions.
func (b *fakeBroker) Offsets(_ context.Context, req *smqpb.OffsetsRequest) (*smqpb.OffsetsResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.known(req.Topic, req.TopicId); err != nil {
		return nil, err
	}
	resp := &smqpb.OffsetsResponse{TopicId: c.config.TopicId}
	for _, p := range req.Partitions {
		offset, timestamp, err := b.resolve(req, p)
		if err != nil {
			return nil, err
		}
		resp.Partitions = append(resp.Partitions, p)
		resp.Offsets = append(resp.Offsets, offset)
		resp.Timestamps = append(resp.Timestamps, timestamp)
	}
	return resp, nil
}

func (b *fakeBroker) resolve(req *smqpb.OffsetsRequest, p int32) (offset, timestamp int64, err error) {
	c := b.cluster
	for _, s := range c.layout.Segments {
		if p >= s.Lo && p < s.Hi && s.OwnerAddress != "" && s.OwnerAddress != b.addr && req.Kind == smqpb.OffsetsRequest_END {
			return 0, 0, smq.ErrNotOwner
		}
	}
	l := c.log(p)
	switch req.Kind {
	case smqpb.OffsetsRequest_EARLIEST:
		return 0, -1, nil
	case smqpb.OffsetsRequest_END:
		return l.end, -1, nil
	}
	var r record.Reader
	for _, batch := range l.batches {
		if err := r.Reset(batch); err != nil {
			return 0, 0, err
		}
		for rec, ok := r.Next(); ok; rec, ok = r.Next() {
			if rec.Timestamp >= req.TimeMs {
				return rec.Offset, rec.Timestamp, nil
			}
		}
	}
	return l.end, -1, nil
}
