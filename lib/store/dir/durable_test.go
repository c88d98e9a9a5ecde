package dir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gofrs/flock"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// journal notes, in order, what several handles do to the names of one store,
// so that a test can tell what a power cut would leave.
type journal struct {
	mu     sync.Mutex
	root   string
	events []event
}

type event struct {
	kind string // mkdir, link, sync, remove
	path string
	by   *Store
}

// open returns a handle whose calls are noted. Each is noted in the same step
// as it is done.
func (j *journal) open(t *testing.T) *Store {
	s := mustOpen(t, j.root, Options{Fsync: true})
	whole := s.calls
	note := func(kind, name string, call func() error) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		err := call()
		if err == nil {
			path, _ := strings.CutPrefix(name, s.root)
			j.events = append(j.events, event{kind, path, s})
		}
		return err
	}
	s.calls.mkdir = func(path string) error {
		return note("mkdir", path, func() error { return whole.mkdir(path) })
	}
	s.calls.syncDir = func(path string) error {
		return note("sync", path, func() error { return whole.syncDir(path) })
	}
	s.calls.link = func(o, n string) error {
		return note("link", n, func() error { return whole.link(o, n) })
	}
	s.calls.rename = func(o, n string) error {
		return note("remove", o, func() error { return whole.rename(o, n) })
	}
	s.calls.remove = func(n string) error {
		return note("remove", n, func() error { return whole.remove(n) })
	}
	return s
}

// lastBefore finds the last event of a kind for a path, or -1.
func (j *journal) lastBefore(end int, kind, path string, by *Store) int {
	for i := end - 1; i >= 0; i-- {
		if e := j.events[i]; e.kind == kind && e.path == path && (by == nil || e.by == by) {
			return i
		}
	}
	return -1
}

// survives says why a file that a handle has just created would be lost in a
// power cut; if it, or a folder above it, has been removed since, it may be.
func (j *journal) survives(path string, by *Store) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := len(j.events)
	named := j.lastBefore(now, "link", path, by)
	for d := path; d != "/"; d = parent(d) {
		if j.lastBefore(now, "remove", d, nil) > named {
			return nil
		}
	}
	for d := path; d != "/"; d = parent(d) {
		in := parent(d)
		if d != path {
			named = j.lastBefore(now, "mkdir", d, nil)
		}
		if j.lastBefore(now, "sync", in, nil) < named {
			return fmt.Errorf("after the creation of %s, nobody has synced the name of %s", path, d)
		}
	}
	return nil
}

// TestSuccessIsDurable has handles create files and remove folders at once.
// After each success all names that lead to the file are durable.
func TestSuccessIsDurable(t *testing.T) {
	const handles, steps = 3, 150
	j := &journal{root: t.TempDir()}
	var wg sync.WaitGroup
	for h := range handles {
		s := j.open(t)
		random := rand.New(rand.NewPCG(1, uint64(h)))
		wg.Go(func() {
			for step := range steps {
				folder := fmt.Sprintf("/%d/%d", random.IntN(2), random.IntN(3))
				var err error
				switch random.IntN(6) {
				case 0:
					err = s.RemoveAll(t.Context(), folder)
				case 1:
					if err = s.Remove(t.Context(), folder); errors.Is(err, smq.ErrConflict) {
						err = nil
					}
				default:
					path := fmt.Sprintf("%s/%d-%d", folder, h, step)
					if err = s.Create(t.Context(), path, nil); err == nil {
						err = j.survives(path, s)
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestFoldersOfOthersAreSynced creates files in folders that another handle
// has made and failed to make durable.
func TestFoldersOfOthersAreSynced(t *testing.T) {
	j := &journal{root: t.TempDir()}
	a, b := j.open(t), j.open(t)
	if err := a.Create(t.Context(), "/first", nil); err != nil {
		t.Fatal(err)
	}
	breakCall(a, "syncDir", syscall.EIO)
	if err := a.Create(t.Context(), "/d/e/g/f", nil); !errors.Is(err, store.ErrAmbiguous) {
		t.Fatalf("Create: %v", err)
	}
	if err := b.Create(t.Context(), "/d/e/g/h", nil); err != nil {
		t.Fatal(err)
	}
	if err := j.survives("/d/e/g/h", b); err != nil {
		t.Error(err)
	}
}

// TestKnownFoldersAreSyncedOnce counts: the second file of a folder costs one
// sync of the folder, not one of each above it.
func TestKnownFoldersAreSyncedOnce(t *testing.T) {
	j := &journal{root: t.TempDir()}
	s := j.open(t)
	for i, want := range []int{4, 1, 1} {
		before := len(j.events)
		if err := s.Create(t.Context(), fmt.Sprintf("/a/b/c/%d", i), nil); err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, e := range j.events[before:] {
			if e.kind == "sync" && !strings.HasPrefix(e.path, "/.") {
				got++
			}
		}
		if i > 0 && got != want || got < want {
			t.Errorf("file %d: %d syncs of folders, want %d", i, got, want)
		}
	}
}

// TestRemovalHoldsFolderLock stops removals of a folder in the middle: from the
// new token on, until the folder is gone, nobody else has the folder lock.
func TestRemovalHoldsFolderLock(t *testing.T) {
	for call, remove := range map[string]func(s *Store) error{
		"remove": func(s *Store) error { return s.Remove(t.Context(), "/d/e") },
		"rename": func(s *Store) error { return s.RemoveAll(t.Context(), "/d/e") },
	} {
		s := mustOpen(t, t.TempDir(), Options{Fsync: true})
		if err := s.Create(t.Context(), "/d/e/f", nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Remove(t.Context(), "/d/e/f"); err != nil {
			t.Fatal(err)
		}
		before, err := s.locks.quietToken()
		if err != nil {
			t.Fatal(err)
		}
		hung, release := hang(s, call)
		done := make(chan error)
		go func() { done <- remove(s) }()
		<-hung
		during, err := s.locks.token()
		if err != nil || during == before {
			t.Errorf("%s: the token is still %x, %v", call, during, err)
		}
		other := flock.New(s.locks.file(folderLock))
		if got, err := other.TryLock(); got || err != nil {
			t.Errorf("%s: the folder lock is free: %v, %v", call, got, err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, err := other.TryLock(); !got || err != nil {
			t.Errorf("%s: the folder lock is taken: %v, %v", call, got, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}
