package seglog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// scripted is a store whose creates go as the test says.
type scripted struct {
	store.Store
	mu     sync.Mutex
	create func(path string, apply func() error) error // nil: as usual
	inline int64
}

func (s *scripted) Create(ctx context.Context, path string, content []store.Part) error {
	s.mu.Lock()
	f := s.create
	s.mu.Unlock()
	apply := func() error { return s.Store.Create(ctx, path, content) }
	if f == nil {
		return apply()
	}
	return f(path, apply)
}

func (s *scripted) Limits() store.Limits {
	l := s.Store.Limits()
	if s.inline != 0 {
		l.Inline = s.inline
	}
	return l
}

func (s *scripted) script(f func(path string, apply func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.create = f
}

func TestAmbiguousCreates(t *testing.T) {
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("applied=%v", applied), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				st := &scripted{Store: mem.New()}
				var left atomic.Int32
				left.Store(3)
				ambiguous := func(path string, apply func() error) error {
					if left.Load() == 0 {
						return apply()
					}
					left.Add(-1)
					if applied {
						apply()
					}
					return store.ErrAmbiguous
				}
				st.script(ambiguous)
				l := mustOpen(t, config(st, ident(1, 0, 4)))
				left.Store(3)
				acks := newCollector()
				appendTo(l, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")})
				time.Sleep(10 * time.Second)
				left.Store(3)
				appendTo(l, acks, Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "b")})
				if _, err := l.Seal(t.Context()); err != nil {
					t.Fatal(err)
				}
				for id := range uint64(2) {
					if a, ok := acks.get(id + 1); !ok || a.Err != nil || a.BaseOffset != int64(id) {
						t.Errorf("batch %d: %+v %v", id+1, a, ok)
					}
				}
				if r := verifyClean(t, st, l.Ident()); r.Messages != 2 {
					t.Errorf("%d messages are stored, want 2", r.Messages)
				}
			})
		})
	}
}

// A retry of a batch whose chunk is on its way is acked when the chunk is
// stored, not before.
func TestDuplicateSharesTheFateOfItsOriginal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := &scripted{Store: mem.New()}
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		gate := make(chan struct{})
		st.script(func(path string, apply func() error) error {
			<-gate
			return apply()
		})
		acks := newCollector()
		appendTo(l, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")})
		time.Sleep(time.Second)
		appendTo(l, acks, Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")})
		synctest.Wait()
		if n := acks.count(); n != 0 {
			t.Fatalf("%d acks before anything is stored", n)
		}
		close(gate)
		time.Sleep(time.Second)
		if a, ok := acks.get(2); !ok || a.Err != nil || !a.Duplicate || a.BaseOffset != 0 {
			t.Errorf("the repeat: %+v %v", a, ok)
		}
		appendTo(l, acks, Batch{ID: 3, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")})
		if a, ok := acks.get(3); !ok || a.Err != nil || !a.Duplicate {
			t.Errorf("a repeat of what is stored: %+v %v", a, ok)
		}
		// Now the original is lost, and so is its repeat.
		gate = make(chan struct{})
		appendTo(l, acks, Batch{ID: 4, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "b")})
		time.Sleep(time.Second)
		appendTo(l, acks, Batch{ID: 5, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "b")})
		if _, err := SealStore(t.Context(), st.Store, l.Ident(), nil, SealOptions{}); err != nil {
			t.Fatal(err)
		}
		close(gate)
		<-l.Done()
		synctest.Wait()
		for _, id := range []uint64{4, 5} {
			if a, ok := acks.get(id); !ok || !errors.Is(a.Err, smq.ErrSegmentSealed) {
				t.Errorf("batch %d: %+v %v", id, a, ok)
			}
		}
	})
}

// A full store is told to publishers, and when there is room again the log
// goes on from what is stored.
func TestNoSpace(t *testing.T) {
	for _, inline := range []int64{0, 1} { // 1: every chunk is uploaded first
		t.Run(fmt.Sprintf("inline=%d", inline), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				st := &scripted{Store: mem.New(), inline: inline}
				l := mustOpen(t, config(st, ident(1, 0, 4)))
				acks := newCollector()
				appendTo(l, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")})
				time.Sleep(time.Second)
				st.script(func(string, func() error) error { return smq.ErrNoSpace })
				appendTo(l, acks, Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "b")})
				time.Sleep(10 * time.Millisecond)
				appendTo(l, acks, Batch{ID: 3, Partition: 0, Bytes: batchOf(t, 7, 0, 2, "c")}, Batch{ID: 4, Partition: 1, Bytes: batchOf(t, 7, 0, 0, "x")})
				time.Sleep(10 * time.Second)
				for id := uint64(2); id <= 4; id++ {
					if a, ok := acks.get(id); !ok || !errors.Is(a.Err, smq.ErrNoSpace) {
						t.Errorf("batch %d on a full store: %+v %v", id, a, ok)
					}
				}
				if err := l.Stats().StoreError; !errors.Is(err, smq.ErrNoSpace) {
					t.Errorf("the log tells %v of a full store", err)
				}
				st.script(nil)
				time.Sleep(10 * time.Second)
				appendTo(l, acks, Batch{ID: 5, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "b")})
				time.Sleep(time.Second)
				if a, ok := acks.get(5); !ok || a.Err != nil || a.BaseOffset != 1 {
					t.Errorf("a batch when there is room again: %+v %v", a, ok)
				}
				if err := l.Stats().StoreError; err != nil {
					t.Errorf("the log tells %v of a store that works", err)
				}
				if got := readAll(t, l, map[int32]int64{0: 0, 1: 0}); !reflect.DeepEqual(got, map[int32][]string{0: {"a", "b"}}) {
					t.Errorf("read %v", got)
				}
				verifyClean(t, st, l.Ident())
			})
		})
	}
}

