package seglog

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seaweedmq/smq/lib/store/mem"
)

// Readers at the tail are served from memory, those of a segment that this process
// has not written from the store at first.
func TestReadsOfTheCacheAreCounted(t *testing.T) {
	st := mem.New()
	registry := prometheus.NewRegistry()
	counts := func() [2]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := make(map[string]float64)
		for _, f := range families {
			values[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		}
		return [2]float64{values["smq_chunk_cache_hits_total"], values["smq_chunk_cache_misses_total"]}
	}
	cfg := config(st, ident(1, 0, 4))
	cfg.Shared = NewShared(SharedOptions{Registerer: registry})
	l := mustOpen(t, cfg)
	appendTo(l, newCollector(), Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")}, Batch{ID: 2, Partition: 3, Bytes: batchOf(t, 7, 0, 0, "b")})
	if _, err := l.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := map[int32]int64{0: 0, 3: 0}
	readAll(t, l, from)
	if c := counts(); c != [2]float64{2, 0} {
		t.Errorf("two partitions at the tail: %v hits and misses", c)
	}
	registry = prometheus.NewRegistry()
	cfg.Shared = NewShared(SharedOptions{Registerer: registry})
	for _, want := range [][2]float64{{1, 1}, {3, 1}} { // one read brings the whole chunk
		s, err := OpenSealed(t.Context(), st, cfg.Ident, cfg.Shared)
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, s, from); counts() != want {
			t.Errorf("from the store: %v hits and misses, want %v", counts(), want)
		}
	}
}
