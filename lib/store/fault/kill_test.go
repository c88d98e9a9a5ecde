package fault_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/fault"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// TestKill kills a process with calls under way: each is carried out or not,
// all of them by the time that Kill returns.
func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		s := fault.New(inner.Handle(), 1, nil)
		defer s.Close()
		s.Before = func(op fault.Op) fault.Decision {
			if op.Path == "/late" {
				return fault.Decision{Outcome: fault.Late, LateBy: time.Hour}
			}
			return fault.Decision{Delay: time.Minute}
		}
		if err := s.Create(t.Context(), "/late", nil); !errors.Is(err, store.ErrAmbiguous) {
			t.Error(err)
		}
		const n = 40
		errs := make(chan error, n)
		for i := range n {
			go func() { errs <- s.Create(t.Context(), fmt.Sprintf("/%d", i), nil) }()
		}
		watched := make(chan error, 1)
		go func() { watched <- s.Watch(t.Context(), "/", func() {}, func(string) {}) }()
		synctest.Wait()
		s.Kill()
		before, err := inner.List(t.Context(), "/", "", 0)
		if err != nil || len(before) == 0 || len(before) == n {
			t.Errorf("%d of %d were carried out, %v", len(before), n, err)
		}
		for range n {
			if err := <-errs; !errors.Is(err, store.ErrAmbiguous) || !errors.Is(err, fault.ErrKilled) {
				t.Errorf("Create: %v", err)
			}
		}
		if err := <-watched; !errors.Is(err, fault.ErrKilled) {
			t.Errorf("Watch: %v", err)
		}
		for _, kind := range kinds {
			if err := calls[kind](t.Context(), s); !errors.Is(err, fault.ErrKilled) || errors.Is(err, store.ErrAmbiguous) {
				t.Errorf("%v after Kill: %v", kind, err)
			}
		}
		time.Sleep(2 * time.Hour)
		after, err := inner.List(t.Context(), "/", "", 0)
		if err != nil || len(after) != len(before) {
			t.Errorf("%d files were there at Kill, %d later, %v", len(before), len(after), err)
		}
		s.Kill()
	})
}

// TestKillEndsWatch kills a process whose watch is running.
func TestKillEndsWatch(t *testing.T) {
	s := fault.New(newStore(t), 1, nil)
	defer s.Close()
	err := s.Watch(t.Context(), "/", func() { go s.Kill() }, func(string) {})
	if !errors.Is(err, fault.ErrKilled) {
		t.Errorf("Watch: %v", err)
	}
}

// TestZombies lets the late change of a killed process arrive.
func TestZombies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore(t)
		s := process(inner, fault.Create, fault.Decision{Outcome: fault.Late, LateBy: time.Hour})
		s.Zombies = true
		if err := calls[fault.Create](t.Context(), s); !errors.Is(err, store.ErrAmbiguous) {
			t.Error(err)
		}
		s.Kill()
		time.Sleep(2 * time.Hour)
		if !changed(t, inner) {
			t.Error("it has not arrived")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestClose closes a store with a late change to come: it does not come.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore(t)
		s := process(inner, fault.Create, fault.Decision{Outcome: fault.Late, LateBy: time.Hour})
		s.Zombies = true
		if err := calls[fault.Create](t.Context(), s); !errors.Is(err, store.ErrAmbiguous) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
		if changed(t, inner) {
			t.Error("it has arrived")
		}
		if err := calls[fault.Stat](t.Context(), s); !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("Stat: %v", err)
		}
	})
}
