package fault_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/fault"
	"github.com/seaweedmq/smq/lib/store/mem"
	"github.com/seaweedmq/smq/lib/store/storetest"
)

// TestConformance sees that a wrapper that injects nothing changes nothing.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) (a, b store.Store) {
		s := mem.New()
		return fault.New(s, 1, nil), fault.New(s.Handle(), 2, fault.Rates{})
	})
}

// process wraps a handle so that one kind of call always has one decision.
func process(inner *mem.Store, kind fault.Kind, d fault.Decision) *fault.Store {
	s := fault.New(inner.Handle(), 1, nil)
	s.Before = func(op fault.Op) fault.Decision {
		if op.Kind == kind {
			return d
		}
		return fault.Decision{}
	}
	return s
}

// calls are all calls by kind, for a store that holds /d/old.
var calls = map[fault.Kind]func(ctx context.Context, s store.Store) error{
	fault.Create: func(ctx context.Context, s store.Store) error {
		return s.Create(ctx, "/d/new", store.Bytes([]byte("new")))
	},
	fault.Replace: func(ctx context.Context, s store.Store) error {
		_, err := s.Replace(ctx, "/d/new", []byte("new"), "")
		return err
	},
	fault.Remove:    func(ctx context.Context, s store.Store) error { return s.Remove(ctx, "/d/old") },
	fault.RemoveAll: func(ctx context.Context, s store.Store) error { return s.RemoveAll(ctx, "/d") },
	fault.Upload: func(ctx context.Context, s store.Store) error {
		_, err := s.Upload(ctx, []byte("new"))
		return err
	},
	fault.Discard: func(ctx context.Context, s store.Store) error { return s.Discard(ctx, store.Ref{}) },
	fault.Read: func(ctx context.Context, s store.Store) error {
		_, _, err := s.Read(ctx, "/d/old")
		return err
	},
	fault.ReadAt: func(ctx context.Context, s store.Store) error {
		_, err := s.ReadAt(ctx, "/d/old", make([]byte, 1), 0)
		return err
	},
	fault.Stat: func(ctx context.Context, s store.Store) error {
		_, err := s.Stat(ctx, "/d/old")
		return err
	},
	fault.List: func(ctx context.Context, s store.Store) error {
		_, err := s.List(ctx, "/d", "", 0)
		return err
	},
	fault.Watch: func(ctx context.Context, s store.Store) error {
		ctx, cancel := context.WithCancel(ctx)
		err := s.Watch(ctx, "/d", cancel, func(string) {})
		if errors.Is(err, context.Canceled) {
			return nil // it was ready
		}
		return err
	},
}

var kinds = slices.Sorted(maps.Keys(calls))

// newStore makes a store that holds /d/old.
func newStore(t *testing.T) *mem.Store {
	t.Helper()
	s := mem.New()
	if err := s.Create(t.Context(), "/d/old", store.Bytes([]byte("old"))); err != nil {
		t.Fatal(err)
	}
	return s
}

// changed reports whether a store is no longer as newStore makes it.
func changed(t *testing.T, s store.Store) bool {
	t.Helper()
	infos, err := s.List(t.Context(), "/d", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(infos) != 1 || infos[0].Name != "old"
}

// visible reports whether a kind of call, applied, shows in changed.
func visible(k fault.Kind) bool { return k.Changes() && k != fault.Upload && k != fault.Discard }

// TestOutcomes sees each outcome of each kind of call do what it says.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		outcome fault.Outcome
		change  error // what changes fail with
		look    error // what others fail with
		applied bool
	}{
		{fault.Pass, nil, nil, true},
		{fault.Refuse, smq.ErrUnavailable, smq.ErrUnavailable, false},
		{fault.Full, smq.ErrNoSpace, smq.ErrUnavailable, false},
		{fault.Lose, store.ErrAmbiguous, smq.ErrUnavailable, true},
		{fault.Late, store.ErrAmbiguous, smq.ErrUnavailable, false},
		{fault.Drop, store.ErrAmbiguous, smq.ErrUnavailable, false},
		{fault.DieBefore, fault.ErrKilled, fault.ErrKilled, false},
		{fault.DieAfter, fault.ErrKilled, fault.ErrKilled, true},
	} {
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%v %v", kind, c.outcome), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					inner := newStore(t)
					s := process(inner, kind, fault.Decision{Outcome: c.outcome, LateBy: time.Hour})
					defer s.Close()
					err := calls[kind](t.Context(), s)
					want := c.look
					if kind.Changes() {
						want = c.change
					}
					if !errors.Is(err, want) {
						t.Errorf("it fails with %v, want %v", err, want)
					}
					definite := c.change == smq.ErrUnavailable || c.change == smq.ErrNoSpace || c.change == nil
					if kind.Changes() && errors.Is(err, store.ErrAmbiguous) == definite {
						t.Errorf("%v is ambiguous: %v", err, !definite)
					}
					if got := changed(t, inner); visible(kind) && got != c.applied {
						t.Errorf("the store has changed: %v", got)
					}
				})
			})
		}
	}
}

