package client

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Subscriber receives messages of one topic. Poll and the Fetch it gives belong
// to one goroutine at a time; the other methods may be called from any.
type Subscriber struct {
	client  *Client
	logger  *slog.Logger
	metrics *metrics
	options SubscriberOptions
	topic   *smqpb.TopicConfig
	now     clock
	spawn   func(func(context.Context))
	cancel  context.CancelFunc
	running sync.WaitGroup
	offered chan struct{} // wakes Poll
	ended   chan struct{} // closed by Close
	reader  record.Reader
	fetch   Fetch

	mu      sync.Mutex
	stopped bool
	err     error // why nothing more comes
	parts   table[intake]
	router  router
	feeds   map[string]*feed
	queue   []item
	queued  int64         // bytes in queue
	space   chan struct{} // closed when bytes leave the queue; nil: nobody waits
	alarm   *alarm
	streams silence
	broken  bool          // some partition has lost its broker, and has no other yet
	since   time.Duration // then
	lastErr error         // why
}

// intake is a partition as its subscriber sees it. The subscriber's lock guards
// it.
type intake struct {
	id       int32
	wanted   bool
	parked   bool   // it waits at its route
	feed     *feed  // that serves it, or has been asked to
	adding   *feed  // whose list of partitions to ask for it is in
	segment  uint64 // that was live when it was asked for
	next     int64  // offset to be received
	position int64  // offset to be given to the caller
	run      uint32 // rises with every seek: what was received before is void
	leftover *feed  // that may still send what was asked for before a seek
	failed   bool   // it has ended with an error, until a seek
	progress bool   // something came since it was asked for
	gaps     int    // in a row
}

// item is a part of what has been received, in order.
type item struct {
	in       *intake
	run      uint32
	data     []byte // batches
	from     int64
	next     int64
	caughtUp bool
	err      error
}

