package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Publisher sends messages to one topic. It is safe for concurrent use; the
// order between messages of different goroutines is that of their calls.
type Publisher struct {
	client  *Client
	logger  *slog.Logger
	metrics *metrics
	options PublisherOptions
	topic   *smqpb.TopicConfig
	keys    record.KeySource
	now     clock
	spawn   func(func(context.Context))
	cancel  context.CancelFunc
	running sync.WaitGroup
	told    chan struct{} // wakes the goroutine that tells results
	ended   chan struct{} // closed when everything has stopped

	mu        sync.Mutex
	closing   bool  // takes no more messages
	stopped   bool  // starts nothing more
	err       error // why the publisher can do nothing any more
	parts     table[partition]
	run       int32 // where messages without a key go
	router    router
	links     map[string]*link
	attempts  uint64
	batches   uint64
	live      batchList
	lingering batchList
	used      int64         // bytes counted against the buffer
	space     chan struct{} // closed when bytes are released; nil: nobody waits
	encoders  encoders
	results   []result
	flushes   []flush
	firstErr  error // when there is no Results to tell of it
	alarm     *alarm
	acks      silence
	lastAck   time.Duration
}

// NewPublisher makes a publisher to a topic; smq.ErrNotFound when there is none
// of this name. It goes on trying until ctx ends, which then has no more
// influence on the publisher.
func (c *Client) NewPublisher(ctx context.Context, topic smq.Topic, o PublisherOptions) (*Publisher, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("publish to %s: %w", topic, err)
	}
	resp, err := c.lookup(ctx, &smqpb.LookupRequest{Topic: topic.String(), Assign: true})
	if err != nil {
		return nil, fmt.Errorf("publish to %s: %w", topic, err)
	}
	keys, err := parseKeySource(resp.GetConfig().GetKey())
	if err != nil {
		return nil, fmt.Errorf("publish to %s: %w", topic, err)
	}
	p := &Publisher{
		client:    c,
		logger:    c.logger.With("topic", topic.String()),
		metrics:   c.metrics,
		options:   o,
		topic:     resp.GetConfig(),
		keys:      keys,
		now:       c.now,
		told:      make(chan struct{}, 1),
		ended:     make(chan struct{}),
		parts:     newTable[partition](resp.GetConfig().GetPartitions()),
		run:       rand.Int32N(resp.GetConfig().GetPartitions()),
		links:     make(map[string]*link),
		live:      batchList{kind: inLive},
		lingering: batchList{kind: inLingering},
		acks:      silence{what: "acks"},
	}
	p.start()
	p.mu.Lock()
	p.router.apply(resp.GetLayout())
	p.mu.Unlock()
	if err := c.adopt(p); err != nil {
		p.abort(err)
		return nil, err
	}
	return p, nil
}

// start wires the publisher's parts together and starts telling results.
func (p *Publisher) start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.spawn = func(f func(context.Context)) { p.running.Go(func() { f(ctx) }) }
	p.alarm = newAlarm(p.now, p.tick)
	p.router = router{
		mu: &p.mu, topic: p.topic, logger: p.logger, metrics: p.metrics, now: p.now,
		lookup: p.client.lookup, spawn: p.spawn, arm: p.alarm.set,
		resume: p.resume, moved: p.moved, failed: p.fail,
	}
	go p.tell()
}

// Topic is the configuration of the topic.
func (p *Publisher) Topic() *smqpb.TopicConfig { return p.topic }

// Publish takes a message, which is then sent in the background. It waits while
// the buffer is full, until ctx ends. An error means that the message was not
// taken: an smq.ErrTooLarge or smq.ErrInvalid one, ErrClosed, ctx's, or what
// made the publisher give up (smq.ErrNotFound once the topic has been deleted).
func (p *Publisher) Publish(ctx context.Context, m *Message) error {
	return p.publish(ctx, m, nil)
}

// PublishSync publishes a message, without lingering, and waits for its ack.
// The error is as for Publish, or an ErrNotStored or ErrUnknown, or ctx's, after
// which the message may still be stored.
func (p *Publisher) PublishSync(ctx context.Context, m *Message) (partition int32, offset int64, err error) {
	told := make(chan outcome, 1)
	if err := p.publish(ctx, m, told); err != nil {
		return 0, 0, err
	}
	select {
	case o := <-told:
		return o.partition, o.offset, o.err
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("wait for the ack: %w: %w", ErrUnknown, ctx.Err())
	}
}