// TestLate sees a late change arrive when it should, of what its caller's
// buffers held at the call.
func TestLate(t *testing.T) {
	for _, kind := range kinds {
		if !visible(kind) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			inner := newStore(t)
			s := process(inner, kind, fault.Decision{Outcome: fault.Late, Delay: time.Minute, LateBy: time.Hour})
			defer s.Close()
			begun := time.Now()
			if err := calls[kind](t.Context(), s); !errors.Is(err, store.ErrAmbiguous) || time.Since(begun) != time.Minute {
				t.Errorf("%v: %v after %v", kind, err, time.Since(begun))
			}
			time.Sleep(time.Hour - 1)
			synctest.Wait()
			if changed(t, inner) {
				t.Errorf("%v has arrived early", kind)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if !changed(t, inner) {
				t.Errorf("%v has not arrived", kind)
			}
			last := s.Log()[1]
			if !last.Arrival || !last.Applied || last.Op.Kind != kind || !strings.Contains(last.String(), "arrival: late") {
				t.Errorf("the log's last is %v", last)
			}
		})
	}
}

func TestLateKeepsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore(t)
		s := fault.New(inner.Handle(), 1, nil)
		defer s.Close()
		s.Before = func(op fault.Op) fault.Decision {
			if op.Kind == fault.Upload {
				return fault.Decision{}
			}
			return fault.Decision{Outcome: fault.Late, LateBy: time.Hour}
		}
		ref, err := s.Upload(t.Context(), []byte("tail"))
		if err != nil {
			t.Fatal(err)
		}
		buf := []byte("head")
		content := []store.Part{{Bytes: buf}, {Ref: &ref}}
		createErr := s.Create(t.Context(), "/created", content)
		_, replaceErr := s.Replace(t.Context(), "/replaced", buf, "")
		if !errors.Is(createErr, store.ErrAmbiguous) || !errors.Is(replaceErr, store.ErrAmbiguous) {
			t.Errorf("Create: %v, Replace: %v", createErr, replaceErr)
		}
		clear(buf)
		ref.Pieces[0] = store.Piece{}
		clear(content)
		time.Sleep(2 * time.Hour)
		for path, want := range map[string]string{"/created": "headtail", "/replaced": "head"} {
			if got, _, err := inner.Read(t.Context(), path); string(got) != want || err != nil {
				t.Errorf("%s holds %q, %v", path, got, err)
			}
		}
	})
}

// TestDelay sees that calls take as long as they should, and can be left.
func TestDelay(t *testing.T) {
	for _, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			inner := newStore(t)
			s := process(inner, kind, fault.Decision{Delay: time.Hour})
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			err := calls[kind](ctx, s)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrAmbiguous) != kind.Changes() || time.Since(begun) != time.Minute {
				t.Errorf("%v: %v after %v", kind, err, time.Since(begun))
			}
			if changed(t, inner) {
				t.Errorf("%v has changed the store", kind)
			}
			begun = time.Now()
			if err := calls[kind](t.Context(), s); err != nil || time.Since(begun) != time.Hour {
				t.Errorf("%v: %v after %v", kind, err, time.Since(begun))
			}
			if visible(kind) && !changed(t, inner) {
				t.Errorf("%v has not changed the store", kind)
			}
		})
	}
}

// TestPause sees calls hang until Resume, or until they are left.
func TestPause(t *testing.T) {
	for _, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			inner := newStore(t)
			s := fault.New(inner.Handle(), 1, nil)
			defer s.Close()
			s.Pause()
			s.Pause()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := calls[kind](ctx, s); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrAmbiguous) != kind.Changes() {
				t.Errorf("%v: %v", kind, err)
			}
			done := make(chan error, 1)
			go func() { done <- calls[kind](t.Context(), s) }()
			time.Sleep(time.Hour)
			select {
			case err := <-done:
				t.Errorf("%v does not hang: %v", kind, err)
			default:
			}
			if changed(t, inner) {
				t.Errorf("%v has changed the store during the pause", kind)
			}
			s.Resume()
			s.Resume()
			if err := <-done; err != nil {
				t.Errorf("%v: %v", kind, err)
			}
		})
	}
}

