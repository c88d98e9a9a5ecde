package dir

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// breakCall makes one of a store's calls fail, always.
func breakCall(s *Store, call string, err error) {
	switch call {
	case "write":
		s.calls.write = func(f *os.File, p []byte) (int, error) {
			n, _ := f.Write(p[:len(p)/2])
			return n, err
		}
	case "copy":
		s.calls.copy = func(_, _ *os.File, _ int64) (int64, error) { return 0, err }
	case "sync":
		s.calls.sync = func(*os.File) error { return err }
	case "syncDir":
		s.calls.syncDir = func(string) error { return err }
	case "link":
		s.calls.link = func(string, string) error { return err }
	case "rename":
		s.calls.rename = func(string, string) error { return err }
	case "remove":
		s.calls.remove = func(string) error { return err }
	case "chtimes":
		s.calls.chtimes = func(string, time.Time, time.Time) error { return err }
	default:
		panic(call)
	}
}

// changes are the ways to change /d/f, which is absent, or /d/old, which is
// there.
var changes = map[string]func(ctx context.Context, s *Store, ref store.Ref, version store.Version) error{
	"Create": func(ctx context.Context, s *Store, _ store.Ref, _ store.Version) error {
		return s.Create(ctx, "/d/f", store.Bytes([]byte("content")))
	},
	"CreateRef": func(ctx context.Context, s *Store, ref store.Ref, _ store.Version) error {
		return s.Create(ctx, "/d/f", store.Refs(ref))
	},
	"CreateMixed": func(ctx context.Context, s *Store, ref store.Ref, _ store.Version) error {
		return s.Create(ctx, "/d/f", append(store.Bytes([]byte("head")), store.Refs(ref)...))
	},
	"ReplaceNone": func(ctx context.Context, s *Store, _ store.Ref, _ store.Version) error {
		_, err := s.Replace(ctx, "/d/f", []byte("content"), "")
		return err
	},
	"Replace": func(ctx context.Context, s *Store, _ store.Ref, version store.Version) error {
		_, err := s.Replace(ctx, "/d/old", []byte("content"), version)
		return err
	},
	"Upload": func(ctx context.Context, s *Store, _ store.Ref, _ store.Version) error {
		_, err := s.Upload(ctx, []byte("content"))
		return err
	},
	"Remove": func(ctx context.Context, s *Store, _ store.Ref, _ store.Version) error {
		return s.Remove(ctx, "/d/old")
	},
	"RemoveAll": func(ctx context.Context, s *Store, _ store.Ref, _ store.Version) error {
		return s.RemoveAll(ctx, "/d")
	},
}

