package seglog

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// flipping is a store in which one byte of a file has changed.
type flipping struct {
	store.Store
	path string
	at   int64
}

func (s flipping) ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error) {
	n, err := s.Store.ReadAt(ctx, path, p, off)
	if path == s.path && s.at >= off && s.at < off+int64(n) {
		p[s.at-off] ^= 1
	}
	return n, err
}

// Damage to one partition's batches in a chunk concerns nobody who reads others,
// be it by the same cursor; and what lies before it is delivered.
func TestDamageConcernsOnePartition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		l := mustOpen(t, config(st, ident(1, 0, 3)))
		acks := newCollector()
		for round := range int32(3) {
			var together []Batch // so that they share a chunk
			for p := range int32(3) {
				together = append(together, Batch{ID: uint64(3*round + p), Partition: p, Bytes: batchOf(t, 7, 0, round, "value")})
			}
			appendTo(l, acks, together...)
			time.Sleep(time.Second)
		}
		if _, err := l.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		f, err := l.footer(t.Context(), 2, l.size(2))
		if err != nil || len(f.Blocks) != 3 {
			t.Fatalf("chunk 2: %v, %v", f, err)
		}
		for _, damaged := range f.Blocks {
			damage := flipping{Store: st, path: l.id.ChunkPath(2), at: int64(damaged.Start + damaged.Length - 1)}
			s, err := OpenSealed(t.Context(), damage, l.id, NewShared(SharedOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			got, failed := readDamaged(t, s)
			if !slices.Equal(failed, []smq.Partition{damaged.Partition}) {
				t.Errorf("partition %d is damaged: %v fail", damaged.Partition, failed)
			}
			for p := range int32(3) {
				want := 3
				if p == damaged.Partition {
					want = 1
				}
				if got[p] != want {
					t.Errorf("partition %d is damaged: %d batches of partition %d are read, not %d", damaged.Partition, got[p], p, want)
				}
			}
		}
	})
}

// readDamaged reads three partitions, and gives up those that are damaged. It
// returns how many batches there were of each.
func readDamaged(t *testing.T, src Source) (batches map[smq.Partition]int, failed []smq.Partition) {
	t.Helper()
	c := NewCursor(src)
	for p := range int32(3) {
		c.Add(p, 0)
	}
	batches = make(map[smq.Partition]int)
	for {
		d, err := c.Next(t.Context(), 1<<20)
		for _, b := range d.Batches {
			batches[b.Partition]++
		}
		var damage *DamageError
		switch {
		case errors.As(err, &damage) && errors.Is(err, smq.ErrCorrupt) && damage.Offset == 1:
			failed = append(failed, damage.Partition)
			c.Remove(damage.Partition)
		case err != nil:
			t.Fatal(err)
		case d.AtEnd:
			return batches, failed
		}
	}
}

// A chunk and the layout do not agree on the segment's partitions, as when files of
// different times are put together: that is damage, whoever reads it.
func TestAChunkOfOtherPartitions(t *testing.T) {
	st := mem.New()
	l := mustOpen(t, config(st, ident(1, 0, 4)))
	appendTo(l, newCollector(), Batch{ID: 1, Partition: 3, Bytes: batchOf(t, 7, 0, 0, "a")})
	if _, err := l.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := ident(1, 0, 2)
	if _, err := recoverSegment(t.Context(), st, id, Limits{}.withDefaults()); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("recovery: %v", err)
	}
	if _, err := OpenSealed(t.Context(), st, id, NewShared(SharedOptions{})); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("reading: %v", err)
	}
	if r, err := Verify(t.Context(), st, id); err != nil || len(r.Problems) == 0 {
		t.Errorf("verification: %v, %v", r.Problems, err)
	}
	if _, err := Open(t.Context(), config(st, ident(2, 0, 2), Seal{Segment: 1, Range: id.Range, Chunk: 1})); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("succession: %v", err)
	}
}
