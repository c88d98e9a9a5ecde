package seglog

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// What a log was offered counts from the moment it is accepted, once.
func TestTraffic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := mustOpen(t, config(mem.New(), ident(1, 10, 20)))
		acks := newCollector()
		one, two := batchOf(t, 7, 0, 0, "a", "b"), batchOf(t, 7, 0, 2, "c")
		size := uint64(len(one))
		again := append([]byte(nil), one...)
		broken := append([]byte(nil), one...)
		broken[len(broken)-1]++
		appendTo(l, acks,
			Batch{ID: 1, Partition: 12, Bytes: one}, Batch{ID: 2, Partition: 12, Bytes: two},
			Batch{ID: 3, Partition: 19, Bytes: batchOf(t, -1, 0, 0, "x")},
			Batch{ID: 4, Partition: 12, Bytes: again},                     // a repeat
			Batch{ID: 5, Partition: 12, Bytes: batchOf(t, 7, 0, 9, "x")},  // a gap
			Batch{ID: 6, Partition: 11, Bytes: broken},                    // damaged
			Batch{ID: 7, Partition: 20, Bytes: batchOf(t, -1, 0, 0, "x")}) // elsewhere
		got := l.TakeTraffic(nil)
		if len(got) != 2 || got[0].Partition != 12 || got[0].Messages != 3 || got[0].Bytes != size+uint64(len(two)) || got[1].Partition != 19 || got[1].Messages != 1 {
			t.Fatalf("taken %+v", got)
		}
		if _, err := l.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := l.TakeTraffic(got); len(got) != 0 {
			t.Fatalf("storing it counts %+v", got)
		}
	})
}

// Whatever is counted and taken in whatever order, nothing is lost nor counted
// twice.
func TestTrafficAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	l := &Log{traffic: newTraffic(smq.Range{Lo: 5, Hi: 45})}
	want, got := make(map[smq.Partition]Traffic), make(map[smq.Partition]Traffic)
	add := func(m map[smq.Partition]Traffic, t Traffic) {
		t.Messages += m[t.Partition].Messages
		t.Bytes += m[t.Partition].Bytes
		m[t.Partition] = t
	}
	var spare []Traffic
	for range 1000 {
		for range r.IntN(30) {
			one := Traffic{Partition: 5 + r.Int32N(40), Messages: 1 + r.Uint64N(9), Bytes: r.Uint64N(1000)}
			l.traffic.count(one.Partition, int32(one.Messages), int(one.Bytes))
			add(want, one)
		}
		spare = l.TakeTraffic(spare)
		seen := make(map[smq.Partition]bool)
		for _, one := range spare {
			if seen[one.Partition] {
				t.Fatalf("partition %d is listed twice", one.Partition)
			}
			seen[one.Partition] = true
			add(got, one)
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}

// BenchmarkTraffic counts a batch in one of many partitions.
func BenchmarkTraffic(b *testing.B) {
	const partitions = 100_000
	l := &Log{traffic: newTraffic(smq.Range{Lo: 0, Hi: partitions})}
	spare := make([]Traffic, 0, partitions)
	b.Run("count", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%1000 == 0 {
				spare = l.TakeTraffic(spare)
			}
			l.traffic.count(smq.Partition(i%1000), 10, 1000)
		}
	})
	b.Run("take idle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			spare = l.TakeTraffic(spare)
		}
	})
}
