package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var topicT = smq.Topic{Namespace: smq.DefaultNamespace, Name: "t"}

// within is a context for something that should take no time to speak of.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect makes a client, and the topic.
func (b *bed) connect(partitions int32) *client.Client {
	b.t.Helper()
	c, err := client.Connect(within(b.t), client.Config{Masters: []string{masterAddress}, Dial: rpc.DialOptions{Dialer: b.dial}, Logger: b.logger()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() }) // what is left is what the test wants left
	if partitions > 0 {
		b.meet()
		if _, err := c.CreateTopic(within(b.t), topicT, client.TopicOptions{Partitions: partitions, Replicas: b.replicas}); err != nil {
			b.t.Fatal(err)
		}
	}
	return c
}

// meet waits until the leader knows of all brokers that run.
func (b *bed) meet() {
	b.t.Helper()
	b.mu.Lock()
	running := len(b.brokers)
	b.mu.Unlock()
	err := b.cluster().Leader(within(b.t), func(ctx context.Context, l smqpb.LeaderClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := l.Watch(ctx, &smqpb.WatchRequest{Brokers: true})
		for known := 0; err == nil && known < running; {
			var u *smqpb.WatchUpdate
			if u, err = stream.Recv(); u.GetCluster() != nil {
				known = len(u.GetCluster().GetBrokers())
			}
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// verify reads the topic whole from the store.
func (b *bed) verify() catalog.Verification {
	b.t.Helper()
	v, err := catalog.Verify(b.t.Context(), b.st, topicT, func(seglog.Report) {})
	if err != nil || len(v.Problems) > 0 {
		b.t.Fatalf("verify: %v, %q", err, v.Problems)
	}
	return v
}

// lookup asks the leader.
func (b *bed) lookup(req *smqpb.LookupRequest) *smqpb.LookupResponse {
	b.t.Helper()
	var resp *smqpb.LookupResponse
	err := b.cluster().Leader(within(b.t), func(ctx context.Context, l smqpb.LeaderClient) (err error) {
		resp, err = l.Lookup(ctx, req)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

// owner is the address of the broker that owns partition p, which gets one if
// it has none.
func (b *bed) owner(p smq.Partition) string {
	b.t.Helper()
	resp := b.lookup(&smqpb.LookupRequest{Topic: topicT.String(), Assign: true, Partitions: []int32{p}})
	for _, s := range resp.GetLayout().GetSegments() {
		if s.GetLo() <= p && p < s.GetHi() {
			return s.GetOwnerAddress()
		}
	}
	return ""
}

// reader reads a topic from its beginning.
type reader struct {
	t   testing.TB
	sub *client.Subscriber
	got map[int32][]string
	n   int
}

func (b *bed) read(c *client.Client) *reader {
	b.t.Helper()
	sub, err := c.NewSubscriber(within(b.t), topicT, client.SubscriberOptions{Start: client.Earliest()})
	if err != nil {
		b.t.Fatal(err)
	}
	return &reader{t: b.t, sub: sub, got: make(map[int32][]string)}
}

// until reads until there are n messages, in order and without gap.
func (r *reader) until(n int) {
	r.t.Helper()
	ctx := within(r.t)
	for r.n < n {
		f, err := r.sub.Poll(ctx)
		if err != nil {
			r.t.Fatalf("after %d of %d messages: %v", r.n, n, err)
		}
		for rec, ok := f.Next(); ok; rec, ok = f.Next() {
			if want := int64(len(r.got[f.Partition])); rec.Offset != want {
				r.t.Fatalf("partition %d: offset %d came, %d was due", f.Partition, rec.Offset, want)
			}
			r.got[f.Partition] = append(r.got[f.Partition], string(rec.Value))
			r.n++
		}
		if f.Err() != nil {
			r.t.Fatal(f.Err())
		}
	}
}

// writer publishes numbered messages to each partition in turn.
type writer struct {
	t          testing.TB
	pub        *client.Publisher
	partitions int32
	padding    int // bytes of each key
	n          int
}

func (b *bed) write(c *client.Client, partitions int32) *writer {
	b.t.Helper()
	pub, err := c.NewPublisher(within(b.t), topicT, client.PublisherOptions{Linger: time.Millisecond, Acks: client.AckStored})
	if err != nil {
		b.t.Fatal(err)
	}
	return &writer{t: b.t, pub: pub, partitions: partitions}
}

func (w *writer) send(n int) {
	w.t.Helper()
	ctx := within(w.t)
	for range n {
		p := int32(w.n) % w.partitions
		if err := w.pub.Publish(ctx, &client.Message{Key: make([]byte, w.padding), Value: []byte(value(p, w.n/int(w.partitions))), Partition: p}); err != nil {
			w.t.Fatal(err)
		}
		w.n++
	}
}

// flush waits until everything sent is acked.
func (w *writer) flush() {
	w.t.Helper()
	if err := w.pub.Flush(within(w.t)); err != nil {
		w.t.Fatal(err)
	}
}

func value(p int32, i int) string { return fmt.Sprintf("message %d of partition %d", i, p) }

// check compares what was read with what was written.
func (r *reader) check(w *writer) {
	r.t.Helper()
	r.until(w.n)
	for p, values := range r.got {
		for i, v := range values {
			if v != value(p, i) {
				r.t.Fatalf("partition %d, offset %d is %q", p, i, v)
			}
		}
	}
	if r.n != w.n {
		r.t.Fatalf("%d messages written, %d read", w.n, r.n)
	}
}