func (p *Publisher) publish(ctx context.Context, m *Message, told chan outcome) error {
	partition, err := p.choose(m)
	if err != nil {
		return err
	}
	size := len(m.Key) + len(m.Value)
	for i := range m.Headers {
		size += len(m.Headers[i].Key) + len(m.Headers[i].Value)
	}
	if size > smq.MaxMessageSize {
		return fmt.Errorf("message of %d bytes: %w, the limit is %d", size, smq.ErrTooLarge, smq.MaxMessageSize)
	}
	timestamp := m.Timestamp
	if timestamp == 0 {
		timestamp = time.Now().UnixMilli()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.room(ctx, int64(size)); err != nil {
		return err
	}
	if partition == AnyPartition {
		partition = p.run
	}
	b, err := p.add(p.partition(partition), m, timestamp, size)
	if err != nil {
		return err
	}
	if p.options.Results != nil {
		b.tokens = append(b.tokens, m.Token)
	}
	b.count++
	if told != nil {
		b.waiters = append(b.waiters, waiter{index: b.count - 1, told: told})
		p.makeDue(b)
	}
	if b.builder.Size() >= p.options.BatchBytes || int(b.count) >= p.options.BatchMessages {
		p.close(b.part)
	}
	return nil
}

// choose is the partition that a message asks for, by number or by key, or
// AnyPartition.
func (p *Publisher) choose(m *Message) (int32, error) {
	n := p.topic.GetPartitions()
	if m.Partition != AnyPartition {
		if m.Partition < 0 || m.Partition >= n {
			return 0, fmt.Errorf("%w partition %d: topic %s has 0 to %d", smq.ErrInvalid, m.Partition, p.topic.GetTopic(), n-1)
		}
		return m.Partition, nil
	}
	if key, ok := p.keys.Key(m.Key, m.Value, m.Headers); ok {
		return record.Partition(key, n), nil
	}
	return AnyPartition, nil
}

// room waits until size more bytes fit into the buffer, without the lock.
func (p *Publisher) room(ctx context.Context, size int64) error {
	for {
		switch {
		case p.err != nil:
			return p.err
		case p.closing:
			return fmt.Errorf("publisher: %w", ErrClosed)
		case p.used == 0 || p.used+size <= p.options.Buffer:
			return nil
		}
		p.allDue() // nothing more will come to share a batch
		if p.space == nil {
			p.space = make(chan struct{})
		}
		space := p.space
		p.mu.Unlock()
		var err error
		select {
		case <-space:
		case <-ctx.Done():
			err = fmt.Errorf("wait for room in the publisher's buffer: %w", ctx.Err())
		}
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// wakeBlocked makes those who wait for room look again.
func (p *Publisher) wakeBlocked() {
	if p.space != nil {
		close(p.space)
		p.space = nil
	}
}

// charge counts n bytes more, or less, against the buffer.
func (p *Publisher) charge(n int64) {
	p.used += n
	if n < 0 && p.used <= p.options.Buffer-p.options.Buffer/8 {
		p.wakeBlocked()
	}
}

// partition is the state of a partition, made when it is first used.
func (p *Publisher) partition(id int32) *partition {
	t := p.parts.get(id)
	if t == nil {
		t = &partition{id: id, producer: newProducerID()}
		p.parts.put(id, t)
	}
	return t
}

// add appends a message to the partition's open batch, or to the next one.
func (p *Publisher) add(t *partition, m *Message, timestamp int64, size int) (*batch, error) {
	if b := t.open; b != nil && b.builder.Size()+size > p.options.BatchBytes {
		p.close(t)
	}
	fresh := t.open == nil
	b := t.open
	if fresh {
		b = p.newBatch(t)
	}
	before := b.builder.Size()
	err := b.builder.Append(timestamp, m.Key, m.Value, m.Headers)
	if errors.Is(err, record.ErrFull) {
		p.close(t)
		return p.add(t, m, timestamp, size)
	}
	if err != nil {
		return nil, err // of a fresh batch nothing is known yet, but its builder
	}
	grown := int64(b.builder.Size() - before)
	if p.options.Results != nil {
		grown += 8 // the token
	}
	if fresh {
		grown += batchOverhead
		p.begin(b)
	}
	b.charged += grown
	p.charge(grown)
	return b, nil
}

// newBatch makes a batch that is in no list yet.
func (p *Publisher) newBatch(t *partition) *batch {
	return &batch{part: t, builder: p.encoders.builder(p.options.Codec), tokens: p.encoders.tokens()}
}

// begin makes a batch, which has its first message, the partition's open one.
func (p *Publisher) begin(b *batch) {
	p.batches++
	b.number, b.opened = p.batches, p.now()
	b.part.open = b
	p.live.push(b)
	p.alarm.set(b.opened + max(p.options.Linger, 0) + silentAfter)
	if p.options.DeliveryTimeout > 0 {
		p.alarm.set(b.opened + p.options.DeliveryTimeout)
	}
	if p.options.Linger < 0 {
		p.makeDue(b)
		return
	}
	p.lingering.push(b)
	p.alarm.set(b.opened + p.options.Linger)
}

// makeDue lets an open batch be sent as soon as its partition can take it.
func (p *Publisher) makeDue(b *batch) {
	if b.due {
		return
	}
	b.due = true
	p.lingering.remove(b)
	p.spread(b.part)
	p.schedule(b.part)
}

// allDue makes every open batch due.
func (p *Publisher) allDue() {
	for p.lingering.head != nil {
		p.makeDue(p.lingering.head)
	}
}

// spread sends the messages without a key to the next partition, if they went
// to t and are to be spread.
func (p *Publisher) spread(t *partition) {
	if p.options.Spread && p.run == t.id {
		p.run = (p.run + 1) % p.topic.GetPartitions()
	}
}

// close ends the partition's open batch: it takes no more messages.
func (p *Publisher) close(t *partition) {
	b := t.open
	p.lingering.remove(b)
	if !b.due {
		p.spread(t)
	}
	t.close()
	b.metered = b.charged
	p.metrics.buffered.Add(float64(b.metered))
	p.encodeAhead(b)
	p.schedule(t)
}
