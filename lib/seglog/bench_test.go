package seglog

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// counting is a sink that counts acks down.
type counting struct{ sync.WaitGroup }

func (c *counting) Acked(acks []Ack) {
	for _, a := range acks {
		if a.Err != nil {
			panic(a.Err)
		}
		c.Done()
	}
}

// benchBatch is a batch of n messages of the given size.
func benchBatch(b *testing.B, n, size int) []byte {
	builder := record.NewBuilder(record.None)
	value := bytes.Repeat([]byte("v"), size)
	for range n {
		if err := builder.Append(0, nil, value, nil); err != nil {
			b.Fatal(err)
		}
	}
	batch, err := builder.Finish(nil, -1, -1, -1)
	if err != nil {
		b.Fatal(err)
	}
	return batch
}

// BenchmarkAppend brings batches through a log into a store in memory. An op
// is a batch; allocations are what the log and the store make of it.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ messages, size int }{{1, 100}, {100, 100}, {1000, 100}, {1000, 1000}} {
		for _, partitions := range []int32{1, 64} {
			b.Run(fmt.Sprintf("%dx%dB/partitions=%d", c.messages, c.size, partitions), func(b *testing.B) {
				benchmarkAppend(b, benchBatch(b, c.messages, c.size), partitions)
			})
		}
	}
}

func benchmarkAppend(b *testing.B, batch []byte, partitions int32) {
	cfg := config(mem.New(), ident(1, 0, partitions))
	l, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	const together = 16
	var sink counting
	batches := make([]Batch, 0, together)
	for i := 0; b.Loop(); i++ {
		if err := cfg.Shared.Reserve(context.Background(), int64(len(batch))); err != nil {
			b.Fatal(err)
		}
		sink.Add(1)
		batches = append(batches, Batch{Partition: smq.Partition(i) % partitions, Bytes: bytes.Clone(batch)})
		if len(batches) == together {
			l.Append(batches, &sink)
			batches = batches[:0]
		}
	}
	l.Append(batches, &sink)
	sink.Wait()
}

// BenchmarkRead reads a segment of 64 MiB from a store in memory, with and
// without the chunks in the cache. An op is a batch.
func BenchmarkRead(b *testing.B) {
	batch := benchBatch(b, 1000, 100)
	cfg := config(mem.New(), ident(1, 0, 64))
	l, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var sink counting
	for i := range 64 << 20 / len(batch) {
		if err := cfg.Shared.Reserve(b.Context(), int64(len(batch))); err != nil {
			b.Fatal(err)
		}
		sink.Add(1)
		l.Append([]Batch{{Partition: smq.Partition(i) % 64, Bytes: bytes.Clone(batch)}}, &sink)
	}
	sink.Wait()
	if _, err := l.Seal(b.Context()); err != nil {
		b.Fatal(err)
	}
	for name, cache := range map[string]int64{"cached": 256 << 20, "stored": 1} {
		b.Run(name, func(b *testing.B) {
			s, err := OpenSealed(b.Context(), cfg.Store, l.Ident(), NewShared(SharedOptions{Cache: cache}))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			var c *Cursor
			left := 0
			for b.Loop() {
				for left == 0 {
					if c == nil {
						c = NewCursor(s)
						for p := range int32(64) {
							c.Add(p, 0)
						}
					}
					d, err := c.Next(b.Context(), 1<<20)
					if err != nil {
						b.Fatal(err)
					}
					if left = len(d.Batches); d.AtEnd {
						c = nil
					}
				}
				left--
			}
		})
	}
}
