package seglog

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// replicated is an owner with followers, and what is between them.
type replicated struct {
	owner     *Log
	followers []*Follower
	leased    atomic.Bool
	cut       []atomic.Bool // the link to a follower is down
	late      atomic.Bool   // what followers hold is not told to the owner
	notify    chan struct{}
}

// replicate opens a segment with n followers and pumps batches to them, as
// brokers do.
func replicate(t *testing.T, st store.Store, id Ident, n int, preds ...Seal) *replicated {
	r := &replicated{cut: make([]atomic.Bool, n), notify: make(chan struct{}, 1)}
	r.leased.Store(true)
	cfg := config(st, id, preds...)
	cfg.Broker = "owner"
	for i := range n {
		name := smq.BrokerID(fmt.Sprintf("follower%d", i))
		cfg.Replication.Followers = append(cfg.Replication.Followers, name)
		r.followers = append(r.followers, NewFollower(FollowerConfig{
			Store: st, Ident: id, Predecessors: preds, Broker: name, Owner: "owner", Shared: NewShared(SharedOptions{}),
		}))
	}
	cfg.Replication.Leased = r.leased.Load
	cfg.Replication.Notify = func(*Log) {
		select {
		case r.notify <- struct{}{}:
		default:
		}
	}
	r.owner = mustOpen(t, cfg)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go r.pump(stop)
	return r
}

func (r *replicated) pump(stop chan struct{}) {
	sent := make([]smq.Position, len(r.followers))
	for {
		select {
		case <-r.notify:
		case <-stop:
			return
		}
		for i, f := range r.followers {
			for more := true; more && !r.cut[i].Load(); {
				o := r.owner.Outgoing(sent[i], 1000)
				for j := range o.Batches { // each process has bytes of its own
					o.Batches[j].Bytes = append([]byte(nil), o.Batches[j].Bytes...)
					_ = f.cfg.Shared.ReserveReplica(int64(len(o.Batches[j].Bytes)))
				}
				held, err := f.Append(o.First, o.Stored, o.Batches)
				if err != nil {
					break
				}
				sent[i], more = o.First+uint64(len(o.Batches)), len(o.Batches) > 0
				if !r.late.Load() {
					r.owner.Held(i, held)
				}
			}
		}
	}
}

// blocked is a store whose creates wait for the gate, seals apart.
func blocked(st store.Store) (*scripted, chan struct{}) {
	gate := make(chan struct{})
	s := &scripted{Store: st}
	return s, gate
}

func TestReplicatedAcksComeBeforeTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st, gate := blocked(mem.New())
		r := replicate(t, st, ident(1, 0, 4), 2)
		st.script(func(path string, apply func() error) error { <-gate; return apply() })
		acks := newCollector()
		appendTo(r.owner, acks,
			Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Replicated},
			Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "b"), Level: Stored},
			Batch{ID: 3, Partition: 1, Bytes: batchOf(t, 7, 0, 0, "x"), Level: Replicated})
		synctest.Wait()
		for id, want := range map[uint64]bool{1: true, 2: false, 3: true} {
			if a, ok := acks.get(id); ok != want || ok && (a.Err != nil || a.Level != Replicated) {
				t.Errorf("batch %d: %+v %v, want an ack: %v", id, a, ok, want)
			}
		}
		got := readAll(t, r.owner, map[int32]int64{0: 0, 1: 0})
		if want := map[int32][]string{0: {"a", "b"}, 1: {"x"}}; !reflect.DeepEqual(got, want) {
			t.Errorf("readers see %v of what is committed, want %v", got, want)
		}
		appendTo(r.owner, acks, Batch{ID: 4, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Replicated})
		if a, ok := acks.get(4); !ok || !a.Duplicate || a.Level != Replicated {
			t.Errorf("a repeat of what is replicated: %+v %v", a, ok)
		}
		appendTo(r.owner, acks, Batch{ID: 5, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Stored})
		synctest.Wait()
		if a, ok := acks.get(5); ok {
			t.Errorf("a repeat that wants to be stored: %+v before it is", a)
		}
		close(gate)
		time.Sleep(time.Second)
		for _, id := range []uint64{2, 5} {
			if a, ok := acks.get(id); !ok || a.Err != nil || a.Level != Stored {
				t.Errorf("batch %d: %+v %v", id, a, ok)
			}
		}
		for i, f := range r.followers {
			if first, held := f.Remaining(); len(held) != 0 || first != 3 {
				t.Errorf("follower %d still holds %d batches from %d on, though all is stored", i, len(held), first)
			}
		}
		verifyClean(t, st, r.owner.Ident())
	})
}

