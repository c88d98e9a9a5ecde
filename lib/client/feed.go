package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// maxAsked bounds the partitions that one message to a broker names.
const maxAsked = 10_000

// feed is a subscriber's stream from a broker. The subscriber's lock guards it.
type feed struct {
	addr    string
	wake    chan struct{} // there is something to ask for
	remove  []int32
	add     []*intake
	healthy bool // the broker has sent something
	quiet   bool // and then gave no sign of life for a time
}

// schedule asks for a partition that nobody serves, at once or when the route
// to its owner opens. The lock is held, as in all of these.
func (s *Subscriber) schedule(in *intake) {
	if !in.wanted || in.failed || in.feed != nil || in.parked || s.stopped || s.err != nil {
		return
	}
	rt := s.router.find(in.id)
	if !s.router.open(rt) {
		in.parked = true
		s.router.park(rt, in.id)
		return
	}
	f := s.feed(rt.addr)
	in.feed, in.segment, in.progress = f, rt.segment, false
	if in.adding != f {
		in.adding = f
		f.add = append(f.add, in)
	}
	f.poke()
}

func (f *feed) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// resume lets a parked partition go on.
func (s *Subscriber) resume(partition int32) {
	in := s.parts.get(partition)
	in.parked = false
	s.schedule(in)
}

// recall ends the partition's being served. More of it may still come.
func (s *Subscriber) recall(in *intake) {
	if f := in.feed; f != nil {
		in.feed = nil
		f.remove = append(f.remove, in.id)
		f.poke()
		in.leftover = f
	}
}

// suspect looks out for others to ask, because a feed's broker is quiet.
func (s *Subscriber) suspect(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feeds[f.addr] != f || s.stopped {
		return
	}
	f.quiet = true
	s.leave(f, 0, math.MaxInt32)
	s.router.suspect(f.addr)
}

// moved is told of a route that is no more. A broker that lives is let finish: it
// sends what it still has of a segment that is sealed, and then says so.
func (s *Subscriber) moved(rt *route) {
	if f := s.feeds[rt.addr]; f != nil && f.quiet {
		s.leave(f, rt.lo, rt.hi)
	}
}

// leave asks others for those of the partitions that a quiet broker has been asked
// for and owns no more.
func (s *Subscriber) leave(f *feed, lo, hi int32) {
	s.parts.each(lo, hi, func(in *intake) {
		if in.feed != f || s.router.find(in.id).addr == f.addr {
			return
		}
		s.recall(in)
		if in.wanted && !in.failed {
			s.lost(fmt.Errorf("broker %s: %w", f.addr, errQuiet))
		}
		s.schedule(in)
	})
}

// tick opens routes that have cooled down.
func (s *Subscriber) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alarm.rang() {
		return
	}
	now := s.now()
	if next := s.router.tick(now); next != 0 {
		s.alarm.set(next)
	}
	s.found() // by a broker that serves other partitions, too
	if s.broken {
		s.alarm.set(min(s.streams.lasts(s.logger, now, s.since, s.lastErr), now+silentAfter))
	}
}

// lost takes note that partitions have lost their broker.
func (s *Subscriber) lost(err error) {
	s.lastErr = err
	if !s.broken {
		s.broken, s.since = true, s.now()
		s.alarm.set(s.since + silentAfter)
	}
}

// found looks whether all partitions are served again.
func (s *Subscriber) found() {
	if !s.broken {
		return
	}
	served := true
	s.parts.each(0, math.MaxInt32, func(in *intake) {
		served = served && (!in.wanted || in.failed || in.feed != nil && in.feed.healthy)
	})
	if served {
		s.broken, s.lastErr = false, nil
		s.streams.ends(s.logger)
	}
}

// feed is the stream from a broker, which it opens if there is none.
func (s *Subscriber) feed(addr string) *feed {
	f := s.feeds[addr]
	if f == nil {
		f = &feed{addr: addr, wake: make(chan struct{}, 1)}
		s.feeds[addr] = f
		s.spawn(func(ctx context.Context) { s.serve(ctx, f) })
	}
	return f
}

