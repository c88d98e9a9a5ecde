package seglog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var testTopic = smq.Topic{Namespace: "default", Name: "t"}

const testTopicID = smq.TopicID("0123456789abcdef0123456789abcdef")

func ident(segment smq.SegmentID, lo, hi int32) Ident {
	return Ident{Topic: testTopic, TopicID: testTopicID, Segment: segment, Range: smq.Range{Lo: lo, Hi: hi}}
}

func config(st store.Store, id Ident, preds ...Seal) Config {
	return Config{Store: st, Ident: id, Predecessors: preds, Broker: "b1", Shared: NewShared(SharedOptions{})}
}

func mustOpen(t *testing.T, cfg Config) *Log {
	t.Helper()
	l, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// batchOf builds a batch of the given values, by an idempotent producer when
// pid >= 0.
func batchOf(t testing.TB, pid int64, epoch int16, seq int32, values ...string) []byte {
	t.Helper()
	b := record.NewBuilder(record.None)
	for i, v := range values {
		if err := b.Append(1_000_000+int64(seq)+int64(i), nil, []byte(v), nil); err != nil {
			t.Fatal(err)
		}
	}
	if pid < 0 {
		epoch, seq = -1, -1
	}
	bytes, err := b.Finish(nil, pid, epoch, seq)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// collector is a sink that keeps the acks.
type collector struct {
	mu   sync.Mutex
	acks map[uint64]Ack
	ids  []uint64
}

func newCollector() *collector { return &collector{acks: make(map[uint64]Ack)} }

func (c *collector) Acked(acks []Ack) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range acks {
		if _, twice := c.acks[a.ID]; twice {
			panic(fmt.Sprintf("batch %d is acked twice", a.ID))
		}
		c.acks[a.ID] = a
		c.ids = append(c.ids, a.ID)
	}
}

func (c *collector) get(id uint64) (Ack, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.acks[id]
	return a, ok
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acks)
}

// appendTo reserves memory and appends, as a broker does.
func appendTo(l *Log, c *collector, batches ...Batch) {
	for _, b := range batches {
		if err := l.shared.Reserve(context.Background(), int64(len(b.Bytes))); err != nil {
			panic(err)
		}
	}
	l.Append(batches, c)
}

// readAll drains a source's partitions from their offsets on and returns the
// values by partition.
func readAll(t *testing.T, src Source, from map[int32]int64) map[int32][]string {
	t.Helper()
	c := NewCursor(src)
	for p, o := range from {
		c.Add(p, o)
	}
	out := make(map[int32][]string)
	for {
		d, err := c.Next(t.Context(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range d.Batches {
			out[b.Partition] = append(out[b.Partition], values(t, b.Bytes, from[b.Partition])...)
		}
		if d.AtTail || d.AtEnd {
			return out
		}
	}
}

// values decodes a batch's values from offset from on.
func values(t *testing.T, batch []byte, from int64) []string {
	t.Helper()
	var r record.Reader
	if err := r.Reset(batch); err != nil {
		t.Fatal(err)
	}
	var out []string
	for {
		rec, ok := r.Next()
		if !ok {
			break
		}
		if rec.Offset >= from {
			out = append(out, string(rec.Value))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// verifyClean fails the test when the stored segment is not as it must be.
func verifyClean(t *testing.T, st store.Store, id Ident) Report {
	t.Helper()
	r, err := Verify(t.Context(), st, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 {
		t.Fatalf("verify: %q", r.Problems)
	}
	return r
}

// bubble runs f with a clock of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
