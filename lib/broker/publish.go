package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// maxUnacked bounds the batches of a stream whose acks have not been sent, and
// so those of one frame. A publisher that does not read its acks is not read
// from beyond it.
const maxUnacked = 1 << 16

// maxOpening bounds the segments that a stream opens at once.
const maxOpening = 32

// dataService is the data plane.
type dataService struct{ b *Broker }

// Publish serves a publisher's stream.
func (d dataService) Publish(stream rpc.PublishStream) error {
	streams := d.b.metrics.streams.WithLabelValues("publish")
	streams.Inc()
	defer streams.Dec()
	ctx := stream.Context()
	var head smqpb.PublishHead
	if _, err := stream.Recv(&head); err != nil {
		return ended(err)
	}
	hello := head.GetHello()
	if hello == nil || len(head.GetBatches()) > 0 {
		return fmt.Errorf("%w frame: a stream begins with a hello and nothing else", smq.ErrInvalid)
	}
	t, err := d.b.topics.get(ctx, hello.GetTopic(), smq.TopicID(hello.GetTopicId()))
	if err != nil {
		return err
	}
	p := &publishing{
		b: d.b, topic: t, stream: stream,
		level:   levelOf(hello.GetAcks()),
		answers: newAnswers(), unacked: semaphore.NewWeighted(maxUnacked), routes: make(map[smq.SegmentID]*route),
	}
	defer func() { d.b.metrics.unacked.Sub(float64(p.answers.abandon())) }()
	go func() { p.answers.end(p.receive(ctx)) }()
	return p.answer(ctx)
}

// levelOf is the level that a publisher asks for. Without a wish it is the one
// that comes first; a segment without followers has only one.
func levelOf(l smqpb.AckLevel) seglog.Level {
	if l == smqpb.AckLevel_STORED {
		return seglog.Stored
	}
	return seglog.Replicated
}

// ended is what a handler returns when its stream has ended.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// publishing is a publisher's stream.
type publishing struct {
	b       *Broker
	topic   *topic
	stream  rpc.PublishStream
	level   seglog.Level // that acks must have at least
	answers *answers
	unacked *semaphore.Weighted // batches received and not answered
	// routes are the logs that the stream's batches have gone to. A segment's
	// batches all go through one log, so that their acks come in order. Only the
	// receiving goroutine touches it.
	routes map[smq.SegmentID]*route
}

// receive takes in frames until there are no more, which is nil.
func (p *publishing) receive(ctx context.Context) error {
	var head smqpb.PublishHead
	for {
		payload, err := p.stream.Recv(&head)
		if err != nil {
			return ended(err)
		}
		if err := checkFrame(&head, len(payload)); err != nil {
			return err
		}
		if err := p.unacked.Acquire(ctx, int64(len(head.GetBatches()))); err != nil {
			return err
		}
		if !p.answers.expect(len(head.GetBatches())) {
			return nil
		}
		p.b.metrics.unacked.Add(float64(len(head.GetBatches())))
		p.b.metrics.receivedBatches.Add(float64(len(head.GetBatches())))
		p.b.metrics.receivedBytes.Add(float64(len(payload)))
		if err := p.take(ctx, head.GetBatches(), payload); err != nil {
			return err
		}
	}
}

// checkFrame says whether the head describes the payload.
func checkFrame(head *smqpb.PublishHead, payload int) error {
	if head.GetHello() != nil {
		return fmt.Errorf("%w frame: a second hello", smq.ErrInvalid)
	}
	if n := len(head.GetBatches()); n > maxUnacked {
		return fmt.Errorf("%w frame: %d batches, the limit is %d", smq.ErrTooLarge, n, maxUnacked)
	}
	var total uint64
	for _, b := range head.GetBatches() {
		if b.GetSize() == 0 {
			return fmt.Errorf("%w frame: a batch of no bytes", smq.ErrInvalid)
		}
		total += uint64(b.GetSize())
	}
	if total != uint64(payload) {
		return fmt.Errorf("%w frame: its batches do not add up to its %d bytes", smq.ErrInvalid, payload)
	}
	return nil
}

// take appends the frame's batches, segment by segment. An error ends the
// stream: the publisher then sends again what was not answered, in order.
func (p *publishing) take(ctx context.Context, batches []*smqpb.PublishBatch, payload []byte) error {
	bySegment, order := group(batches, payload, p.level)
	p.open(ctx, order)
	for _, id := range order {
		r, some := p.routes[id], bySegment[id]
		if r.err != nil {
			p.refuse(some, r.err)
			delete(p.routes, id) // the next frame tries anew
			continue
		}
		if err := p.append(ctx, r, some); err != nil {
			return err
		}
	}
	return nil
}

// append waits for memory and hands the batches to the log: all together, or
// one by one when the broker's memory is too small for that.
func (p *publishing) append(ctx context.Context, r *route, batches []seglog.Batch) error {
	err := p.reserve(ctx, batches)
	switch {
	case err == nil:
		r.append(batches)
	case !errors.Is(err, smq.ErrTooLarge):
		return err
	case len(batches) == 1:
		p.refuse(batches, err)
	default:
		for i := range batches {
			if err := p.append(ctx, r, batches[i:i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// group divides the batches by segment, and lists the segments in order.
func group(batches []*smqpb.PublishBatch, payload []byte, level seglog.Level) (map[smq.SegmentID][]seglog.Batch, []smq.SegmentID) {
	bySegment := make(map[smq.SegmentID][]seglog.Batch, 1)
	var order []smq.SegmentID
	for _, b := range batches {
		id := smq.SegmentID(b.GetSegment())
		some, known := bySegment[id]
		if !known {
			if len(order) == 0 {
				some = make([]seglog.Batch, 0, len(batches)) // most often it is the only one
			}
			order = append(order, id)
		}
		size := b.GetSize()
		bySegment[id] = append(some, seglog.Batch{ID: b.GetId(), Partition: b.GetPartition(), Bytes: payload[:size:size], Level: level})
		payload = payload[size:]
	}
	return bySegment, order
}

// open sees to it that there is a route to each of the segments, be it to an
// error. Those that are not open are opened side by side.
func (p *publishing) open(ctx context.Context, ids []smq.SegmentID) {
	needed := func(id smq.SegmentID) bool { r := p.routes[id]; return r == nil || r.spent() }
	if !slices.ContainsFunc(ids, needed) {
		return
	}
	maps.DeleteFunc(p.routes, func(_ smq.SegmentID, r *route) bool { return r.spent() })
	var group errgroup.Group
	group.SetLimit(maxOpening)
	for _, id := range ids {
		if p.routes[id] != nil {
			continue
		}
		r := &route{p: p}
		p.routes[id] = r
		group.Go(func() error {
			var s *segment
			if s, r.err = p.b.segments().get(ctx, p.topic, id); r.err == nil {
				r.log = s.log
			}
			return nil
		})
	}
	_ = group.Wait() // each route has its own error
}

// reserve waits for memory for the batches.
func (p *publishing) reserve(ctx context.Context, batches []seglog.Batch) error {
	var n int64
	for i := range batches {
		n += int64(len(batches[i].Bytes))
	}
	ctx, cancel := context.WithTimeout(ctx, p.b.cfg.BufferWait)
	defer cancel()
	return p.b.shared.Reserve(ctx, n)
}

// refuse answers batches that reach no log.
func (p *publishing) refuse(batches []seglog.Batch, err error) {
	acks := make([]seglog.Ack, len(batches))
	for i := range batches {
		acks[i] = seglog.Ack{ID: batches[i].ID, Partition: batches[i].Partition, Err: err}
	}
	p.answers.Acked(acks)
}
