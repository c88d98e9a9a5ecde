package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// frameBytes is the size of a frame's payload that is aimed at.
	frameBytes = 1 << 20
	// maxAhead bounds the frames of a stream that are read and not sent.
	maxAhead = 4
	// maxNews bounds the partitions that one frame without payload tells of.
	maxNews = 10_000
)

// Subscribe serves a subscriber's stream.
func (d dataService) Subscribe(stream rpc.SubscribeStream) error {
	streams := d.b.metrics.streams.WithLabelValues("subscribe")
	streams.Inc()
	defer streams.Dec()
	ctx := stream.Context()
	var head smqpb.SubscribeHead
	if err := stream.Recv(&head); err != nil {
		return ended(err)
	}
	hello := head.GetHello()
	if hello == nil {
		return fmt.Errorf("%w message: a stream begins with a hello", smq.ErrInvalid)
	}
	t, err := d.b.topics.get(ctx, hello.GetTopic(), smq.TopicID(hello.GetTopicId()))
	if err != nil {
		return err
	}
	s := &session{
		b: d.b, topic: t, tasks: background.New(),
		frames: make(chan frame), ahead: make(chan struct{}, maxAhead),
		subs: make(map[smq.Partition]*sub), feeds: make(map[smq.SegmentID]*feed),
	}
	defer s.tasks.Stop()
	received := make(chan error, 1)
	go func() {
		received <- s.receive(stream, &smqpb.SubscribeHead{Partitions: head.Partitions, Offsets: head.Offsets})
	}()
	for {
		select {
		case f := <-s.frames:
			if err := s.send(stream, f); err != nil {
				return err
			}
		case err := <-received:
			return err
		case <-d.b.ending:
			return smq.ErrDraining
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// session is a subscriber's stream.
type session struct {
	b      *Broker
	topic  *topic
	tasks  *background.Group
	frames chan frame    // to the goroutine that sends
	ahead  chan struct{} // holds one for each frame with a payload, until it is sent

	mu    sync.Mutex
	subs  map[smq.Partition]*sub
	feeds map[smq.SegmentID]*feed
}

// sub is a partition that the subscriber has asked for. Asking for it again
// makes another one.
type sub struct {
	partition smq.Partition
	offset    smq.Offset // to go on from, while no feed serves it
	feed      *feed      // where it is; guarded by session.mu
	told      bool       // that it has caught up; its feed's alone
}

// frame is on its way to the subscriber.
type frame struct {
	head    *smqpb.DeliverHead
	payload [][]byte
}

func (s *session) send(stream rpc.SubscribeStream, f frame) error {
	err := stream.Send(f.head, f.payload...)
	if len(f.payload) > 0 {
		<-s.ahead
		bytes := 0
		for _, b := range f.payload {
			bytes += len(b)
		}
		s.b.metrics.servedBatches.Add(float64(len(f.payload)))
		s.b.metrics.servedBytes.Add(float64(bytes))
	}
	return err
}

// put hands a frame to the goroutine that sends.
func (s *session) put(ctx context.Context, f frame) error {
	select {
	case s.frames <- f:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive takes in what the subscriber asks for, the given first, until it asks
// no more: that ends the stream.
func (s *session) receive(stream rpc.SubscribeStream, head *smqpb.SubscribeHead) error {
	for {
		if head.GetHello() != nil {
			return fmt.Errorf("%w message: a second hello", smq.ErrInvalid)
		}
		if len(head.GetPartitions()) != len(head.GetOffsets()) {
			return fmt.Errorf("%w message: %d partitions and %d offsets", smq.ErrInvalid, len(head.GetPartitions()), len(head.GetOffsets()))
		}
		err := s.tasks.Run(func(ctx context.Context) error { s.ask(ctx, head); return nil })
		if err != nil {
			return nil // the stream has ended
		}
		head = new(smqpb.SubscribeHead)
		if err := stream.Recv(head); err != nil {
			return ended(err)
		}
	}
}

// ask stops and starts to serve partitions.
func (s *session) ask(ctx context.Context, head *smqpb.SubscribeHead) {
	var subs []*sub
	s.mu.Lock()
	for _, p := range head.GetRemove() {
		s.remove(p)
	}
	for i, p := range head.GetPartitions() {
		s.remove(p)
		n := &sub{partition: p, offset: head.GetOffsets()[i]}
		s.subs[p] = n
		subs = append(subs, n)
	}
	s.mu.Unlock()
	s.place(ctx, subs, 0)
}

// remove stops serving a partition. s.mu is held.
func (s *session) remove(p smq.Partition) {
	if old := s.subs[p]; old != nil {
		delete(s.subs, p)
		if old.feed != nil {
			old.feed.removed = append(old.feed.removed, old)
			old.feed.poke()
		}
	}
}

// place finds for each sub the feed that serves it from its offset on, behind
// the segment of the given id, or tells the subscriber to look elsewhere.
func (s *session) place(ctx context.Context, subs []*sub, behind smq.SegmentID) {
	f := finder{b: s.b, topic: s.topic}
	var ends []*smqpb.PartitionEnd
	for _, n := range subs {
		at, err := f.find(ctx, n.partition, n.offset, behind)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			s.join(n, at)
			continue
		}
		if end := s.end(n, err); end != nil {
			ends = append(ends, end)
		}
		if len(ends) == maxNews {
			if s.put(ctx, frame{head: &smqpb.DeliverHead{Ends: ends}}) != nil {
				return
			}
			ends = nil
		}
	}
	if len(ends) > 0 {
		_ = s.put(ctx, frame{head: &smqpb.DeliverHead{Ends: ends}}) // fails only when the stream has ended
	}
}

// join has the feed of the place serve the sub, unless it was stopped meanwhile.
func (s *session) join(n *sub, at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subs[n.partition] != n {
		return
	}
	f := s.feeds[at.id]
	if f == nil {
		f = newFeed(s, at)
		s.feeds[at.id] = f
		s.tasks.Go(f.run)
	}
	n.feed = f
	f.added = append(f.added, n)
	f.poke()
}

// end stops serving the sub because of err, and makes the notice of it; nil
// when it was stopped before.
func (s *session) end(n *sub, err error) *smqpb.PartitionEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subs[n.partition] != n {
		return nil
	}
	delete(s.subs, n.partition)
	end := &smqpb.PartitionEnd{Partition: n.partition, NextOffset: n.offset, Error: rpc.ErrorInfo(err)}
	var other *elsewhere
	if errors.As(err, &other) {
		end.Segment = uint64(other.segment)
	}
	return end
}
