package dir

import (
	"os"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/seaweedmq/smq/lib/store"
)

// TestVersionsOnCoarseClocks replaces equal bytes quickly where the file system
// keeps times in large units.
func TestVersionsOnCoarseClocks(t *testing.T) {
	for _, unit := range []time.Duration{1, 100, time.Microsecond, time.Second, 2 * time.Second} {
		s := mustOpen(t, t.TempDir(), Options{})
		s.calls.chtimes = func(name string, atime, mtime time.Time) error {
			return os.Chtimes(name, atime, time.Unix(0, mtime.UnixNano()/int64(unit)*int64(unit)))
		}
		seen := map[store.Version]bool{}
		var version store.Version
		for range 20 {
			next, err := s.Replace(t.Context(), "/f", []byte("same"), version)
			if err != nil {
				t.Fatalf("unit %v: %v", unit, err)
			}
			if _, read, err := s.Read(t.Context(), "/f"); read != next || err != nil {
				t.Fatalf("unit %v: Read: version %q, %v, want %q", unit, read, err, next)
			}
			if seen[next] {
				t.Fatalf("unit %v: version %q comes again", unit, next)
			}
			seen[next] = true
			version = next
		}
	}
}

// TestVersionsWithoutTimes finds a file system that keeps no times.
func TestVersionsWithoutTimes(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	s.calls.chtimes = func(string, time.Time, time.Time) error { return nil }
	if _, err := s.Replace(t.Context(), "/f", nil, ""); err == nil {
		t.Error("Replace succeeds")
	}
	if got := leftovers(t, s); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestVersionsWhenTheClockStepsBack has the last stamp, or the file's time, lie
// in the future.
func TestVersionsWhenTheClockStepsBack(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	first, err := s.Replace(t.Context(), "/f", []byte("same"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "/f"); err != nil {
		t.Fatal(err)
	}
	future := time.Now().Add(time.Hour)
	if err := s.locks.setStamp(s.locks.of("/f"), future.UnixNano()); err != nil {
		t.Fatal(err)
	}
	second, err := s.Replace(t.Context(), "/f", []byte("same"), "")
	if err != nil || second == first {
		t.Fatalf("Replace = %q, %v, the first is %q", second, err, first)
	}
	info, err := s.Stat(t.Context(), "/f")
	if err != nil || info.Modified.UnixNano() != future.UnixNano()+1 {
		t.Errorf("Stat = %+v, %v, want the stamp after %v", info, err, future)
	}

	further := future.Add(time.Hour)
	if err := os.Chtimes(s.native("/f"), further, further); err != nil {
		t.Fatal(err)
	}
	_, third, err := s.Read(t.Context(), "/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), "/f", []byte("same"), third); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Stat(t.Context(), "/f"); err != nil || !info.Modified.After(further) {
		t.Errorf("Stat = %+v, %v, want a time after %v", info, err, further)
	}
}

// TestPathLock stops Replace and Remove in the middle: the path's lock is theirs
// from the comparison to the end.
func TestPathLock(t *testing.T) {
	for _, c := range []struct{ change, call string }{
		{"Replace", "chtimes"}, {"Replace", "rename"}, {"Remove", "remove"}, {"RemoveAll", "rename"},
	} {
		s := mustOpen(t, t.TempDir(), Options{})
		version, err := s.Replace(t.Context(), "/d/old", nil, "")
		if err != nil {
			t.Fatal(err)
		}
		lock := flock.New(s.locks.file(s.locks.of("/d/old")))
		hung, release := hang(s, c.call)
		done := make(chan error)
		go func() { done <- changes[c.change](t.Context(), s, store.Ref{}, version) }()
		<-hung
		if got, err := lock.TryLock(); got || err != nil {
			t.Errorf("%s in %s: the path's lock is free: %v, %v", c.change, c.call, got, err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, err := lock.TryLock(); !got || err != nil {
			t.Errorf("%s in %s: the path's lock is taken: %v, %v", c.change, c.call, got, err)
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}
}
