package dir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (a, b store.Store) {
		root := t.TempDir()
		return mustOpen(t, root, Options{Fsync: true}), mustOpen(t, root, Options{Fsync: true})
	})
}

func TestConformanceWithoutFsync(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (a, b store.Store) {
		root := filepath.Join(t.TempDir(), "to", "come")
		return mustOpen(t, root, Options{}), mustOpen(t, root, Options{})
	})
}

// mustOpen opens a store that is closed when the test ends.
func mustOpen(t testing.TB, root string, opts Options) *Store {
	t.Helper()
	s, err := Open(root, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// leftovers lists what is in .tmp.
func leftovers(t testing.TB, s *Store) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.root, tmpDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func mustUpload(t testing.TB, s *Store, data ...[]byte) store.Ref {
	t.Helper()
	ref, err := s.Upload(context.Background(), data...)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// TestOpen opens what is not a directory, and writes nothing before the first
// change.
func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("Open of a file: %v", err)
	}
	if _, err := Open(filepath.Join(file, "below"), Options{}); err == nil {
		t.Errorf("Open below a file succeeded")
	}

	root := filepath.Join(t.TempDir(), "a", "b")
	s := mustOpen(t, root, Options{})
	if infos, err := s.List(t.Context(), "/", "", 0); len(infos) != 0 || err != nil {
		t.Errorf("List = %v, %v", infos, err)
	}
	if _, err := s.Stat(t.Context(), "/f"); !errors.Is(err, smq.ErrNotFound) {
		t.Errorf("Stat: %v", err)
	}
	if _, err := os.Lstat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading has made the root: %v", err)
	}
	if err := s.Create(t.Context(), "/f", nil); err != nil {
		t.Errorf("Create: %v", err)
	}
	if got := leftovers(t, s); len(got) != 0 {
		t.Errorf("Create leaves %q", got)
	}
}

