package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/record"
)

// codecs are those that may be used in a bubble. The encoders of zstd have
// channels and are pooled, and a channel belongs to one bubble.
var codecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4}

// withCluster runs a test against a fake cluster, in a bubble whose time moves
// when all are waiting.
func withCluster(t *testing.T, brokers int, partitions int32, test func(t *testing.T, f *fakeCluster, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(t, brokers, partitions)
		defer f.close()
		c := f.connect()
		defer c.Close()
		test(t, f, c)
	})
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

func newPublisher(t *testing.T, c *Client, o PublisherOptions) *Publisher {
	t.Helper()
	p, err := c.NewPublisher(t.Context(), fakeTopic, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told is what a publisher was told of each message, by its token.
type told struct {
	mu      sync.Mutex
	results map[uint64]toldResult
	repeats []uint64
	order   map[int32][]uint64 // acked or not, by partition
}

type toldResult struct {
	partition int32
	offset    int64
	level     AckLevel
	err       error
}

func newTold() *told {
	return &told{results: make(map[uint64]toldResult), order: make(map[int32][]uint64)}
}

func (r *told) take(res Results) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, token := range res.Tokens {
		if _, ok := r.results[token]; ok {
			r.repeats = append(r.repeats, token)
		}
		offset := res.BaseOffset
		if offset >= 0 {
			offset += int64(i)
		}
		r.results[token] = toldResult{res.Partition, offset, res.Level, res.Err}
		r.order[res.Partition] = append(r.order[res.Partition], token)
	}
}

func (r *told) get(token uint64) (toldResult, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	res, ok := r.results[token]
	return res, ok
}

func (r *told) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.results)
}

// publish publishes messages from, from+1, …, to-1 to a partition; the value
// and the token are the number.
func publish(t *testing.T, p *Publisher, partition int32, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := p.Publish(t.Context(), &Message{Value: fmt.Appendf(nil, "%d", i), Partition: partition, Token: uint64(i)}); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

// numbers are the values that publish gives.
func numbers(from, to int) []string {
	var s []string
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprint(i))
	}
	return s
}

func mustFlush(t *testing.T, p *Publisher) {
	t.Helper()
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t *testing.T, p *Publisher) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func wantValues(t *testing.T, f *fakeCluster, partition int32, want []string) {
	t.Helper()
	if got := f.values(partition); !slices.Equal(got, want) {
		t.Errorf("partition %d holds %d messages, want %d: %.200v", partition, len(got), len(want), got)
	}
}

// wantAcked checks that messages were acked once, in order, at offsets from
// base on.
func (r *told) wantAcked(t *testing.T, partition int32, from, to int, base int64) {
	t.Helper()
	for i := from; i < to; i++ {
		got, ok := r.get(uint64(i))
		if want := (toldResult{partition: partition, offset: base + int64(i-from), level: AckStored}); !ok || got != want {
			t.Errorf("message %d: told %+v, want %+v", i, got, want)
			return
		}
	}
	if len(r.repeats) > 0 {
		t.Errorf("told twice of %v", r.repeats)
	}
}

// wantFailed checks that messages failed in a way.
func (r *told) wantFailed(t *testing.T, from, to int, kind error) {
	t.Helper()
	other := ErrUnknown
	if kind == ErrUnknown {
		other = ErrNotStored
	}
	for i := from; i < to; i++ {
		got, ok := r.get(uint64(i))
		if !ok || !errors.Is(got.err, kind) || errors.Is(got.err, other) || got.offset != -1 {
			t.Errorf("message %d: told %+v, want an error: %v", i, got, kind)
			return
		}
	}
}
