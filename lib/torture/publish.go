package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// publisher publishes to one topic, in one life after another: each has a
// publisher of the client library of its own.
type publisher struct {
	name       string
	recorder   *recorder
	client     *client.Client
	topic      smq.Topic
	partitions int32
	options    client.PublisherOptions
	keyed      bool
	explicit   bool // it chooses partitions itself
	rate       float64
	random     *rand.Rand
	settle     time.Duration
}

// Lengths of a publisher's life, and of the sizes of messages.
const (
	shortLife, longLife = 5 * time.Second, 40 * time.Second
	smallest, usual     = 40, 600
	largest             = 100 << 10
	largeOneIn          = 200
	keys                = 50
)

// run publishes until publishing ends, and then waits for all answers, but at
// most as long as everything may take to settle. The end of ctx ends it at once.
func (p *publisher) run(ctx, publishing context.Context) {
	for publishing.Err() == nil {
		if err := p.live(ctx, publishing); err != nil && pause(publishing, time.Second) != nil {
			return
		}
	}
}

// live is one life of the publisher.
func (p *publisher) live(ctx, publishing context.Context) error {
	number := p.recorder.publisher(p.topic.String(), check.Level(p.options.Acks.String()))
	o := p.options
	o.Results = func(r client.Results) { p.answered(number, r) }
	pub, err := p.client.NewPublisher(publishing, p.topic, o)
	if err != nil {
		return err
	}
	life, cancel := context.WithTimeout(publishing, between(p.random, shortLife, longLife))
	p.publishAll(life, pub, number)
	cancel()
	p.end(ctx, publishing, pub)
	return nil
}

// end ends the client library's publisher: in the middle of a run it may be
// without waiting for answers, as the end of its process would.
func (p *publisher) end(ctx, publishing context.Context, pub *client.Publisher) {
	closing, cancel := settled(ctx, publishing, p.settle)
	defer cancel()
	abrupt := publishing.Err() == nil && p.random.IntN(3) == 0
	if abrupt {
		cancel()
	}
	if err := pub.Close(closing); err != nil && !abrupt && ctx.Err() == nil {
		p.recorder.add(check.Event{Kind: check.Stuck, Who: p.name, Text: fmt.Sprintf("messages were not answered %v after all was mended: %v", p.settle, err)})
	}
}

// settled is a context that ends some time after using does, and when ctx does.
func settled(ctx, using context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(using, func() {
		_ = pause(ctx, after) // that it ends earlier is the end too
		cancel()
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// publishAll publishes until ctx ends.
func (p *publisher) publishAll(ctx context.Context, pub *client.Publisher, number uint32) {
	limit := rate.NewLimiter(rate.Limit(p.rate), 5)
	for n := uint32(1); limit.Wait(ctx) == nil; n++ {
		m := check.Message{Publisher: number, Number: n}
		p.recorder.add(check.Event{Kind: check.Send, Messages: []check.Message{m}})
		if err := pub.Publish(ctx, p.message(m)); err != nil {
			// It was not taken.
			p.recorder.add(check.Event{Kind: check.NotStored, Messages: []check.Message{m}, Text: err.Error()})
			if ctx.Err() == nil {
				return
			}
		}
	}
}

func (p *publisher) message(m check.Message) *client.Message {
	msg := &client.Message{Partition: client.AnyPartition, Token: uint64(m.Number)}
	if p.keyed {
		msg.Key = fmt.Appendf(nil, "key-%d", p.random.IntN(keys))
	}
	if p.explicit {
		msg.Partition = p.random.Int32N(p.partitions)
	}
	size := smallest + p.random.IntN(usual)
	if p.random.IntN(largeOneIn) == 0 {
		size = p.random.IntN(largest) + smallest
	}
	msg.Value = encodeMessage(p.random, m, msg.Key, size)
	return msg
}

// answered notes what became of messages.
func (p *publisher) answered(number uint32, r client.Results) {
	e := check.Event{Kind: check.Acked, Partition: r.Partition, Offset: r.BaseOffset, Level: check.Level(r.Level.String())}
	for _, t := range r.Tokens {
		e.Messages = append(e.Messages, check.Message{Publisher: number, Number: uint32(t)})
	}
	if r.Err != nil {
		e.Kind, e.Offset, e.Level, e.Text = check.Unknown, 0, "", r.Err.Error()
		if errors.Is(r.Err, client.ErrNotStored) {
			e.Kind = check.NotStored
		}
		e.Refused = p.options.DeliveryTimeout == client.Forever && errors.Is(r.Err, smq.ErrUnknownProducer)
	}
	p.recorder.add(e)
}

// variety makes publishers differ: what they wait for, how they batch and
// compress, when they give up.
func variety(i int, acks client.AckLevel) client.PublisherOptions {
	codecs := []record.Codec{record.None, record.LZ4, record.Zstd, record.Snappy}
	o := client.PublisherOptions{Acks: acks, Codec: codecs[i%len(codecs)], Buffer: 1 << 20, DeliveryTimeout: client.Forever}
	switch i % 4 {
	case 1:
		o.Spread = true
	case 2:
		o.DeliveryTimeout = 4 * time.Second
	case 3:
		o.Linger, o.BatchMessages = 50*time.Millisecond, 20
	}
	return o
}

// between is a random duration from lo to hi.
func between(random *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(random.Int64N(int64(hi-lo)+1))
}