// TestBrokenCalls makes each system call of each change fail and checks what
// is said of it, and that it is true.
func TestBrokenCalls(t *testing.T) {
	full, lost := syscall.ENOSPC, syscall.EIO
	for _, c := range []struct {
		change string
		call   string
		err    error
		want   error // nil: the change does not mind
		done   bool  // it has taken effect
	}{
		{"Create", "write", full, smq.ErrNoSpace, false},
		{"Create", "write", syscall.EDQUOT, smq.ErrNoSpace, false},
		{"Create", "write", syscall.EFBIG, smq.ErrNoSpace, false},
		{"Create", "write", lost, lost, false},
		{"Create", "sync", full, smq.ErrNoSpace, false},
		{"Create", "sync", lost, lost, false},
		{"Create", "link", full, smq.ErrNoSpace, false},
		{"Create", "link", syscall.EPERM, syscall.EPERM, false},
		{"Create", "link", lost, store.ErrAmbiguous, false},
		{"Create", "syncDir", full, store.ErrAmbiguous, true},
		{"Create", "syncDir", lost, store.ErrAmbiguous, true},
		{"Create", "copy", lost, nil, true},
		{"CreateRef", "write", full, nil, true},
		{"CreateRef", "link", full, smq.ErrNoSpace, false},
		{"CreateRef", "syncDir", lost, store.ErrAmbiguous, true},
		{"CreateRef", "remove", lost, nil, true},
		{"CreateMixed", "copy", full, smq.ErrNoSpace, false},
		{"CreateMixed", "copy", lost, lost, false},
		{"CreateMixed", "link", lost, store.ErrAmbiguous, false},
		{"ReplaceNone", "write", full, smq.ErrNoSpace, false},
		{"ReplaceNone", "chtimes", lost, lost, false},
		{"ReplaceNone", "link", full, smq.ErrNoSpace, false},
		{"ReplaceNone", "link", lost, store.ErrAmbiguous, false},
		{"ReplaceNone", "syncDir", lost, store.ErrAmbiguous, true},
		{"Replace", "write", full, smq.ErrNoSpace, false},
		{"Replace", "sync", lost, lost, false},
		{"Replace", "rename", full, smq.ErrNoSpace, false},
		{"Replace", "rename", lost, store.ErrAmbiguous, false},
		{"Replace", "syncDir", lost, store.ErrAmbiguous, true},
		{"Upload", "write", full, smq.ErrNoSpace, false},
		{"Upload", "sync", lost, lost, false},
		{"Remove", "write", full, nil, true},
		{"Remove", "remove", syscall.EACCES, syscall.EACCES, false},
		{"Remove", "remove", lost, store.ErrAmbiguous, false},
		{"Remove", "syncDir", lost, store.ErrAmbiguous, true},
		{"RemoveAll", "rename", full, nil, true},
		{"RemoveAll", "rename", lost, store.ErrAmbiguous, false},
		{"RemoveAll", "syncDir", lost, store.ErrAmbiguous, true},
	} {
		t.Run(c.change+" "+c.call+" "+c.err.Error(), func(t *testing.T) {
			s := mustOpen(t, t.TempDir(), Options{Fsync: true})
			version, err := s.Replace(t.Context(), "/d/old", []byte("old"), "")
			if err != nil {
				t.Fatal(err)
			}
			ref := mustUpload(t, s, []byte("content"))
			whole := s.calls
			breakCall(s, c.call, c.err)
			err = changes[c.change](t.Context(), s, ref, version)
			s.calls = whole

			if !errors.Is(err, c.want) {
				t.Errorf("it fails with %v, want %v", err, c.want)
			}
			if errors.Is(err, store.ErrAmbiguous) && (c.want != store.ErrAmbiguous || errors.Is(err, smq.ErrNoSpace)) {
				t.Errorf("it fails with %v, which is two kinds", err)
			}
			if got := hasEffect(t, s, c.change); got != c.done {
				t.Errorf("after %v it has taken effect: %v", err, got)
			}
			for _, name := range leftovers(t, s) {
				if name != uploadPrefix+ref.Pieces[0].ID {
					t.Errorf("it leaves %s", name)
				}
			}
		})
	}
}

// hasEffect looks whether a change of the table above was made.
func hasEffect(t *testing.T, s *Store, change string) bool {
	t.Helper()
	switch change {
	case "Upload":
		return len(leftovers(t, s)) > 1
	case "Replace":
		data, _, err := s.Read(t.Context(), "/d/old")
		if err != nil {
			t.Error(err)
		}
		return string(data) == "content"
	case "Remove", "RemoveAll":
		_, err := s.Stat(t.Context(), "/d/old")
		return errors.Is(err, smq.ErrNotFound)
	default:
		data, _, err := s.Read(t.Context(), "/d/f")
		return err == nil && strings.HasSuffix(string(data), "content")
	}
}

// TestExistsIsDurable repeats a create whose folder could not be synced: that
// the name is taken is not said before it is sure to stay so.
func TestExistsIsDurable(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Fsync: true})
	ref := mustUpload(t, s, []byte("content"))
	whole := s.calls
	breakCall(s, "syncDir", syscall.EIO)
	for range 3 {
		for _, content := range [][]store.Part{store.Refs(ref), store.Bytes([]byte("other"))} {
			if err := s.Create(t.Context(), "/d/f", content); !errors.Is(err, store.ErrAmbiguous) {
				t.Errorf("Create: %v", err)
			}
		}
	}
	s.calls = whole
	for range 2 {
		if err := s.Create(t.Context(), "/d/f", store.Refs(ref)); !errors.Is(err, smq.ErrExists) {
			t.Errorf("Create: %v", err)
		}
	}
	if data, _, err := s.Read(t.Context(), "/d/f"); string(data) != "content" || err != nil {
		t.Errorf("Read = %q, %v", data, err)
	}
}