// serve is the feed's goroutine: it opens the stream and receives.
func (s *Subscriber) serve(ctx context.Context, f *feed) {
	streams := s.metrics.streams.WithLabelValues(streamSubscribe)
	streams.Inc()
	defer streams.Dec()
	defer s.client.conns.OnQuiet(f.addr, func() { s.suspect(f) })()
	err := s.exchange(ctx, f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feedEnded(f, err)
}

func (s *Subscriber) exchange(ctx context.Context, f *feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.openStream(ctx, cancel, f.addr)
	if err != nil {
		return err
	}
	asked := make(chan error, 1)
	go func() { asked <- s.ask(ctx, f, stream) }()
	err = s.receive(ctx, f, stream)
	cancel()
	if askErr := <-asked; askErr != nil && !errors.Is(askErr, io.EOF) && errors.Is(err, context.Canceled) {
		return askErr
	}
	return err
}

// openStream opens a stream and says hello.
func (s *Subscriber) openStream(ctx context.Context, cancel context.CancelFunc, addr string) (*rpc.SubscribeClient, error) {
	timer := time.AfterFunc(openTimeout, cancel)
	defer timer.Stop()
	stream, err := s.openSubscribe(ctx, addr)
	if err == nil {
		hello := &smqpb.SubscribeHello{Topic: s.topic.GetTopic(), TopicId: s.topic.GetTopicId()}
		err = stream.Send(&smqpb.SubscribeHead{Hello: hello})
		if errors.Is(err, io.EOF) {
			_, err = stream.Recv(&smqpb.DeliverHead{}) // tells why
		}
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe at broker %s: %w", addr, err)
	}
	return stream, nil
}

func (s *Subscriber) openSubscribe(ctx context.Context, addr string) (*rpc.SubscribeClient, error) {
	conn, err := s.client.cluster.Conn(addr)
	if err != nil {
		return nil, err
	}
	return rpc.OpenSubscribe(ctx, conn)
}

// ask tells the broker what to serve, as that changes, until ctx ends.
func (s *Subscriber) ask(ctx context.Context, f *feed, stream *rpc.SubscribeClient) error {
	for {
		for _, head := range s.wishes(f) {
			if err := stream.Send(head); err != nil {
				return err
			}
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// wishes is what to tell the broker: what to stop first, so that a partition in
// both lists starts anew.
func (s *Subscriber) wishes(f *feed) []*smqpb.SubscribeHead {
	s.mu.Lock()
	defer s.mu.Unlock()
	var heads []*smqpb.SubscribeHead
	if len(f.remove) > 0 {
		heads = append(heads, &smqpb.SubscribeHead{Remove: f.remove})
		f.remove = nil
	}
	var head *smqpb.SubscribeHead
	for _, in := range f.add {
		if in.adding != f {
			continue
		}
		in.adding = nil
		if in.feed != f {
			continue
		}
		if head == nil || len(head.Partitions) == maxAsked {
			head = &smqpb.SubscribeHead{}
			heads = append(heads, head)
		}
		head.Partitions = append(head.Partitions, in.id)
		head.Offsets = append(head.Offsets, in.next)
	}
	f.add = nil
	return heads
}

// receive takes in frames until the stream ends, and tells why it did. While
// the queue is full it leaves them to gRPC's flow control.
func (s *Subscriber) receive(ctx context.Context, f *feed, stream *rpc.SubscribeClient) error {
	var head smqpb.DeliverHead
	for {
		if err := s.room(ctx); err != nil {
			return err
		}
		payload, err := stream.Recv(&head)
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: broker %s ended the stream", smq.ErrUnavailable, f.addr)
		case err != nil:
			return fmt.Errorf("subscribe at broker %s: %w", f.addr, err)
		}
		s.metrics.received.Add(float64(len(payload)))
		if err := s.received(f, &head, payload); err != nil {
			return fmt.Errorf("subscribe at broker %s: %w", f.addr, err)
		}
	}
}

// room waits until the queue takes more.
func (s *Subscriber) room(ctx context.Context) error {
	for {
		s.mu.Lock()
		if s.queued < s.options.Buffer || s.stopped {
			s.mu.Unlock()
			return ctx.Err()
		}
		if s.space == nil {
			s.space = make(chan struct{})
		}
		space := s.space
		s.mu.Unlock()
		select {
		case <-space:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// feedEnded asks other brokers, or this one again, for what the feed served.
func (s *Subscriber) feedEnded(f *feed, err error) {
	if s.feeds[f.addr] == f {
		delete(s.feeds, f.addr)
	}
	if s.stopped {
		return
	}
	s.logger.Debug("the stream from a broker broke", "address", f.addr, "error", err)
	s.parts.each(0, math.MaxInt32, func(in *intake) {
		if in.feed != f {
			return
		}
		in.feed = nil
		if in.wanted && !in.failed {
			s.lost(err)
		}
		if rt := s.router.find(in.id); rt.addr == f.addr {
			if f.healthy {
				s.router.doubt(rt, err)
			} else {
				s.router.block(rt, err)
			}
		}
		s.schedule(in)
	})
}