// NewSubscriber subscribes to a topic; smq.ErrNotFound when there is none of
// this name. Where to start is found out before it returns: a message published
// after that comes even with Latest. It goes on trying until ctx ends, which
// then has no more influence on the subscriber.
func (c *Client) NewSubscriber(ctx context.Context, topic smq.Topic, o SubscriberOptions) (*Subscriber, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	resp, err := c.lookup(ctx, &smqpb.LookupRequest{
		Topic: topic.String(), Assign: true, Partitions: o.Partitions[:min(len(o.Partitions), lookupPartitions)],
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	partitions, err := checkPartitions(resp.GetConfig(), o.Partitions)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	starts, err := c.resolveStarts(ctx, resp, partitions, o)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	s := &Subscriber{
		client:  c,
		logger:  c.logger.With("topic", topic.String()),
		metrics: c.metrics,
		options: o,
		topic:   resp.GetConfig(),
		now:     c.now,
		offered: make(chan struct{}, 1),
		ended:   make(chan struct{}),
		parts:   newTable[intake](resp.GetConfig().GetPartitions()),
		feeds:   make(map[string]*feed),
		streams: silence{what: "messages"},
	}
	s.start(resp.GetLayout(), partitions, starts)
	if err := c.adopt(s); err != nil {
		s.abort(err)
		return nil, err
	}
	return s, nil
}

// start wires the subscriber's parts together and asks for the partitions.
func (s *Subscriber) start(layout *smqpb.Layout, partitions []int32, starts []int64) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.spawn = func(f func(context.Context)) { s.running.Go(func() { f(ctx) }) }
	s.alarm = newAlarm(s.now, s.tick)
	s.router = router{
		mu: &s.mu, topic: s.topic, logger: s.logger, metrics: s.metrics, now: s.now,
		lookup: s.client.lookup, spawn: s.spawn, arm: s.alarm.set,
		resume: s.resume, moved: s.moved, failed: s.fail,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.router.apply(layout)
	for i, p := range partitions {
		in := &intake{id: p, wanted: true, next: starts[i], position: starts[i]}
		s.parts.put(p, in)
		s.schedule(in)
	}
}

// resolveStarts finds the offset to start at for each of the partitions.
func (c *Client) resolveStarts(ctx context.Context, at *smqpb.LookupResponse, partitions []int32, o SubscriberOptions) ([]int64, error) {
	starts := make([]int64, len(partitions))
	groups := make(map[Start][]int) // indexes into partitions
	for i, p := range partitions {
		start, ok := o.Starts[p]
		if !ok {
			start = o.Start
		}
		if start.kind == startOffset {
			starts[i] = start.n
			continue
		}
		groups[start] = append(groups[start], i)
	}
	for start, indexes := range groups {
		asked := make([]int32, len(indexes))
		for k, i := range indexes {
			asked[k] = partitions[i]
		}
		found, err := c.resolveStart(ctx, at, asked, start)
		if err != nil {
			return nil, err
		}
		for k, i := range indexes {
			starts[i] = found[k].Offset
		}
	}
	return starts, nil
}

func (c *Client) resolveStart(ctx context.Context, at *smqpb.LookupResponse, partitions []int32, start Start) ([]PartitionOffset, error) {
	switch start.kind {
	case startEarliest:
		return c.offsets(ctx, at, partitions, smqpb.OffsetsRequest_EARLIEST, 0)
	case startTime:
		return c.offsets(ctx, at, partitions, smqpb.OffsetsRequest_TIME, start.n)
	case startLatest:
		return c.offsets(ctx, at, partitions, smqpb.OffsetsRequest_END, 0)
	}
	first, err := c.offsets(ctx, at, partitions, smqpb.OffsetsRequest_EARLIEST, 0)
	if err != nil {
		return nil, err
	}
	end, err := c.offsets(ctx, at, partitions, smqpb.OffsetsRequest_END, 0)
	if err != nil {
		return nil, err
	}
	for i := range end {
		end[i].Offset = max(end[i].Offset-start.n, first[i].Offset)
	}
	return end, nil
}

// Topic is the configuration of the topic.
func (s *Subscriber) Topic() *smqpb.TopicConfig { return s.topic }

// Poll waits for messages, or for the news that a partition has been read to its
// end. A PartitionError ends one partition, and Poll may be called again; any
// other error is ctx's, or ends the subscriber: ErrClosed, smq.ErrNotFound once
// the topic has been deleted.
func (s *Subscriber) Poll(ctx context.Context) (*Fetch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if it, ok := s.pop(); ok {
			return s.give(it)
		}
		if s.err != nil {
			return nil, s.err
		}
		s.mu.Unlock()
		var err error
		select {
		case <-s.offered:
		case <-s.ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// pop takes the next item from the queue that is not void.
func (s *Subscriber) pop() (item, bool) {
	for len(s.queue) > 0 && !s.stopped {
		it := s.queue[0]
		s.queue[0] = item{}
		s.queue = s.queue[1:]
		s.count(-len(it.data))
		if it.run == it.in.run && it.in.wanted {
			return it, true
		}
	}
	return item{}, false
}

func (s *Subscriber) give(it item) (*Fetch, error) {
	if it.err != nil {
		it.in.wanted = false
		return nil, it.err
	}
	it.in.position = it.next
	s.fetch = Fetch{
		Partition: it.in.id, NextOffset: it.next, CaughtUp: it.caughtUp,
		reader: &s.reader, data: it.data, size: len(it.data), from: it.from, next: it.from,
	}
	return &s.fetch, nil
}

// count adds to the bytes in the queue.
func (s *Subscriber) count(n int) {
	if n == 0 {
		return
	}
	s.queued += int64(n)
	s.metrics.prefetched.Add(float64(n))
	if n < 0 && s.space != nil && s.queued < s.options.Buffer {
		close(s.space)
		s.space = nil
	}
}

// push offers an item to Poll.
func (s *Subscriber) push(it item) {
	it.run = it.in.run
	s.count(len(it.data))
	s.queue = append(s.queue, it)
	s.wake()
}

func (s *Subscriber) wake() {
	select {
	case s.offered <- struct{}{}:
	default:
	}
}

// Seek goes on with a partition at an offset, and begins to receive it if that
// was not so. The next Poll gives nothing older.
func (s *Subscriber) Seek(partition int32, offset int64) error {
	if partition < 0 || partition >= s.topic.GetPartitions() || offset < 0 {
		return fmt.Errorf("%w position: partition %d, offset %d (topic %s has %d partitions)",
			smq.ErrInvalid, partition, offset, s.topic.GetTopic(), s.topic.GetPartitions())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	in := s.parts.get(partition)
	if in == nil {
		in = &intake{id: partition}
		s.parts.put(partition, in)
	}
	in.run++
	in.wanted, in.failed = true, false
	in.next, in.position, in.gaps = offset, offset, 0
	s.recall(in)
	s.schedule(in)
	return nil
}

// Stop ends the receiving of a partition; Seek starts it again.
func (s *Subscriber) Stop(partition int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if partition < 0 || partition >= s.topic.GetPartitions() {
		return
	}
	if in := s.parts.get(partition); in != nil {
		in.wanted = false
		in.run++
		s.recall(in)
	}
}

// Positions tells where each partition that is received stands: one past the
// last message that Poll has given, or where it starts.
func (s *Subscriber) Positions() map[int32]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	positions := make(map[int32]int64)
	s.parts.each(0, math.MaxInt32, func(in *intake) {
		if in.wanted {
			positions[in.id] = in.position
		}
	})
	return positions
}

// Lag tells how many messages each partition that is received holds from its
// position on. It goes on trying until ctx ends.
func (s *Subscriber) Lag(ctx context.Context) (map[int32]int64, error) {
	lag := s.Positions()
	if len(lag) == 0 {
		return lag, nil
	}
	partitions := make([]int32, 0, len(lag))
	for p := range lag {
		partitions = append(partitions, p)
	}
	slices.Sort(partitions)
	resp, err := s.client.lookup(ctx, &smqpb.LookupRequest{Topic: s.topic.GetTopic(), TopicId: s.topic.GetTopicId()})
	if err != nil {
		return nil, fmt.Errorf("lag: %w", err)
	}
	ends, err := s.client.offsets(ctx, resp, partitions, smqpb.OffsetsRequest_END, 0)
	if err != nil {
		return nil, fmt.Errorf("lag: %w", err)
	}
	for _, end := range ends {
		lag[end.Partition] = max(end.Offset-lag[end.Partition], 0)
	}
	return lag, nil
}

// Close ends the subscriber. It may be called again.
func (s *Subscriber) Close() error {
	s.client.forget(s)
	s.abort(fmt.Errorf("subscriber: %w", ErrClosed))
	return nil
}

// abort ends the subscriber because of cause.
func (s *Subscriber) abort(cause error) {
	s.mu.Lock()
	if !s.stopped {
		s.stopped, s.err = true, cause
		s.alarm.stop()
		s.queue = nil
		s.count(-int(s.queued))
		if s.space != nil {
			close(s.space)
			s.space = nil
		}
		close(s.ended)
	}
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// fail makes Poll end with an error, once it has given what was received.
func (s *Subscriber) fail(cause error) {
	if s.err == nil {
		s.err = cause
		s.wake()
	}
}
