package layout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// quiet is a topic of so many segments in which there is nothing to do: each
// alone is below the threshold, and any two are above half of it.
func quiet(t *testing.T, segments, partitions int) *look {
	ends := make([]smq.Partition, segments)
	for i := range ends {
		ends[i] = smq.Partition(partitions * (i + 1) / segments)
	}
	k := newLook(t, "abcd", ends...)
	k.in.Policy.MaxSegments = segments + 2
	k.set(15*float64(segments)/float64(partitions), nil)
	k.plan()
	return k
}

func TestPlanOfAQuietTopicDoesNotAllocate(t *testing.T) {
	for _, segments := range []int{1, 100} {
		k := quiet(t, segments, 1000)
		if n := testing.AllocsPerRun(100, func() {
			if out, notes := k.plan(); len(out)+len(notes) > 0 {
				t.Fatal(k.tell(out, notes))
			}
		}); n != 0 {
			t.Errorf("%v allocations a look at %d segments", n, segments)
		}
	}
}

func BenchmarkPlanQuiet(b *testing.B) {
	for _, size := range []struct {
		name                 string
		segments, partitions int
	}{{"1segment", 1, 64}, {"64segments", 64, 1024}, {"5000segments", 5000, 100_000}} {
		b.Run(size.name, func(b *testing.B) {
			k := quiet(new(testing.T), size.segments, size.partitions)
			b.ReportAllocs()
			for b.Loop() {
				_, _, k.in.Memory = layout.Plan(k.in)
			}
		})
	}
}

// A segment of 100,000 partitions is split, and 5,000 segments are merged.
func BenchmarkPlanDecides(b *testing.B) {
	bench := func(name string, k *look, before time.Duration) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.in.Memory, k.in.Now = layout.Memory{}, epoch
				_, _, k.in.Memory = layout.Plan(k.in)
				k.in.Now = epoch.Add(before)
				out, _, _ := layout.Plan(k.in)
				if len(out) == 0 {
					b.Fatal("nothing decided")
				}
			}
		})
	}
	loaded := quiet(new(testing.T), 1, 100_000).set(0.001, nil)
	loaded.in.Policy = layout.DefaultPolicy()
	bench("split", loaded, 2*time.Second)
	bench("merge", quiet(new(testing.T), 5000, 100_000).set(0, nil), 20*time.Second)
}

// BenchmarkHistoryAdd adds a version to the history of a topic of many segments, of
// which one has rolled.
func BenchmarkHistoryAdd(b *testing.B) {
	for _, n := range []int32{64, layout.MostSegments} {
		b.Run(fmt.Sprintf("segments=%d", n), func(b *testing.B) {
			owner := layout.Member{Broker: "a", Address: "a:1"}
			first := layout.Layout{Version: 1, Cause: layout.Create, NextSegment: smq.SegmentID(n + 1)}
			for p := range n {
				first.Segments = append(first.Segments, layout.Segment{ID: smq.SegmentID(p + 1), Range: smq.Range{Lo: p, Hi: p + 1}, Owner: owner})
			}
			h, err := layout.History{}.Add(first)
			if err != nil {
				b.Fatal(err)
			}
			next, err := first.Next(layout.Replace(layout.Roll, []layout.Sealed{sealOf(first.Segments[n/2])}, []layout.Member{owner}), layout.Stamp{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := h.Add(next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
