package seglog

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/mem"
)

func TestAppendIsAckedStoredAndRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		acks := newCollector()
		appendTo(l, acks, Batch{ID: 1, Partition: 2, Bytes: batchOf(t, 7, 0, 0, "a", "b")}, Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "x")})
		appendTo(l, acks, Batch{ID: 3, Partition: 2, Bytes: batchOf(t, 7, 0, 2, "c")})
		time.Sleep(time.Second) // of the bubble's clock
		synctest.Wait()
		for id, want := range map[uint64]int64{1: 0, 2: 0, 3: 2} {
			if a, ok := acks.get(id); !ok || a.Err != nil || a.BaseOffset != want {
				t.Errorf("ack of batch %d: %+v, want offset %d", id, a, want)
			}
		}
		got := readAll(t, l, map[int32]int64{0: 0, 1: 0, 2: 1})
		want := map[int32][]string{0: {"x"}, 2: {"b", "c"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		seal, err := l.Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if seal.Messages != 4 {
			t.Errorf("the seal counts %d messages, want 4", seal.Messages)
		}
		if r := verifyClean(t, st, l.Ident()); r.Messages != 4 || !r.Sealed || string(r.Seal.Hash) != string(seal.Hash) {
			t.Errorf("verify reports %+v", r)
		}
		s, err := OpenSealed(t.Context(), st, l.Ident(), NewShared(SharedOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, s, map[int32]int64{0: 0, 2: 1}); !reflect.DeepEqual(got, want) {
			t.Errorf("read sealed %v, want %v", got, want)
		}
		if start, end, err := s.Offsets(t.Context(), 2); start != 0 || end != 3 || err != nil {
			t.Errorf("offsets of partition 2: %d %d %v", start, end, err)
		}
	})
}

func TestSuccessorsContinue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		acks := newCollector()
		for p := range int32(4) {
			appendTo(l, acks, Batch{ID: uint64(p), Partition: p, Bytes: batchOf(t, 7, 0, 0, "a", "b")})
		}
		seal, err := l.Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Split in two, then merge again.
		var seals []Seal
		for i, id := range []Ident{ident(2, 0, 1), ident(3, 1, 4)} {
			m := mustOpen(t, config(st, id, seal))
			first, p := uint64(100+10*i), id.Range.Lo
			appendTo(m, acks,
				Batch{ID: first, Partition: p, Bytes: batchOf(t, 7, 0, 0, "a", "b")}, // a retry
				Batch{ID: first + 1, Partition: p, Bytes: batchOf(t, 7, 0, 2, "c")},
				Batch{ID: first + 2, Partition: p, Bytes: batchOf(t, 7, 0, 4, "e")}) // a gap
			s, err := m.Seal(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seals = append(seals, s)
			if a, _ := acks.get(first); a.Err != nil || !a.Duplicate || a.BaseOffset != 0 {
				t.Errorf("a retry across the seal: %+v", a)
			}
			if a, _ := acks.get(first + 1); a.Err != nil || a.BaseOffset != 2 {
				t.Errorf("the next batch: %+v", a)
			}
			var se *smq.SequenceError
			if a, _ := acks.get(first + 2); !errors.As(a.Err, &se) || se.Last != 2 {
				t.Errorf("a gap: %+v", a)
			}
		}
		merged := mustOpen(t, config(st, ident(4, 0, 4), seals...))
		for p, want := range []int64{3, 3, 2, 2} {
			if start, end, err := merged.Offsets(t.Context(), int32(p)); start != want || end != want || err != nil {
				t.Errorf("partition %d after the merge: %d %d %v, want %d", p, start, end, err, want)
			}
		}
		for _, id := range []Ident{ident(1, 0, 4), ident(2, 0, 1), ident(3, 1, 4), ident(4, 0, 4)} {
			verifyClean(t, st, id)
		}
	})
}

func TestSealFencesTheOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		acks := newCollector()
		appendTo(l, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a")})
		time.Sleep(time.Second)
		seal, err := SealStore(t.Context(), st.Handle(), l.Ident(), nil, SealOptions{Broker: "leader"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := SealStore(t.Context(), st.Handle(), l.Ident(), nil, SealOptions{Broker: "leader"})
		if err != nil || !reflect.DeepEqual(seal, again) {
			t.Fatalf("sealed again: %+v %v, want %+v", again, err, seal)
		}
		appendTo(l, acks, Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "b")})
		<-l.Done()
		synctest.Wait()
		if a, _ := acks.get(2); !errors.Is(a.Err, smq.ErrSegmentSealed) {
			t.Errorf("a batch after the seal: %+v", a)
		}
		if got, ok := l.Sealed(); !ok || got.Chunk != seal.Chunk || string(got.Hash) != string(seal.Hash) {
			t.Errorf("the fenced owner knows the seal %+v, want %+v", got, seal)
		}
		appendTo(l, acks, Batch{ID: 3, Partition: 0, Bytes: batchOf(t, 7, 0, 2, "c")})
		if a, _ := acks.get(3); !errors.Is(a.Err, smq.ErrSegmentSealed) {
			t.Errorf("a batch to a fenced log: %+v", a)
		}
		if got := readAll(t, l, map[int32]int64{0: 0}); !reflect.DeepEqual(got, map[int32][]string{0: {"a"}}) {
			t.Errorf("the fenced log reads %v", got)
		}
		verifyClean(t, st, l.Ident())
	})
}

