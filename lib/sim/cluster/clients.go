package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/sim"
	"github.com/seaweedmq/smq/lib/smq"
)

// isNotStored reports whether a publisher's error says that the message is
// certainly not in the log.
func isNotStored(err error) bool { return errors.Is(err, client.ErrNotStored) }

// connect makes a client with a name in the network.
func (l *life) connect(ctx context.Context, name string) (*client.Client, error) {
	return client.Connect(ctx, client.Config{
		Masters: []string{masterAddress}, Dial: rpc.DialOptions{Dialer: l.net.dialer(name)}, Logger: l.logger, Clock: l.clock(),
	})
}

// publish publishes all of one publisher's messages, over the time of trouble.
func (l *life) publish(ctx context.Context, c *client.Client, name string) error {
	d := sim.NewDice(l.cfg.seed, "publisher "+name)
	timeout := client.Forever
	if l.cfg.giveUps == 1 {
		timeout = time.Second + d.UpTo(5*time.Second)
	}
	options := client.PublisherOptions{
		Acks: client.AckReplicated, BatchMessages: 1 + d.IntN(20), Linger: 1 + d.UpTo(50*time.Millisecond), Buffer: int64(10_000 + d.IntN(1_000_000)),
		DeliveryTimeout: timeout, Results: func(r client.Results) { l.told(name, r) },
	}
	p, err := tryTo(ctx, func() (*client.Publisher, error) { return c.NewPublisher(ctx, l.topic, options) })
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	pace := 2 * trouble / time.Duration(l.cfg.messages)
	for i := range l.cfg.messages {
		partition := smq.Partition(d.IntN(l.cfg.partitions))
		value := fmt.Sprintf("%s/%d/%d", name, partition, i)
		token := l.messages.publish(name, partition, value)
		if err := p.Publish(ctx, &client.Message{Value: []byte(value), Partition: partition, Token: token}); err != nil {
			return fmt.Errorf("%s: publish: %w", name, err)
		}
		if d.Percent(30) {
			pause(ctx, d.UpTo(3*pace))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		return sim.Violated("answers", "%s does not come to an end: %v", name, err)
	}
	return nil
}

// tryTo tries again what may fail while the store does.
func tryTo[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err == nil || !pause(ctx, 100*time.Millisecond) {
			return v, err
		}
	}
}

// told notes results.
func (l *life) told(name string, r client.Results) {
	l.messages.tell(name, r)
	switch {
	case r.Err == nil:
		l.count("acked: " + r.Level.String())
	case isNotStored(r.Err):
		l.count("not stored")
		l.note("%s: %d messages of partition %d are not stored: %v", name, len(r.Tokens), r.Partition, r.Err)
	default:
		l.count("unknown")
		l.note("%s: %d messages of partition %d are unknown: %v", name, len(r.Tokens), r.Partition, r.Err)
	}
}

// reading is how far a subscriber has come.
type reading struct {
	name string
	mu   sync.Mutex
	next map[smq.Partition]smq.Offset
}

func (r *reading) at(p smq.Partition) smq.Offset {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next[p]
}

// subscribe reads the topic from its beginning until the context ends.
func (l *life) subscribe(ctx context.Context, c *client.Client, r *reading) error {
	options := client.SubscriberOptions{Start: client.Earliest(), Buffer: int64(1000 << l.dice.IntN(8))}
	s, err := tryTo(ctx, func() (*client.Subscriber, error) { return c.NewSubscriber(ctx, l.topic, options) })
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	defer s.Close()
	for {
		f, err := s.Poll(ctx)
		var broken *client.PartitionError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &broken):
			return sim.Violated("P4", "%s: %v", r.name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if err := r.take(l, f); err != nil {
			return err
		}
	}
}

// take notes what was given, which must go on where the last fetch ended.
func (r *reading) take(l *life, f *client.Fetch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for rec, ok := f.Next(); ok; rec, ok = f.Next() {
		if next := r.next[f.Partition]; rec.Offset != next {
			return sim.Violated("P4", "%s is given offset %d of partition %d, next is %d", r.name, rec.Offset, f.Partition, next)
		}
		l.messages.give(r.name, f.Partition, rec)
		r.next[f.Partition] = rec.Offset + 1
	}
	if err := f.Err(); err != nil {
		return sim.Violated("P4", "%s: %v", r.name, err)
	}
	return nil
}