// TestPauseHoldsLateChangesAndEvents cuts off what needs no caller.
func TestPauseHoldsLateChangesAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore(t)
		s := process(inner, fault.Create, fault.Decision{Outcome: fault.Late, LateBy: time.Minute})
		defer s.Close()
		var seen []string
		ready := make(chan struct{})
		go s.Watch(t.Context(), "/", func() { close(ready) }, func(path string) { seen = append(seen, path) })
		<-ready
		if err := calls[fault.Create](t.Context(), s); !errors.Is(err, store.ErrAmbiguous) {
			t.Error(err)
		}
		s.Pause()
		if err := inner.Create(t.Context(), "/elsewhere", nil); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if changed(t, inner) || len(seen) > 0 {
			t.Errorf("the store has changed: %v, seen are %q", changed(t, inner), seen)
		}
		s.Resume()
		synctest.Wait()
		if want := []string{"/elsewhere", "/d/new"}; !changed(t, inner) || !slices.Equal(seen, want) {
			t.Errorf("the store has changed: %v, seen are %q", changed(t, inner), seen)
		}
	})
}

// TestRoll sees chance keep to the rates, and decide on each call by its seed,
// kind, path and number only.
func TestRoll(t *testing.T) {
	rates := fault.Changes(fault.Rate{
		Refuse: 0.1, Full: 0.1, Lose: 0.1, Late: 0.1, Drop: 0.1, Delay: 0.5, MaxDelay: time.Second, MaxLate: time.Minute,
	})
	a, b, c := fault.New(mem.New(), 1, rates), fault.New(mem.New(), 1, rates), fault.New(mem.New(), 2, rates)
	const n = 5000
	counts := map[fault.Outcome]int{}
	delayed, differs := 0, 0
	for i := range n {
		op := fault.Op{Kind: fault.Create, Path: fmt.Sprintf("/%d", i%50), N: i / 50}
		d := a.Roll(op)
		counts[d.Outcome]++
		if d.Delay > 0 {
			delayed++
		}
		if d.Delay > time.Second || d.LateBy <= 0 || d.LateBy > time.Minute {
			t.Fatalf("%v: %+v", op, d)
		}
		if b.Roll(op) != d {
			t.Fatalf("%v is not the same with the same seed", op)
		}
		if c.Roll(op) != d {
			differs++
		}
		if d := a.Roll(fault.Op{Kind: fault.Read, Path: op.Path, N: i}); d != (fault.Decision{}) {
			t.Fatalf("Read: %+v", d)
		}
	}
	for o := fault.Pass; o <= fault.DieAfter; o++ {
		want := n / 10
		switch o {
		case fault.Pass:
			want = n / 2
		case fault.DieBefore, fault.DieAfter:
			want = 0
		}
		if got := counts[o]; got < want*8/10 || got > want*12/10 {
			t.Errorf("%v happens %d times, want about %d", o, got, want)
		}
	}
	if delayed < n*4/10 || delayed > n*6/10 || differs < n/2 {
		t.Errorf("%d of %d are delayed, %d differ between seeds", delayed, n, differs)
	}
	if d := fault.New(mem.New(), 1, fault.Everything(fault.Rate{Refuse: 1})).Roll(fault.Op{Kind: fault.Watch}); d.Outcome != fault.Refuse {
		t.Errorf("Watch: %+v", d)
	}
}

// TestCountsAndLog sees calls counted by kind and path, and the log bounded.
func TestCountsAndLog(t *testing.T) {
	s := fault.New(newStore(t), 1, nil)
	defer s.Close()
	var got []string
	s.Before = func(op fault.Op) fault.Decision {
		if len(got) < 5 {
			got = append(got, op.String())
		}
		return fault.Decision{Outcome: fault.Refuse}
	}
	ctx := t.Context()
	s.Stat(ctx, "/a")
	s.Stat(ctx, "/b")
	s.Stat(ctx, "/a")
	s.Remove(ctx, "/a")
	s.Discard(ctx, store.Ref{})
	want := []string{"Stat(/a)#0", "Stat(/b)#0", "Stat(/a)#1", "Remove(/a)#0", "Discard()#0"}
	if !slices.Equal(got, want) {
		t.Errorf("the calls are %q, want %q", got, want)
	}
	log := s.Log()
	if len(log) != 5 || log[3].Op.String() != "Remove(/a)#0" || !errors.Is(log[3].Err, smq.ErrUnavailable) || log[3].Applied {
		t.Errorf("the log is %v", log)
	}
	for range 20_000 {
		s.Stat(ctx, "/a")
	}
	log = s.Log()
	if last := log[len(log)-1].Op.N; len(log) > 4096 || len(log) < 2000 || last != 20_001 {
		t.Errorf("the log has %d entries, the last is number %d", len(log), last)
	}
}