// The owner is gone with everything that is not stored: a follower's seal has
// what was acked.
func TestFollowerSealsWhatItHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st, _ := blocked(mem.New())
		r := replicate(t, st, ident(1, 0, 4), 1)
		acks := newCollector()
		appendTo(r.owner, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Replicated})
		time.Sleep(time.Second) // stored
		dead := make(chan struct{})
		st.script(func(path string, apply func() error) error { <-dead; return smq.ErrUnavailable })
		for i := range int32(20) {
			appendTo(r.owner, acks, Batch{ID: uint64(10 + i), Partition: i % 4, Bytes: batchOf(t, 8, 0, i/4, fmt.Sprint(i)), Level: Replicated})
		}
		time.Sleep(time.Second)
		if n := acks.count(); n != 21 {
			t.Fatalf("%d acks of 21", n)
		}
		r.owner.Close()
		st.script(nil)
		close(dead)
		seal, err := r.followers[0].Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.followers[0].Seal(t.Context())
		if err != nil || !reflect.DeepEqual(again, seal) {
			t.Errorf("sealed again: %+v %v", again, err)
		}
		if seal.Messages != 21 {
			t.Errorf("the seal counts %d messages, want 21", seal.Messages)
		}
		verifyClean(t, st, r.owner.Ident())
		next := mustOpen(t, config(st, ident(2, 0, 4), seal))
		appendTo(next, acks, Batch{ID: 100, Partition: 3, Bytes: batchOf(t, 8, 0, 4, "19"), Level: Stored})
		if a, _ := acks.get(100); !a.Duplicate || a.Err != nil || a.BaseOffset != 4 {
			t.Errorf("a repeat at the successor: %+v", a)
		}
	})
}

// A paused owner comes back after a follower has sealed: it acks what the seal
// holds, and nothing else.
func TestOwnerMeetsTheFollowersSeal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st, _ := blocked(mem.New())
		r := replicate(t, st, ident(1, 0, 4), 1)
		owners := make(chan struct{})
		st.script(func(path string, apply func() error) error { <-owners; return apply() })
		acks := newCollector()
		r.late.Store(true)
		appendTo(r.owner, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "held"), Level: Replicated})
		synctest.Wait()
		r.cut[0].Store(true)
		appendTo(r.owner, acks, Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 1, "lost"), Level: Replicated})
		time.Sleep(time.Second)
		f := r.followers[0]
		f.cfg.Store = st.Store // its way to the store is another
		if _, err := f.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Append(1, 0, nil); !errors.Is(err, smq.ErrSegmentSealed) {
			t.Errorf("a fenced follower takes more: %v", err)
		}
		close(owners)
		<-r.owner.Done()
		synctest.Wait()
		if a, ok := acks.get(1); !ok || a.Err != nil || a.Level != Stored || a.BaseOffset != 0 {
			t.Errorf("what the seal holds: %+v %v", a, ok)
		}
		if a, ok := acks.get(2); !ok || !errors.Is(a.Err, smq.ErrSegmentSealed) {
			t.Errorf("what it does not hold: %+v %v", a, ok)
		}
		if got := readAll(t, r.owner, map[int32]int64{0: 0}); !reflect.DeepEqual(got, map[int32][]string{0: {"held"}}) {
			t.Errorf("the fenced owner's readers see %v", got)
		}
		verifyClean(t, st, r.owner.Ident())
	})
}

