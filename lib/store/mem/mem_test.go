package mem_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
	"github.com/seaweedmq/smq/lib/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) (a, b store.Store) {
		s := mem.New()
		return s, s.Handle()
	})
}

// TestClock sees that all times come from the clock that is given.
func TestClock(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	s := mem.NewWithClock(func() time.Time { return now })
	for _, path := range []string{"/d/f", "/d/g"} {
		now = now.Add(time.Hour)
		if err := s.Create(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		info, err := s.Stat(t.Context(), path)
		if err != nil || !info.Modified.Equal(now) {
			t.Errorf("Stat(%q) = %+v, %v, want the time %v", path, info, err, now)
		}
	}
}

// TestInBubble watches inside of a synctest bubble: a Watch that waits lets
// the bubble's time go on, and what it tells of comes in order and merged.
func TestInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := mem.New()
		var got []string
		ready := make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- s.Watch(ctx, "/d", func() { close(ready) }, func(path string) { got = append(got, path) })
		}()
		<-ready
		for _, path := range []string{"/d/b", "/d/a", "/e"} {
			if err := s.Create(ctx, path, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := s.RemoveAll(ctx, "/d"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Watch ended with %v", err)
		}
		if want := []string{"/d/b", "/d/a", "/d/a", "/d/b"}; !slices.Equal(got, want) {
			t.Errorf("Watch told of %q, want %q", got, want)
		}
	})
}

// TestCloseEndsWatch closes a handle under its watch.
func TestCloseEndsWatch(t *testing.T) {
	s := mem.New()
	err := s.Watch(t.Context(), "/", func() { s.Close() }, func(string) {})
	if !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("Watch ended with %v", err)
	}
	if err := s.Create(t.Context(), "/f", nil); !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("Create after Close: %v", err)
	}
	if err := s.Handle().Create(t.Context(), "/f", nil); err != nil {
		t.Errorf("Create on another handle: %v", err)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		s := mem.New()
		if err := s.Create(b.Context(), "/d/f", nil); err != nil {
			b.Fatal(err)
		}
	}
}
