package storetest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing/iotest"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var readTests = []testCase{
	{"ReadAt", testReadAt},
	{"ReadAtAsReader", testReadAtAsReader},
	{"ReadAtMany", testReadAtMany},
	{"ReadAtAfterChange", testReadAtAfterChange},
	{"ReadAbsent", testReadAbsent},
	{"ReadFolder", testReadFolder},
}

// readerAt is a file as an io.ReaderAt.
type readerAt struct {
	h    *handles
	s    store.Store
	path string
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	return r.s.ReadAt(r.h.Context(), r.path, p, off)
}

// testReadAt reads all edges of files that came to be in different ways.
func testReadAt(h *handles) {
	const size = 10_000
	want := pattern(1, size)
	h.create(h.a, "/r/bytes", want[:10], want[10:])
	if err := h.a.Create(h.Context(), "/r/refs", store.Refs(h.upload(h.a, want[:4000]), h.upload(h.b, want[4000:]))); err != nil {
		h.Fatalf("Create: %v", err)
	}
	h.replace(h.a, "/r/replaced", string(want), "")
	for _, p := range []string{"/r/bytes", "/r/refs", "/r/replaced"} {
		for _, off := range []int64{0, 1, 9, 10, 11, 3999, 4000, 4001, size - 1, size, size + 1, 1 << 40} {
			for _, n := range []int{0, 1, 2, 10, 4000, 4001, size - 1, size, size + 1, 3 * size} {
				h.readAt(p, want, off, n)
			}
		}
		n, err := h.b.ReadAt(h.Context(), p, make([]byte, 1), -1)
		if n != 0 {
			h.Errorf("ReadAt(%q) at -1 returned %d bytes", p, n)
		}
		h.fails("ReadAt at a negative offset", err, smq.ErrInvalid)
	}
}

func (h *handles) readAt(p string, file []byte, off int64, n int) {
	h.Helper()
	want := file[min(off, int64(len(file))):]
	want = want[:min(n, len(want))]
	got := make([]byte, n)
	m, err := h.b.ReadAt(h.Context(), p, got, off)
	if m != len(want) {
		h.Fatalf("ReadAt(%q) of %d at %d = %d, %v, want %d", p, n, off, m, err, len(want))
	}
	h.same(p, got[:m], want)
	atEnd := off+int64(n) >= int64(len(file))
	switch {
	case m < n && err != io.EOF:
		h.Errorf("ReadAt(%q) of %d at %d = %d, %v, want EOF", p, n, off, m, err)
	case err != nil && (err != io.EOF || !atEnd):
		h.Errorf("ReadAt(%q) of %d at %d = %d, %v", p, n, off, m, err)
	}
}

// testReadAtAsReader lets the standard library look for faults.
func testReadAtAsReader(h *handles) {
	want := pattern(1, 20_000)
	h.create(h.a, "/r/f", want)
	r := io.NewSectionReader(readerAt{h, h.b, "/r/f"}, 0, int64(len(want)))
	if err := iotest.TestReader(r, want); err != nil {
		h.Error(err)
	}
}

// testReadAtMany reads many files at once at random, more of them than a
// backend keeps open.
func testReadAtMany(h *handles) {
	const files, size = 300, 3000
	together(racers, func(i int) {
		for f := i; f < files; f += racers {
			if err := h.either(i).Create(h.Context(), fmt.Sprintf("/r/%d", f), store.Bytes(pattern(uint64(f), size))); err != nil {
				h.Errorf("Create: %v", err)
			}
		}
	})
	together(racers, func(i int) {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		got := make([]byte, 100)
		for range 200 {
			f, off := random.IntN(files), random.Int64N(size-100)
			if n, err := h.either(i).ReadAt(h.Context(), fmt.Sprintf("/r/%d", f), got, off); n != len(got) || err != nil {
				h.Errorf("ReadAt(%d) at %d = %d, %v", f, off, n, err)
			} else if want := pattern(uint64(f), size)[off:][:100]; string(got) != string(want) {
				h.Errorf("ReadAt(%d) at %d = %s, want %s", f, off, excerpt(got), excerpt(want))
			}
		}
	})
}

// testReadAtAfterChange reads a path through both handles while what is there
// is replaced, removed and made anew: nothing of before shows.
func testReadAtAfterChange(h *handles) {
	version := store.Version("")
	for i := range 20 {
		data := fmt.Sprintf("content number %d", i)
		version = h.replace(h.either(i), "/d/replaced", data, version)
		h.holds(h.a, "/d/replaced", []byte(data))
		h.holds(h.b, "/d/replaced", []byte(data))

		h.create(h.either(i), "/d/created", []byte(data))
		h.holds(h.a, "/d/created", []byte(data))
		h.holds(h.b, "/d/created", []byte(data))
		if err := h.either(i/2).Remove(h.Context(), "/d/created"); err != nil {
			h.Fatalf("Remove: %v", err)
		}
		h.absent(h.a, "/d/created")
		h.absent(h.b, "/d/created")
	}
}

func testReadAbsent(h *handles) {
	h.absent(h.a, "/none")
	h.absent(h.a, "/none/none/none")
	h.create(h.a, "/d/f", []byte("x"))
	for _, s := range []store.Store{h.a, h.b} {
		h.absent(s, "/d/g")
		h.absent(s, "/d/f/g")
		h.absent(s, "/d/f/g/h")
		h.absent(s, "/D")
	}
}

// testReadFolder reads where a folder is: there is no file.
func testReadFolder(h *handles) {
	h.create(h.a, "/d/e/f", []byte("x"))
	for _, p := range []string{"/d", "/d/e"} {
		if _, _, err := h.b.Read(h.Context(), p); !errors.Is(err, smq.ErrNotFound) {
			h.Errorf("Read(%q): %v, want not found", p, err)
		}
		if _, err := h.b.ReadAt(h.Context(), p, make([]byte, 1), 0); !errors.Is(err, smq.ErrNotFound) {
			h.Errorf("ReadAt(%q): %v, want not found", p, err)
		}
	}
}