// Without a lease, or with a store that lags, memory does not stand in for the
// store.
func TestNoReplicatedAcks(t *testing.T) {
	for _, reason := range []string{"no lease", "store lags", "follower lags"} {
		t.Run(reason, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				st, gate := blocked(mem.New())
				r := replicate(t, st, ident(1, 0, 4), 2)
				st.script(func(path string, apply func() error) error { <-gate; return apply() })
				acks := newCollector()
				var first uint64
				switch reason {
				case "no lease":
					r.leased.Store(false)
				case "store lags":
					first = 1
					appendTo(r.owner, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Replicated})
					time.Sleep(3 * time.Second)
				case "follower lags":
					r.cut[1].Store(true)
				}
				appendTo(r.owner, acks, Batch{ID: 9, Partition: 0, Bytes: batchOf(t, 7, 0, int32(first), "b"), Level: Replicated})
				time.Sleep(time.Second)
				if a, ok := acks.get(9); ok {
					t.Errorf("acked: %+v", a)
				}
				if got := readAll(t, r.owner, map[int32]int64{0: int64(first)}); len(got) > 0 {
					t.Errorf("readers see %v", got)
				}
				close(gate)
				time.Sleep(time.Second)
				if a, ok := acks.get(9); !ok || a.Err != nil || a.Level != Stored && reason != "store lags" {
					t.Errorf("once it is stored: %+v %v", a, ok)
				}
				verifyClean(t, st, r.owner.Ident())
			})
		})
	}
}

// Replicated batches are not stored one by one: a chunk waits for more, for a
// while.
func TestReplicatedBatchesShareChunks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st, _ := blocked(mem.New())
		r := replicate(t, st, ident(1, 0, 4), 1)
		acks := newCollector()
		for i := range int32(100) {
			appendTo(r.owner, acks, Batch{ID: uint64(i), Partition: 0, Bytes: batchOf(t, 7, 0, i, "v"), Level: Replicated})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if s := r.owner.Stats(); acks.count() != 100 || s.Chunks < 15 || s.Chunks > 25 {
			t.Errorf("%d acks, %d chunks in a second, want about 20", acks.count(), s.Chunks)
		}
	})
}

// A follower refuses what does not fit, takes what is sent again, and catches
// up over what the owner has stored meanwhile.
func TestFollowerPositions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := NewFollower(FollowerConfig{Store: mem.New(), Ident: ident(1, 0, 4), Shared: NewShared(SharedOptions{Replica: 10_000})})
		some := func(n int) []Batch {
			batches := make([]Batch, n)
			for i := range batches {
				batches[i] = Batch{Bytes: batchOf(t, -1, 0, 0, "v")}
				if err := f.cfg.Shared.ReserveReplica(int64(len(batches[i].Bytes))); err != nil {
					t.Fatal(err)
				}
			}
			return batches
		}
		steps := []struct {
			first, stored uint64
			n             int
			held          uint64
			err           error
		}{
			{0, 0, 3, 3, nil},
			{1, 0, 3, 4, nil}, // in part again
			{0, 0, 2, 4, nil}, // all again
			{5, 0, 1, 4, smq.ErrConflict},
			{9, 8, 1, 4, smq.ErrConflict},
			{9, 9, 2, 11, nil}, // what is missed is stored
			{11, 11, 0, 11, nil},
		}
		for i, s := range steps {
			if held, err := f.Append(s.first, s.stored, some(s.n)); held != s.held || !errors.Is(err, s.err) {
				t.Errorf("step %d: holds %d, %v; want %d, %v", i, held, err, s.held, s.err)
			}
		}
		f.Close()
		if err := f.cfg.Shared.ReserveReplica(10_000); err != nil {
			t.Errorf("not all memory has come back: %v", err)
		}
	})
}