func TestSealBeforeOpening(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		first := mustOpen(t, config(st, ident(1, 0, 4)))
		acks := newCollector()
		appendTo(first, acks, Batch{ID: 1, Partition: 3, Bytes: batchOf(t, 7, 0, 0, "a", "b")})
		seal, err := first.Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second, err := SealStore(t.Context(), st, ident(2, 0, 4), []Seal{seal}, SealOptions{})
		if err != nil || second.Chunk != 0 || second.Messages != 0 {
			t.Fatalf("sealed unopened: %+v %v", second, err)
		}
		if _, err := Open(t.Context(), config(st, ident(2, 0, 4), seal)); !errors.Is(err, smq.ErrSegmentSealed) {
			t.Fatalf("opened a sealed segment: %v", err)
		}
		third := mustOpen(t, config(st, ident(3, 0, 4), second))
		if start, end, err := third.Offsets(t.Context(), 3); start != 2 || end != 2 || err != nil {
			t.Errorf("offsets behind an unopened segment: %d %d %v", start, end, err)
		}
		if _, err := Open(t.Context(), config(st, ident(3, 0, 4), second)); !errors.Is(err, smq.ErrNotOwner) {
			t.Errorf("opened another's segment: %v", err)
		}
	})
}

func TestManyChunksRecoverAndFind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		l := mustOpen(t, config(st, ident(1, 0, 8)))
		acks := newCollector()
		const rounds = 3*snapshotEvery + 10
		for i := range int32(rounds) {
			p := i % 7
			appendTo(l, acks, Batch{ID: uint64(i), Partition: p, Bytes: batchOf(t, 7, 0, i/7*2, fmt.Sprint(i), fmt.Sprint(i))})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := acks.count(); n != rounds {
			t.Fatalf("%d acks of %d", n, rounds)
		}
		if s := l.Stats(); s.Chunks != rounds+1 {
			t.Fatalf("%d chunks, want %d", s.Chunks, rounds+1)
		}
		r, err := recoverSegment(t.Context(), st, l.Ident(), Limits{}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(r.state.partitions, l.head.partitions) || len(r.state.producers.m) != 7 {
			t.Errorf("recovered %v, the owner has %v", r.state.partitions, l.head.partitions)
		}
		from := make(map[int32]int64)
		want := make(map[int32][]string)
		for p := range int32(7) {
			from[p] = int64(p) * 9
			for i := p; i < rounds; i += 7 {
				for k := range int32(2) {
					if int64(i/7*2+k) >= from[p] {
						want[p] = append(want[p], fmt.Sprint(i))
					}
				}
			}
		}
		if got := readAll(t, l, from); !reflect.DeepEqual(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		for _, ms := range []int64{0, 1_000_000, 1_000_011, 1_000_050, 1_000_054, 2_000_000} {
			f, ok, err := OffsetForTime(t.Context(), l, 3, ms, RecordTime)
			wantOffset := max(ms-1_000_000, 0)
			_, end, _ := l.Offsets(t.Context(), 3)
			if err != nil || ok != (wantOffset < end) || ok && f.Offset != wantOffset {
				t.Errorf("time %d: %+v %v %v, want offset %d", ms, f, ok, err, wantOffset)
			}
		}
		verifyClean(t, st, l.Ident())
	})
}

// An owner with nothing to store finds out that it is fenced, and its readers
// with it.
func TestProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		l := mustOpen(t, config(st, ident(1, 0, 4)))
		if err := l.Probe(t.Context()); err != nil || l.Err() != nil {
			t.Fatalf("probe of an open log: %v, %v", err, l.Err())
		}
		changed := l.Changed()
		seal, err := SealStore(t.Context(), st.Handle(), l.Ident(), nil, SealOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-changed
		if got, ok := l.Sealed(); !ok || got.Chunk != seal.Chunk || !errors.Is(l.Err(), smq.ErrSegmentSealed) {
			t.Errorf("the log knows %+v %v, want the seal %+v", got, l.Err(), seal)
		}
		c := NewCursor(l)
		c.Add(0, 0)
		if d, err := c.Next(t.Context(), 1); !d.AtEnd || err != nil {
			t.Errorf("a reader is told %+v %v", d, err)
		}
		if err := l.Probe(t.Context()); err != nil {
			t.Errorf("probe of a stopped log: %v", err)
		}
	})
}

// What was never opened has nothing to lose, and can be told from what was.
func TestSealOfWhatWasNeverOpened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st := mem.New()
		for _, o := range []SealOptions{{Unclean: true}, {Unopened: true}} {
			seal, err := SealStore(t.Context(), st, ident(1, 0, 4), nil, o)
			if err != nil || seal.Unclean || seal.Chunk != 0 {
				t.Errorf("%+v: %+v, %v", o, seal, err)
			}
		}
		mustOpen(t, config(st, ident(2, 0, 4)))
		if seal, err := SealStore(t.Context(), st, ident(2, 0, 4), nil, SealOptions{Unopened: true}); !errors.Is(err, smq.ErrConflict) {
			t.Errorf("an opened segment: %+v, %v", seal, err)
		}
		if seal, err := SealStore(t.Context(), st, ident(2, 0, 4), nil, SealOptions{Unclean: true}); err != nil || !seal.Unclean {
			t.Errorf("an opened segment whose replicas are lost: %+v, %v", seal, err)
		}
	})
}
