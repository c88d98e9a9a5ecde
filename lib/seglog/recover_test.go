package seglog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// listings counts the files that a store has listed.
type listings struct {
	store.Store
	listed int
}

func (c *listings) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	infos, err := c.Store.List(ctx, dir, after, limit)
	c.listed += len(infos)
	return infos, err
}

// segmentOf is a segment of so many chunks, which its owner has left behind.
func segmentOf(t *testing.T, st store.Store, id Ident, chunks int) *Log {
	t.Helper()
	l := mustOpen(t, config(st, id))
	acks := newCollector()
	for i := 1; i < chunks; i++ {
		appendTo(l, acks, Batch{ID: uint64(i), Partition: int32(i % 3), Bytes: batchOf(t, -1, 0, 0, fmt.Sprint(i))})
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second)
	if s := l.Stats(); s.Chunks != uint64(chunks) {
		t.Fatalf("%d chunks, want %d", s.Chunks, chunks)
	}
	return l
}

// However long a segment is, its end is found, with all that it adds up to,
// without listing it from the beginning.
func TestTheEndOfALongSegment(t *testing.T) {
	for i, chunks := range []int{1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 1000} {
		bubble(t, func(t *testing.T) {
			files := mem.New()
			st, id := &listings{Store: files}, ident(smq.SegmentID(i+1), 0, 3)
			l := segmentOf(t, st, id, chunks)

			r, err := recoverSegment(t.Context(), st, id, Limits{}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			if r.chunks != uint64(chunks) || r.sealed || r.last.Chunk != uint64(chunks-1) || r.state.bytes != l.bytes ||
				!reflect.DeepEqual(r.state.partitions, l.head.partitions) || r.state.position != l.head.position {
				t.Errorf("%d chunks: recovered %+v", chunks, r)
			}
			if _, sealed, err := FindSeal(t.Context(), st, id); sealed || err != nil {
				t.Errorf("%d chunks: sealed %v, %v", chunks, sealed, err)
			}
			st.listed = 0
			seal, err := SealStore(t.Context(), st, id, nil, SealOptions{Broker: "b2"})
			if err != nil {
				t.Fatal(err)
			}
			found, sealed, err := FindSeal(t.Context(), st, id)
			if err != nil || !sealed || !reflect.DeepEqual(found, seal) {
				t.Errorf("%d chunks: found %+v, %v, %v, want %+v", chunks, found, sealed, err, seal)
			}
			if most := 6 * snapshotEvery; st.listed > most {
				t.Errorf("%d chunks: %d files were listed", chunks, st.listed)
			}
			v := verifyClean(t, files, id)
			if seal.Chunk != uint64(chunks) || seal.Bytes != v.Bytes || seal.Messages != uint64(chunks-1) || !reflect.DeepEqual(v.Seal, seal) {
				t.Errorf("%d chunks: sealed as %+v, verified as %+v", chunks, seal, v.Seal)
			}
		})
	}
}

// A chunk that is missing never makes another the last one: it is reported, or
// the segment is sealed behind all that are stored, and verification tells.
func TestAGapBeforeTheEnd(t *testing.T) {
	const chunks = 301
	for _, missing := range []uint64{1, 64, 100, 128, 256, 290, 299} {
		bubble(t, func(t *testing.T) {
			st, id := mem.New(), ident(1, 0, 3)
			segmentOf(t, st, id, chunks)
			if err := st.Remove(t.Context(), id.ChunkPath(missing)); err != nil {
				t.Fatal(err)
			}
			seal, err := SealStore(t.Context(), st, id, nil, SealOptions{Broker: "b2"})
			if missing >= 256 && err == nil {
				t.Errorf("chunk %d is missing behind the last snapshot, and that was not noticed", missing)
			}
			if !errors.Is(err, smq.ErrCorrupt) && (err != nil || seal.Chunk != chunks) {
				t.Errorf("without chunk %d: %+v, %v", missing, seal, err)
			}
			if _, err := Verify(t.Context(), st, id); !errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("without chunk %d: verified, %v", missing, err)
			}
		})
	}
}

// Files that are no chunks change nothing, wherever they are in the order of
// names.
func TestForeignFilesAmongChunks(t *testing.T) {
	for i, test := range []struct {
		chunks  int
		foreign []string
	}{
		{10, []string{"notes.txt"}},
		{63, []string{"notes.txt"}},
		{64, []string{"notes.txt", "00000000000000000063.log~"}},
		{65, []string{"00000000000000000063.log.bak", "notes.txt"}},
		{128, []string{"00000000000000000127.log~"}},
		{200, []string{"0", "00000000000000000200.log.bak", "00000000000000000000-00000000000000000063.log"}},
		{300, many(100, "00000000000000000191.log.%03d", "zz%03d")},
	} {
		bubble(t, func(t *testing.T) {
			st, id := mem.New(), ident(smq.SegmentID(i+1), 0, 3)
			segmentOf(t, st, id, test.chunks)
			for _, name := range test.foreign {
				if err := st.Create(t.Context(), id.Dir()+"/"+name, store.Bytes([]byte("x"))); err != nil {
					t.Fatal(err)
				}
			}
			seal, err := SealStore(t.Context(), st, id, nil, SealOptions{Broker: "b2"})
			if err != nil || seal.Chunk != uint64(test.chunks) {
				t.Fatalf("%d chunks and %.3q: %+v, %v", test.chunks, test.foreign, seal, err)
			}
			if found, sealed, err := FindSeal(t.Context(), st, id); err != nil || !sealed || !reflect.DeepEqual(found, seal) {
				t.Errorf("%d chunks and %.3q: found %+v, %v, %v", test.chunks, test.foreign, found, sealed, err)
			}
			verifyClean(t, st, id)
		})
	}
}

// many are n names of each form.
func many(n int, forms ...string) (names []string) {
	for _, form := range forms {
		for i := range n {
			names = append(names, fmt.Sprintf(form, i))
		}
	}
	return names
}