// TestHungDisk has the disk hang in each of the steps that wait for it, and
// the caller leave. What the caller is told stays true when the disk goes on.
func TestHungDisk(t *testing.T) {
	for _, c := range []struct {
		change, call string
		ambiguous    bool
	}{
		{"Create", "sync", false},
		{"Create", "link", true},
		{"Create", "syncDir", true},
		{"CreateRef", "link", true},
		{"CreateMixed", "sync", false},
		{"Replace", "sync", false},
		{"Replace", "chtimes", false},
		{"Replace", "rename", true},
		{"Upload", "sync", false},
		{"Remove", "remove", true},
		{"RemoveAll", "rename", true},
	} {
		t.Run(c.change+" "+c.call, func(t *testing.T) {
			s := mustOpen(t, t.TempDir(), Options{Fsync: true})
			version, err := s.Replace(t.Context(), "/d/old", []byte("old"), "")
			if err != nil {
				t.Fatal(err)
			}
			ref := mustUpload(t, s, []byte("content"))
			hung, release := hang(s, c.call)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-hung
				cancel()
			}()
			err = changes[c.change](ctx, s, ref, version)
			if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrAmbiguous) != c.ambiguous {
				t.Errorf("it fails with %v, ambiguous: want %v", err, c.ambiguous)
			}
			close(release)
			drain(s)
			if done := hasEffect(t, s, c.change); done != c.ambiguous {
				t.Errorf("after %v, and when the disk went on, it has taken effect: %v", err, done)
			}
		})
	}
}

// hang makes one of a store's calls wait, and tells when it does.
func hang(s *Store, call string) (hung, release chan struct{}) {
	hung, release = make(chan struct{}, 100), make(chan struct{})
	wait := func() {
		hung <- struct{}{}
		<-release
	}
	whole := s.calls
	switch call {
	case "sync":
		s.calls.sync = func(f *os.File) error { wait(); return whole.sync(f) }
	case "syncDir":
		s.calls.syncDir = func(path string) error { wait(); return whole.syncDir(path) }
	case "link":
		s.calls.link = func(o, n string) error { wait(); return whole.link(o, n) }
	case "rename":
		s.calls.rename = func(o, n string) error { wait(); return whole.rename(o, n) }
	case "remove":
		s.calls.remove = func(n string) error { wait(); return whole.remove(n) }
	case "chtimes":
		s.calls.chtimes = func(n string, a, m time.Time) error { wait(); return whole.chtimes(n, a, m) }
	default:
		panic(call)
	}
	return hung, release
}

// drain waits until no change is under way, also none whose caller has left.
func drain(s *Store) {
	for range cap(s.slots) {
		s.slots <- struct{}{}
	}
	for range cap(s.slots) {
		<-s.slots
	}
}

// TestHungDiskIsBounded has as many changes hang as may be under way: one more
// does not begin, and its caller can leave.
func TestHungDiskIsBounded(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Fsync: true})
	s.slots = make(chan struct{}, 2)
	hung, release := hang(s, "sync")
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 3)
	create := func(path string) { errs <- s.Create(ctx, path, store.Bytes([]byte("x"))) }
	go create("/1")
	go create("/2")
	<-hung
	<-hung
	go create("/3")
	cancel()
	for range 3 {
		if err := <-errs; !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Create: %v", err)
		}
	}
	close(release)
	drain(s)
	if infos, err := s.List(t.Context(), "/", "", 0); len(infos) != 0 || err != nil {
		t.Errorf("List = %+v, %v", infos, err)
	}
	if got := leftovers(t, s); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestCancelWhileWriting ends the context between two writes of one file.
func TestCancelWhileWriting(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	write := s.calls.write
	writes := 0
	s.calls.write = func(f *os.File, p []byte) (int, error) {
		if writes++; writes == 2 {
			cancel()
		}
		return write(f, p)
	}
	err := s.Create(ctx, "/f", store.Bytes(make([]byte, 5*writeSize)))
	if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrAmbiguous) || writes != 2 {
		t.Errorf("Create fails with %v after %d writes", err, writes)
	}
	if got := leftovers(t, s); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}
