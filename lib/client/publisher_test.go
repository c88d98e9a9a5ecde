package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestPublishSync(t *testing.T) {
	withCluster(t, 2, 4, func(t *testing.T, f *fakeCluster, c *Client) {
		p := newPublisher(t, c, PublisherOptions{Linger: time.Hour})
		begun := time.Now()
		for i := range 10 {
			partition, offset, err := p.PublishSync(t.Context(), &Message{Value: fmt.Appendf(nil, "%d", i), Partition: 2})
			if err != nil || partition != 2 || offset != int64(i) {
				t.Fatalf("message %d: partition %d, offset %d, error %v", i, partition, offset, err)
			}
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("lingered for %v", waited)
		}
		mustClose(t, p)
		wantValues(t, f, 2, numbers(0, 10))
	})
}

func TestPublishManyToManyPartitions(t *testing.T) {
	for _, codec := range codecs {
		t.Run(codec.String(), func(t *testing.T) {
			withCluster(t, 3, 6, func(t *testing.T, f *fakeCluster, c *Client) {
				publishManyToManyPartitions(t, f, c, codec)
			})
		})
	}
	t.Run(record.Zstd.String(), func(t *testing.T) {
		f := newFakeCluster(t, 3, 6)
		defer f.close()
		c := f.connect()
		defer c.Close()
		publishManyToManyPartitions(t, f, c, record.Zstd)
	})
}

func publishManyToManyPartitions(t *testing.T, f *fakeCluster, c *Client, codec record.Codec) {
	f.replace(0, 6, 0, 2, 4) // three owners
	r := newTold()
	p := newPublisher(t, c, PublisherOptions{Codec: codec, BatchBytes: 1000, Results: r.take})
	const n = 2000
	for i := range n {
		publish(t, p, int32(i%6), i, i+1)
	}
	mustClose(t, p)
	for part := range int32(6) {
		var want []string
		for i := int(part); i < n; i += 6 {
			want = append(want, fmt.Sprint(i))
			got, ok := r.get(uint64(i))
			if !ok || got.err != nil || got.partition != part || got.offset != int64(i/6) {
				t.Fatalf("message %d: %+v", i, got)
			}
		}
		wantValues(t, f, part, want)
	}
	if len(r.repeats) > 0 || r.count() != n {
		t.Errorf("told of %d messages, %d twice", r.count(), len(r.repeats))
	}
}

func TestMessagesGoWhereTheirKeySays(t *testing.T) {
	for _, source := range []string{"key", "header:user", "json:user.id"} {
		t.Run(source, func(t *testing.T) {
			withCluster(t, 1, 16, func(t *testing.T, f *fakeCluster, c *Client) {
				f.config.Key = source
				p := newPublisher(t, c, PublisherOptions{})
				for i := range 20 {
					id := fmt.Appendf(nil, "u%d", i)
					m := Message{Partition: AnyPartition, Value: []byte("v")}
					switch source {
					case "key":
						m.Key = id
					case "header:user":
						m.Headers = []record.RecordHeader{{Key: []byte("user"), Value: id}}
					default:
						m.Value = fmt.Appendf(nil, `{"user":{"id":%q}}`, id)
					}
					partition, _, err := p.PublishSync(t.Context(), &m)
					if want := record.Partition(id, 16); err != nil || partition != want {
						t.Fatalf("%s went to %d, want %d (%v)", id, partition, want, err)
					}
				}
			})
		})
	}
}

func TestMessagesWithoutAKey(t *testing.T) {
	publishSome := func(t *testing.T, f *fakeCluster, c *Client, spread bool) (used int) {
		p := newPublisher(t, c, PublisherOptions{Spread: spread, BatchMessages: 10})
		publish(t, p, AnyPartition, 0, 160)
		mustClose(t, p)
		total := 0
		for part := range int32(16) {
			if n := len(f.values(part)); n > 0 {
				used++
				total += n
			}
		}
		if total != 160 {
			t.Errorf("%d messages arrived", total)
		}
		return used
	}
	withCluster(t, 1, 16, func(t *testing.T, f *fakeCluster, c *Client) {
		if used := publishSome(t, f, c, false); used != 1 {
			t.Errorf("one publisher's messages went to %d partitions", used)
		}
	})
	withCluster(t, 1, 16, func(t *testing.T, f *fakeCluster, c *Client) {
		if used := publishSome(t, f, c, true); used != 16 {
			t.Errorf("spread messages went to %d partitions", used)
		}
	})
}

