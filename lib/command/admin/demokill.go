package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/local"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// What the demo publishes while a broker dies: so many numbers, so many a
// second, and the death after so many.
const (
	demoNumbers = 100_000
	demoRate    = 25_000
	demoKillAt  = 40_000
)

// acks notes when acks came, to tell how long there were none.
type acks struct {
	mu     sync.Mutex
	last   time.Time
	pause  time.Duration // the longest time without
	failed error
}

func (a *acks) results(r client.Results) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Err != nil && a.failed == nil {
		a.failed = r.Err
	}
	now := time.Now()
	if !a.last.IsZero() {
		a.pause = max(a.pause, now.Sub(a.last))
	}
	a.last = now
}

func (a *acks) longestPause() (time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pause, a.failed
}

// surviveKill publishes numbers and meanwhile kills the broker that takes them.
func (d *demo) surviveKill(ctx context.Context) error {
	if _, err := d.client.CreateTopic(ctx, numberTopic, client.TopicOptions{}); err != nil {
		return err
	}
	var a acks
	p, err := d.client.NewPublisher(ctx, numberTopic, client.PublisherOptions{Results: a.results})
	if err != nil {
		return err
	}
	if err := d.say("publishing %d numbers to topic %s, at %s", demoNumbers, numberTopic, smq.MessageRate(demoRate)); err != nil {
		return err
	}
	limit := rate.NewLimiter(demoRate, demoRate/100)
	for n := range demoNumbers {
		if n == demoKillAt {
			if err := d.killOwner(ctx); err != nil {
				return err
			}
		}
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		if err := p.Publish(ctx, &client.Message{Value: strconv.AppendInt(nil, int64(n), 10), Partition: client.AnyPartition}); err != nil {
			return err
		}
	}
	if err := p.Close(ctx); err != nil {
		return err
	}
	pause, err := a.longestPause()
	if err != nil {
		return err
	}
	if err := d.tellSuccessor(ctx, pause); err != nil {
		return err
	}
	return d.checkNumbers(ctx)
}

// killOwner kills the broker that owns the topic's only segment.
func (d *demo) killOwner(ctx context.Context) error {
	owner, err := d.owner(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(d.brokers, func(c *local.Child) bool { return c.Address == owner.GetOwnerAddress() })
	if i < 0 {
		return fmt.Errorf("%w: no broker of ours owns segment %d", smq.ErrConflict, owner.GetId())
	}
	victim := d.brokers[i]
	d.brokers = slices.Delete(d.brokers, i, i+1)
	victim.Kill()
	return d.say("killed %s, which owned segment %d that the numbers go to, without warning", victim.Name, owner.GetId())
}

// owner is the live segment of the numbers.
func (d *demo) owner(ctx context.Context) (*smqpb.Segment, error) {
	t, err := d.client.DescribeTopic(ctx, numberTopic)
	if err != nil {
		return nil, err
	}
	if segments := t.GetLayout().GetSegments(); len(segments) == 1 {
		return segments[0], nil
	}
	return nil, fmt.Errorf("%w: topic %s has %s", smq.ErrConflict, numberTopic, smq.Count(len(t.GetLayout().GetSegments()), "live segment"))
}

func (d *demo) tellSuccessor(ctx context.Context, pause time.Duration) error {
	owner, err := d.owner(ctx)
	if err != nil {
		return err
	}
	return d.say("the broker that held copies sealed that segment; %s took over with segment %d, and the publisher went on by itself: no acks for at most %v",
		d.nameOf(owner.GetOwnerAddress()), owner.GetId(), pause.Round(time.Millisecond))
}

// nameOf is the name of the broker at an address.
func (d *demo) nameOf(address string) string {
	for _, b := range d.brokers {
		if b.Address == address {
			return b.Name
		}
	}
	return address
}

// checkNumbers reads the numbers back: all of them, each once, in order.
func (d *demo) checkNumbers(ctx context.Context) error {
	next := 0
	err := readTopic(ctx, d.client, numberTopic, func(value []byte) error {
		if string(value) != strconv.Itoa(next) {
			return fmt.Errorf("%w: number %s where %d should be", smq.ErrCorrupt, value, next)
		}
		next++
		return nil
	})
	if err != nil {
		return err
	}
	if next != demoNumbers {
		return fmt.Errorf("%w: %d of %d numbers are there", smq.ErrCorrupt, next, demoNumbers)
	}
	return d.say("read the numbers back: all %d, each once, in order", next)
}

// readTopic calls f with the value of every message that a topic holds now.
func readTopic(ctx context.Context, c *client.Client, topic smq.Topic, f func(value []byte) error) error {
	ends, err := c.Offsets(ctx, topic, nil, smqpb.OffsetsRequest_END, time.Time{})
	if err != nil {
		return err
	}
	left := map[int32]int64{}
	var partitions []int32
	for _, o := range ends {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
			partitions = append(partitions, o.Partition)
		}
	}
	if len(partitions) == 0 {
		return nil
	}
	s, err := c.NewSubscriber(ctx, topic, client.SubscriberOptions{Partitions: partitions, Start: client.Earliest()})
	if err != nil {
		return err
	}
	defer s.Close() // only read
	for len(left) > 0 {
		fetch, err := s.Poll(ctx)
		if err != nil {
			return err
		}
		for {
			r, ok := fetch.Next()
			if !ok {
				break
			}
			if err := f(r.Value); err != nil {
				return err
			}
		}
		if fetch.Err() != nil {
			return fetch.Err()
		}
		if fetch.NextOffset >= left[fetch.Partition] {
			delete(left, fetch.Partition)
		}
	}
	return nil
}