// A lease that has run out ends what it has been good for: a repeat is not acked
// as its original was, and readers are not shown what the store may never hold.
func TestP4P5CommittedOnlyUnderALease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		under := mem.New()
		st, gate := blocked(under)
		defer close(gate)
		r := replicate(t, st, ident(1, 0, 4), 1)
		st.script(func(_ string, apply func() error) error { <-gate; return apply() })
		acks := newCollector()
		appendTo(r.owner, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Replicated})
		synctest.Wait()
		if a, ok := acks.get(1); !ok || a.Level != Replicated {
			t.Fatalf("%+v %v", a, ok)
		}
		if got := readAll(t, r.owner, map[int32]int64{0: 0}); len(got) != 1 {
			t.Fatalf("readers see %v", got)
		}
		// The owner is paused, its follower dies, and the leader seals with what is
		// stored. The publisher takes the ack for late, and sends again.
		r.leased.Store(false)
		time.Sleep(10 * time.Second)
		if _, err := SealStore(t.Context(), under, ident(1, 0, 4), nil, SealOptions{Broker: "leader", Unclean: true}); err != nil {
			t.Fatal(err)
		}
		appendTo(r.owner, acks, Batch{ID: 2, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Replicated})
		synctest.Wait()
		if a, ok := acks.get(2); ok {
			t.Errorf("the repeat is answered: %+v", a)
		}
		if got := readAll(t, r.owner, map[int32]int64{0: 0}); len(got) > 0 {
			t.Errorf("readers see %v, which is gone", got)
		}
	})
}

// The time of day is set back by an hour while batches wait for the store: they are
// flushed as if it had not been, and memory does not stand in for the store for that
// long.
func TestTheTimeOfDayIsSetBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		st, gate := blocked(mem.New())
		r := replicate(t, st, ident(1, 0, 4), 1)
		l := r.owner
		st.script(func(path string, apply func() error) error { <-gate; return apply() })
		acks := newCollector()
		appendTo(l, acks, Batch{ID: 1, Partition: 0, Bytes: batchOf(t, 7, 0, 0, "a"), Level: Replicated})
		l.mu.Lock()
		l.pending[0].appendMs += time.Hour.Milliseconds()
		if ready, wait := l.mayFreeze(time.Now()); ready || wait > l.limits.MaxDelay {
			t.Errorf("the next chunk is made in %v", wait)
		}
		l.mu.Unlock()
		time.Sleep(l.limits.MaxUnstored + time.Second)
		if oldest := l.Stats().OldestUnsent; !l.StoreLags() || oldest < l.limits.MaxUnstored {
			t.Errorf("the store lags: %v, the oldest batch that it lacks is %v old", l.StoreLags(), oldest)
		}
		close(gate)
		synctest.Wait()
	})
}

// A reader that takes little at a time is shown as much of what is in memory, however
// much there is; all of it in the end.
func TestReadersAreShownALittleAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const batches = 100
		st, gate := blocked(mem.New())
		r := replicate(t, st, ident(1, 0, 4), 1)
		st.script(func(path string, apply func() error) error { <-gate; return apply() })
		acks := newCollector()
		for i := range uint64(batches) {
			appendTo(r.owner, acks, Batch{ID: i, Partition: int32(i % 4), Bytes: batchOf(t, -1, 0, 0, "v"), Level: Replicated})
		}
		synctest.Wait()
		size := len(batchOf(t, -1, 0, 0, "v"))
		entries, ok := r.owner.recent(1, 0, 10*size)
		if !ok || len(entries) != 10 {
			t.Fatalf("%d batches, %v", len(entries), ok)
		}
		c := NewCursor(r.owner)
		c.Add(3, 0) // the others' are passed over
		for n := 0; n < batches/4; n++ {
			d, err := c.Next(t.Context(), 1)
			if err != nil || len(d.Batches) != 1 || d.AtTail {
				t.Fatalf("after %d batches: %d more, at the tail %v, %v", n, len(d.Batches), d.AtTail, err)
			}
		}
		if d, err := c.Next(t.Context(), 1); err != nil || !d.AtTail {
			t.Errorf("after all batches: %+v, %v", d, err)
		}
		close(gate)
		synctest.Wait()
	})
}