// Uploads overlap, creates keep their order.
func TestCreatesGoInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := &scripted{Store: mem.New(), inline: 1}
		cfg := config(st, ident(1, 0, 4))
		cfg.Limits.ChunkBytes = 100
		l := mustOpen(t, cfg)
		var mu sync.Mutex
		var order []string
		st.script(func(path string, apply func() error) error {
			mu.Lock()
			n := len(order)
			mu.Unlock()
			time.Sleep(time.Duration(100-n) * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, path)
			return apply()
		})
		acks := newCollector()
		for i := range int32(20) {
			appendTo(l, acks, Batch{ID: uint64(i), Partition: i % 4, Bytes: batchOf(t, 7, 0, i/4, strings.Repeat("v", 60))})
		}
		time.Sleep(time.Minute)
		if acks.count() != 20 || len(order) != 20 {
			t.Fatalf("%d acks, %d chunks of 20", acks.count(), len(order))
		}
		for i, path := range order {
			if want := l.Ident().ChunkPath(uint64(i + 1)); path != want {
				t.Errorf("create %d was of %s, want %s", i, path, want)
			}
			if acks.ids[i] != uint64(i) {
				t.Errorf("ack %d was of batch %d", i, acks.ids[i])
			}
		}
		verifyClean(t, st, l.Ident())
	})
}

// What waits for a store that does not answer takes no more memory than is
// given, and is all there when the store is back.
func TestBackPressure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := &scripted{Store: mem.New()}
		cfg := config(st, ident(1, 0, 4))
		cfg.Shared = NewShared(SharedOptions{Buffer: 2000})
		l := mustOpen(t, cfg)
		gate := make(chan struct{})
		st.script(func(path string, apply func() error) error {
			<-gate
			return apply()
		})
		acks := newCollector()
		n := uint64(0)
		for {
			b := Batch{ID: n, Partition: 0, Bytes: batchOf(t, 7, 0, int32(n), "value")}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := cfg.Shared.Reserve(ctx, int64(len(b.Bytes)))
			cancel()
			if err != nil {
				if !errors.Is(err, smq.ErrOverloaded) {
					t.Fatal(err)
				}
				break
			}
			l.Append([]Batch{b}, acks)
			n++
		}
		if held := l.Stats().Buffered; held > 2000 || held < 1500 {
			t.Errorf("%d bytes are held of 2000", held)
		}
		close(gate)
		time.Sleep(time.Second)
		if acks.count() != int(n) {
			t.Errorf("%d acks of %d", acks.count(), n)
		}
		if err := cfg.Shared.Reserve(t.Context(), 2000); err != nil {
			t.Errorf("not all memory has come back: %v", err)
		}
		if err := cfg.Shared.Reserve(t.Context(), 2001); !errors.Is(err, smq.ErrTooLarge) {
			t.Errorf("more than there is: %v", err)
		}
	})
}

// Every kind of damage is reported by Verify, and none is served by a reader.
func TestDamageIsReported(t *testing.T) {
	build := func(t *testing.T) (*mem.Store, *Log) {
		st := mem.New()
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		acks := newCollector()
		for i := range int32(3) {
			appendTo(l, acks, Batch{ID: uint64(i), Partition: 1, Bytes: batchOf(t, 7, 0, i, "value")})
			time.Sleep(time.Second)
		}
		if _, err := l.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		return st, l
	}
	rewrite := func(t *testing.T, st *mem.Store, path string, change func([]byte) []byte) {
		data, _, err := st.Read(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Remove(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if data = change(append([]byte(nil), data...)); data == nil {
			return
		}
		if err := st.Create(t.Context(), path, store.Bytes(data)); err != nil {
			t.Fatal(err)
		}
	}
	size := 0
	bubble(t, func(t *testing.T) {
		st, l := build(t)
		rewrite(t, st, l.Ident().ChunkPath(2), func(b []byte) []byte { size = len(b); return b })
		verifyClean(t, st, l.Ident())
	})
	check := func(name string, change func([]byte) []byte) {
		bubble(t, func(t *testing.T) {
			st, l := build(t)
			rewrite(t, st, l.Ident().ChunkPath(2), change)
			r, err := Verify(t.Context(), st, l.Ident())
			if err == nil && len(r.Problems) == 0 {
				t.Errorf("%s: verify finds nothing", name)
			}
			if err != nil && !errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("%s: verify fails with %v", name, err)
			}
			s, err := OpenSealed(t.Context(), st, l.Ident(), NewShared(SharedOptions{}))
			for c := (*Cursor)(nil); err == nil; {
				if c == nil {
					c = NewCursor(s)
					c.Add(1, 0)
				}
				var d Delivery
				if d, err = c.Next(t.Context(), 1<<20); d.AtEnd {
					break
				}
			}
			if !errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("%s: a reader gets %v", name, err)
			}
		})
	}
	for i := range size {
		check(fmt.Sprintf("bit flipped in byte %d of %d", i, size), func(b []byte) []byte { b[i] ^= 1; return b })
	}
	check("truncated", func(b []byte) []byte { return b[:len(b)-1] })
	check("emptied", func(b []byte) []byte { return []byte{} })
	check("removed", func(b []byte) []byte { return nil })
}