func TestMessagesThatAreRefusedAtOnce(t *testing.T) {
	withCluster(t, 1, 4, func(t *testing.T, f *fakeCluster, c *Client) {
		p := newPublisher(t, c, PublisherOptions{})
		for _, partition := range []int32{-2, 4, 1 << 30} {
			if err := p.Publish(t.Context(), &Message{Partition: partition}); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("partition %d: %v", partition, err)
			}
		}
		large := &Message{Value: make([]byte, smq.MaxMessageSize+1)}
		if err := p.Publish(t.Context(), large); !errors.Is(err, smq.ErrTooLarge) {
			t.Errorf("too large a message: %v", err)
		}
		many := &Message{Headers: make([]record.RecordHeader, record.MaxHeaders+1)}
		if err := p.Publish(t.Context(), many); !errors.Is(err, smq.ErrTooLarge) {
			t.Errorf("too many headers: %v", err)
		}
		if _, err := c.NewPublisher(t.Context(), smq.Topic{Namespace: "default", Name: "nope"}, PublisherOptions{}); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("no such topic: %v", err)
		}
		for _, o := range []PublisherOptions{{BatchBytes: -1}, {BatchBytes: smq.MaxBatchSize + 1}, {BatchMessages: -1}, {Buffer: -1}, {Codec: 9}, {Acks: 9}} {
			if _, err := c.NewPublisher(t.Context(), fakeTopic, o); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		mustClose(t, p)
	})
}

// The largest message travels, in a batch by itself, past any batch size.
func TestLargestMessage(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		p := newPublisher(t, c, PublisherOptions{Buffer: 1 << 20})
		value := bytes.Repeat([]byte("x"), smq.MaxMessageSize)
		for i := range 2 {
			if _, offset, err := p.PublishSync(t.Context(), &Message{Value: value}); err != nil || offset != int64(i) {
				t.Fatalf("offset %d, %v", offset, err)
			}
		}
		mustClose(t, p)
	})
}

func TestLinger(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Linger: 100 * time.Millisecond, Results: r.take})
		publish(t, p, 0, 0, 1)
		pass(99 * time.Millisecond)
		publish(t, p, 0, 1, 2)
		synctest.Wait()
		if n := r.count(); n != 0 {
			t.Fatalf("%d messages went early", n)
		}
		pass(time.Millisecond)
		synctest.Wait()
		r.wantAcked(t, 0, 0, 2, 0)
		if got := len(f.logs[0].batches); got != 1 {
			t.Errorf("%d batches", got)
		}
		mustClose(t, p)

		now := newPublisher(t, c, PublisherOptions{Linger: NoLinger})
		begun := time.Now()
		publish(t, now, 0, 2, 3)
		mustClose(t, now)
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited %v without linger", waited)
		}
	})
}

// A partition whose pipeline is full gathers what comes into one batch instead
// of queueing many small ones.
func TestInFlightLimit(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		var mu sync.Mutex
		arrived := 0
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict {
			mu.Lock()
			defer mu.Unlock()
			arrived++
			if arrived == 1 {
				return verdict{delay: time.Minute}
			}
			return verdict{}
		}
		p := newPublisher(t, c, PublisherOptions{Linger: NoLinger, DeliveryTimeout: Forever})
		for i := range 100 {
			publish(t, p, 0, i, i+1)
			synctest.Wait()
		}
		p.mu.Lock()
		part := p.parts.get(0)
		if part.sent != maxInFlight || len(part.queue) != maxInFlight || part.open == nil {
			t.Errorf("%d in flight, %d queued, open: %v", part.sent, len(part.queue), part.open != nil)
		}
		p.mu.Unlock()
		mustClose(t, p)
		wantValues(t, f, 0, numbers(0, 100))
		if got := len(f.logs[0].batches); got != 6 {
			t.Errorf("%d batches", got)
		}
	})
}

// One message to each of very many partitions: few goroutines, few frames.
func TestWideTopic(t *testing.T) {
	const n = 20_000
	withCluster(t, 1, smq.MaxPartitions, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take, Linger: time.Second})
		for i := range n {
			publish(t, p, int32(i*50), i, i+1)
		}
		mustClose(t, p)
		for i := range n {
			if got, ok := r.get(uint64(i)); !ok || got.err != nil || got.partition != int32(i*50) {
				t.Fatalf("message %d: %+v", i, got)
			}
		}
		frames := f.brokers[0].frames
		if len(frames) > 20 || slices.Max(frames) < 1000 {
			t.Errorf("%d batches went in %d frames, at most %d in one", n, len(frames), slices.Max(frames))
		}
	})
}

func TestConcurrentPublishers(t *testing.T) {
	withCluster(t, 2, 4, func(t *testing.T, f *fakeCluster, c *Client) {
		f.replace(0, 4, 0, 2)
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take, BatchBytes: 2000, Buffer: 20_000, Codec: record.LZ4})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 500 {
					n := g*500 + i
					if err := p.Publish(context.Background(), &Message{Value: fmt.Appendf(nil, "%d", n), Partition: int32(g % 4), Token: uint64(n)}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		mustClose(t, p)
		if r.count() != 4000 || len(r.repeats) > 0 {
			t.Errorf("told of %d messages, %d twice", r.count(), len(r.repeats))
		}
		for part := range int32(4) {
			if n := len(f.values(part)); n != 1000 {
				t.Errorf("partition %d holds %d messages", part, n)
			}
		}
	})
}