// TestOpenByLink reaches a store by a symbolic link, and stays with what it led
// to.
func TestOpenByLink(t *testing.T) {
	tmp := t.TempDir()
	first, second, link := filepath.Join(tmp, "1"), filepath.Join(tmp, "2"), filepath.Join(tmp, "link")
	for _, d := range []string{first, second} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	symlink(t, first, link)
	s := mustOpen(t, link, Options{})
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	symlink(t, second, link)
	if err := s.Create(t.Context(), "/f", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(first, "f")); err != nil {
		t.Error(err)
	}
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestURL(t *testing.T) {
	for _, c := range []struct {
		path string
		opts Options
		want string
	}{
		{"/var/lib/smq", Options{Fsync: true}, "dir:///var/lib/smq"},
		{"/var/lib/smq/", Options{}, "dir:///var/lib/smq?fsync=false"},
		{"/a b/ü?", Options{Fsync: true}, "dir:///a%20b/%C3%BC%3F"},
	} {
		s, err := newStore(c.path, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != c.want {
			t.Errorf("String of %q = %q, want %q", c.path, got, c.want)
		}
	}
}

// TestFilesAreTheirContent looks at the directory with other tools.
func TestFilesAreTheirContent(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Fsync: true})
	if err := s.Create(t.Context(), "/d/created", store.Bytes([]byte("one "), []byte("two"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "/d/taken over", store.Refs(mustUpload(t, s, []byte("three")))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), "/d/replaced", []byte("four"), ""); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"created": "one two", "taken over": "three", "replaced": "four"} {
		got, err := os.ReadFile(filepath.Join(s.root, "d", name))
		if string(got) != want || err != nil {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestUploadIsNotCopied sees that a file made of one upload is that upload.
func TestUploadIsNotCopied(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{Fsync: true})
	ref := mustUpload(t, s, []byte("content"))
	name, _ := s.pieceName(ref.Pieces[0].ID)
	before, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "/f", store.Refs(ref)); err != nil {
		t.Fatal(err)
	}
	after, err := os.Lstat(s.native("/f"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file is another one than the upload: %v", err)
	}
	if got := leftovers(t, s); len(got) != 0 {
		t.Errorf("Create leaves %q", got)
	}
}

// TestPieceOfWrongSize uses a reference that says another size than the upload
// has.
func TestPieceOfWrongSize(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	for _, size := range []int64{0, 6, 8} {
		ref := mustUpload(t, s, []byte("content"))
		ref.Pieces[0].Size = size
		for _, content := range [][]store.Part{store.Refs(ref), append(store.Bytes([]byte("x")), store.Refs(ref)...)} {
			if err := s.Create(t.Context(), "/f", content); !errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("Create with %d instead of 7 bytes: %v", size, err)
			}
		}
	}
	if _, err := s.Stat(t.Context(), "/f"); !errors.Is(err, smq.ErrNotFound) {
		t.Errorf("Stat: %v", err)
	}
}

// TestPieceNames takes nothing for a piece's ID that would lead elsewhere.
func TestPieceNames(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	ref := mustUpload(t, s, []byte("content"))
	id := ref.Pieces[0].ID
	if err := os.WriteFile(filepath.Join(s.root, "secret-0123456789abcdef"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "0", id + "0", id[1:], strings.ToUpper("abcdef") + id[6:], id[1:] + "/", "/../../secret-0123456789abcdef", strings.Repeat("../", 10) + "et",
	} {
		content := store.Refs(store.Ref{Pieces: []store.Piece{{ID: bad, Size: 7}}})
		if name, ok := s.pieceName(bad); ok {
			t.Errorf("%q is the piece %s", bad, name)
		}
		if err := s.Create(t.Context(), "/f", content); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("Create of %q: %v", bad, err)
		}
		if err := s.Discard(t.Context(), *content[0].Ref); err != nil {
			t.Errorf("Discard of %q: %v", bad, err)
		}
	}
	if err := s.Create(t.Context(), "/f", store.Refs(ref)); err != nil {
		t.Error(err)
	}
}

// TestSweep deletes what was left behind a day ago and nothing younger.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{})
	old, young := mustUpload(t, s, []byte("old")), mustUpload(t, s, []byte("young"))
	used := mustUpload(t, s, []byte("used"))
	if err := s.Create(t.Context(), "/d/f", store.Refs(used)); err != nil {
		t.Fatal(err)
	}
	tmp := func(name string) string { return filepath.Join(root, tmpDir, name) }
	oldName, _ := s.pieceName(old.Pieces[0].ID)
	for _, name := range []string{tmp("t-old"), tmp("t-young")} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A process died between the link and the end of Create.
	if err := os.Link(s.native("/d/f"), tmp("t-linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(tmp("x-trash/d/e"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{
		oldName: sweepAge + time.Second, tmp("t-old"): sweepAge + time.Second, tmp("t-linked"): 2 * sweepAge, tmp("t-young"): sweepAge - time.Minute,
	} {
		if err := os.Chtimes(name, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	s.sweep(t.Context(), now.Add(-sweepAge))
	want := []string{"t-young", uploadPrefix + young.Pieces[0].ID}
	if got := leftovers(t, s); !slices.Equal(got, want) {
		t.Errorf("the sweep leaves %q, want %q", got, want)
	}
	if data, _, err := s.Read(t.Context(), "/d/f"); string(data) != "used" || err != nil {
		t.Errorf("Read = %q, %v", data, err)
	}
	if err := s.Create(t.Context(), "/d/g", store.Refs(old)); !errors.Is(err, smq.ErrNotFound) {
		t.Errorf("Create of a swept upload: %v", err)
	}
}

// TestSweepAtOpen waits for a fresh handle to sweep.
func TestSweepAtOpen(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{})
	if err := s.Create(t.Context(), "/f", nil); err != nil {
		t.Fatal(err)
	}
	trash := filepath.Join(root, tmpDir, "x-trash")
	if err := os.Mkdir(trash, 0o700); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		w := mustWatchRaw(t, filepath.Dir(trash))
		defer w.Close()
		for _, err := os.Lstat(trash); err == nil; _, err = os.Lstat(trash) {
			<-w.Events
		}
	}()
	mustOpen(t, root, Options{})
	<-gone
}

// TestLinksAreNotFollowed puts links and a link to a folder in a store: every
// call reports them.
func TestLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	s := mustOpen(t, root, Options{})
	if err := s.Create(t.Context(), "/d/f", nil); err != nil {
		t.Fatal(err)
	}
	symlink(t, filepath.Join(outside, "f"), filepath.Join(root, "d", "file"))
	symlink(t, outside, filepath.Join(root, "folder"))

	ctx := t.Context()
	for _, path := range []string{"/d/file", "/folder/f", "/folder/d/f"} {
		_, _, readErr := s.Read(ctx, path)
		_, readAtErr := s.ReadAt(ctx, path, make([]byte, 10), 0)
		_, statErr := s.Stat(ctx, path)
		_, replaceErr := s.Replace(ctx, path, nil, "")
		for i, err := range []error{readErr, readAtErr, statErr, replaceErr} {
			if !errors.Is(err, smq.ErrInvalid) || !strings.Contains(err.Error(), "follow") {
				t.Errorf("call %d of %s: %v", i, path, err)
			}
		}
	}
	if err := s.Create(ctx, "/d/file", nil); !errors.Is(err, smq.ErrExists) {
		t.Errorf("Create at a link: %v", err)
	}
	_, listErr := s.List(ctx, "/d", "", 0)
	_, listBelowErr := s.List(ctx, "/folder", "", 0)
	for i, err := range []error{
		listErr, listBelowErr, s.Create(ctx, "/folder/new", nil), s.Remove(ctx, "/folder/f"), s.RemoveAll(ctx, "/folder/d"),
		s.Watch(ctx, "/folder", nil, nil),
	} {
		if !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	// The links themselves can be removed.
	if err := errors.Join(s.Remove(ctx, "/d/file"), s.RemoveAll(ctx, "/folder")); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(filepath.Join(outside, "f"))
	if string(got) != "secret" || err != nil {
		t.Errorf("outside is %q, %v", got, err)
	}
}
