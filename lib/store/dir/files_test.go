package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// open reports whether a file is open.
func (f *openFile) isOpen() bool {
	_, err := f.file.Stat()
	return err == nil
}

// TestFilesAreFew keeps no more files open than it may; those in use stay open
// until they are released.
func TestFilesAreFew(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	s.files = newFiles(2)
	var used []*openFile
	for i := range 4 {
		path := fmt.Sprintf("/%d", i)
		if err := s.Create(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		f, err := s.use(path)
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, f)
	}
	want := func(when string, open ...bool) {
		t.Helper()
		var got []bool
		for _, f := range used {
			got = append(got, f.isOpen())
		}
		if !slices.Equal(got, open) || len(s.files.open) > 2 {
			t.Errorf("%s: open are %v of which %d are kept, want %v", when, got, len(s.files.open), open)
		}
	}
	want("while all are in use", true, true, true, true)
	s.files.release(used[0])
	want("when one has been released", false, true, true, true)
	for _, f := range used[1:] {
		s.files.release(f)
	}
	want("when all have been released", false, false, true, true)

	again, err := s.use("/2")
	if err != nil || again != used[2] {
		t.Errorf("the open file is not used again: %v", err)
	}
	s.files.release(again)
	s.files.closeUnused()
	s.files.closeUnused()
	want("when they were not used for two rounds", false, false, false, false)
}

// TestOpenFileIsChecked keeps a file open by one handle while another one
// exchanges and removes it: the next read sees that.
func TestOpenFileIsChecked(t *testing.T) {
	root := t.TempDir()
	a, b := mustOpen(t, root, Options{}), mustOpen(t, root, Options{})
	read := func() (string, error) {
		buf := make([]byte, 3)
		n, err := a.ReadAt(t.Context(), "/f", buf, 0)
		return string(buf[:n]), err
	}
	version, err := b.Replace(t.Context(), "/f", []byte("one"), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(); got != "one" || err != nil {
		t.Errorf("ReadAt = %q, %v", got, err)
	}
	kept := a.files.open["/f"]
	if got, err := read(); got != "one" || err != nil || a.files.open["/f"] != kept {
		t.Errorf("ReadAt = %q, %v, and the file was opened again", got, err)
	}
	if _, err := b.Replace(t.Context(), "/f", []byte("two"), version); err != nil {
		t.Fatal(err)
	}
	if got, err := read(); got != "two" || err != nil || kept.isOpen() {
		t.Errorf("ReadAt = %q, %v; the old file is open: %v", got, err, kept.isOpen())
	}
	if err := b.Remove(t.Context(), "/f"); err != nil {
		t.Fatal(err)
	}
	if got, err := read(); !errors.Is(err, smq.ErrNotFound) {
		t.Errorf("ReadAt = %q, %v, want not found", got, err)
	}
	if err := a.Close(); err != nil || len(a.files.open) != 0 {
		t.Errorf("Close: %v, and %d files stay open", err, len(a.files.open))
	}
}

// TestListSkipsWhatVanishes pages through a large folder in which names vanish
// between their reading and their description: what follows makes up for them.
func TestListSkipsWhatVanishes(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	if err := s.Create(t.Context(), "/d/first", nil); err != nil {
		t.Fatal(err)
	}
	const n = 1000
	for i := range n {
		if err := os.WriteFile(s.native(fmt.Sprintf("/d/%04d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 10, 300, 5000} {
		names, err := s.namesAfter(t.Context(), "/d", "0599", limit)
		if want := min(limit, 400+1); err != nil || len(names) != want || names[0] != "0600" || !slices.IsSorted(names) {
			t.Errorf("%d names from %q, %v, want %d", len(names), names[0], err, want)
		}
	}
	s.calls.lstat = func(name string) (fs.FileInfo, error) {
		if !strings.HasSuffix(name, "9") {
			return nil, fs.ErrNotExist
		}
		return os.Lstat(name)
	}
	for after, want := range map[string]int{"0000": 50, "0600": 40, "0999": 0} {
		infos, err := s.List(t.Context(), "/d", after, 50)
		if err != nil || len(infos) != want {
			t.Errorf("List after %s = %d entries, %v, want %d", after, len(infos), err, want)
		}
	}
}

// TestStatIsTheStoresTime sees that times are the disk's.
func TestStatIsTheStoresTime(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	if err := s.Create(t.Context(), "/f", store.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	when := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(s.native("/f"), when, when); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Stat(t.Context(), "/f"); err != nil || !info.Modified.Equal(when) {
		t.Errorf("Stat = %+v, %v", info, err)
	}
}
