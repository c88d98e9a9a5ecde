package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var createTests = []testCase{
	{"Create", testCreate},
	{"CreateEmpty", testCreateEmpty},
	{"CreateExists", testCreateExists},
	{"CreateWhereAFolderIs", testCreateWhereAFolderIs},
	{"CreateBelowAFile", testCreateBelowAFile},
	{"CreateMixed", testCreateMixed},
	{"CreateRefsRepeat", testCreateRefsRepeat},
	{"CreateRefToNothing", testCreateRefToNothing},
	{"CreateBig", testCreateBig},
	{"CreateKeepsNoBuffer", testCreateKeepsNoBuffer},
	{"CloseOneHandle", testCloseOneHandle},
}

// testCreate creates small files at several depths; the other handle sees each
// of them at once.
func testCreate(h *handles) {
	for i, p := range []string{"/f", "/d/f", "/d/e/f", "/d/e/g", "/d.e/f", "/x/y/z/u/v/w", "/d/e/F", "/d/with space", "/d/ünï"} {
		content := pattern(uint64(i), 100+i)
		h.create(h.a, p, content[:50], content[50:])
		h.holds(h.b, p, content)
		h.holds(h.a, p, content)
		info, err := h.b.Stat(h.Context(), p)
		if err != nil || info.Name != path.Base(p) || info.Modified.IsZero() {
			h.Errorf("Stat(%q) = %+v, %v", p, info, err)
		}
	}
	info, err := h.b.Stat(h.Context(), "/d/e")
	if err != nil || info.Name != "e" || !info.Dir || info.Size != 0 {
		h.Errorf("Stat(/d/e) = %+v, %v, want a folder", info, err)
	}
}

func testCreateEmpty(h *handles) {
	contents := map[string][]store.Part{
		"/e/nil":          nil,
		"/e/none":         {},
		"/e/zero":         {{}},
		"/e/bytes":        store.Bytes(nil, []byte{}),
		"/e/ref":          store.Refs(store.Ref{}),
		"/e/uploaded":     store.Refs(h.upload(h.a)),
		"/e/uploaded-nil": store.Refs(h.upload(h.a, nil, []byte{})),
	}
	for p, content := range contents {
		if err := h.a.Create(h.Context(), p, content); err != nil {
			h.Fatalf("Create(%q): %v", p, err)
		}
		h.holds(h.b, p, nil)
		h.fails("a second Create", h.b.Create(h.Context(), p, content), smq.ErrExists)
	}
}

// testCreateExists repeats a create, with the same and with other content:
// nothing changes.
func testCreateExists(h *handles) {
	h.create(h.a, "/d/f", []byte("first"))
	for i := range 4 {
		s := h.either(i)
		h.fails("Create again", s.Create(h.Context(), "/d/f", store.Bytes([]byte("first"))), smq.ErrExists)
		h.fails("Create with another content", s.Create(h.Context(), "/d/f", store.Bytes([]byte("second, longer"))), smq.ErrExists)
		h.fails("Create with no content", s.Create(h.Context(), "/d/f", nil), smq.ErrExists)
	}
	h.replace(h.b, "/d/r", "replaced", "")
	h.fails("Create over Replace", h.a.Create(h.Context(), "/d/r", nil), smq.ErrExists)

	// What was uploaded stays the caller's when the name was taken.
	ref := h.upload(h.b, []byte("third"))
	h.fails("Create of a reference", h.b.Create(h.Context(), "/d/f", store.Refs(ref)), smq.ErrExists)
	if err := h.b.Create(h.Context(), "/d/g", store.Refs(ref)); err != nil {
		h.Errorf("Create with a reference that was not taken over: %v", err)
	}
	h.holds(h.b, "/d/f", []byte("first"))
	h.holds(h.b, "/d/r", []byte("replaced"))
	h.holds(h.a, "/d/g", []byte("third"))
}

func testCreateWhereAFolderIs(h *handles) {
	h.create(h.a, "/d/e/f", []byte("x"))
	h.fails("Create at a folder's path", h.b.Create(h.Context(), "/d/e", nil), smq.ErrExists)
	h.holds(h.b, "/d/e/f", []byte("x"))
}

// testCreateBelowAFile finds a file where a folder would have to be.
func testCreateBelowAFile(h *handles) {
	h.create(h.a, "/d/f", []byte("x"))
	for _, p := range []string{"/d/f/g", "/d/f/g/h"} {
		h.fails("Create below a file", h.b.Create(h.Context(), p, store.Bytes([]byte("y"))), smq.ErrInvalid)
		_, err := h.b.Replace(h.Context(), p, []byte("y"), "")
		h.fails("Replace below a file", err, smq.ErrInvalid)
		h.absent(h.a, p)
	}
	h.holds(h.b, "/d/f", []byte("x"))
}

// testCreateMixed makes content of bytes and references in many orders. The
// references go to the other handle as plain data.
func testCreateMixed(h *handles) {
	var (
		small = pattern(1, 61)
		large = pattern(2, 300_000)
		other = pattern(3, 70_000)
	)
	type part struct {
		data []byte
		ref  bool
	}
	for i, parts := range [][]part{
		{{large, true}},
		{{small, true}},
		{{small, false}, {large, true}},
		{{large, true}, {small, false}},
		{{large, true}, {other, true}},
		{{other, true}, {large, true}, {small, true}},
		{{small, false}, {other, true}, {small, false}, {large, true}, {small, false}},
		{{large, false}, {nil, true}, {other, true}, {nil, false}},
		{{other, false}, {large, false}, {small, false}},
	} {
		var content []store.Part
		var want []byte
		for _, p := range parts {
			want = append(want, p.data...)
			if p.ref {
				ref := h.overTheWire(h.upload(h.a, p.data))
				content = append(content, store.Part{Ref: &ref})
			} else {
				content = append(content, store.Part{Bytes: p.data})
			}
		}
		name := fmt.Sprintf("/mixed/%d", i)
		if err := h.b.Create(h.Context(), name, content); err != nil {
			h.Fatalf("Create(%q): %v", name, err)
		}
		h.holds(h.a, name, want)
	}
}

func (h *handles) overTheWire(ref store.Ref) (got store.Ref) {
	h.Helper()
	b, err := json.Marshal(ref)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil {
		h.Fatalf("Ref as JSON: %v", err)
	}
	return got
}

// testCreateRefsRepeat repeats creates that took references over, as after an
// answer that was lost.
func testCreateRefsRepeat(h *handles) {
	one := store.Refs(h.upload(h.a, pattern(1, 1000)))
	two := append(store.Bytes([]byte("head")), store.Refs(h.upload(h.a, pattern(2, 1000)), h.upload(h.a, pattern(3, 1000)))...)
	for name, content := range map[string][]store.Part{"/r/one": one, "/r/two": two} {
		if err := h.a.Create(h.Context(), name, content); err != nil {
			h.Fatalf("Create(%q): %v", name, err)
		}
		for i := range 4 {
			h.fails("Create again", h.either(i).Create(h.Context(), name, content), smq.ErrExists)
		}
	}
	h.holds(h.b, "/r/one", pattern(1, 1000))
	h.holds(h.b, "/r/two", bytes.Join([][]byte{[]byte("head"), pattern(2, 1000), pattern(3, 1000)}, nil))
}

// testCreateRefToNothing uses references to what has been discarded and to
// what never was.
func testCreateRefToNothing(h *handles) {
	gone := h.upload(h.a, pattern(1, 5000))
	if err := h.b.Discard(h.Context(), gone); err != nil {
		h.Fatalf("Discard: %v", err)
	}
	bogus := store.Ref{Pieces: []store.Piece{{ID: "../../etc/passwd", Size: 10}}}
	noID := store.Ref{Pieces: []store.Piece{{Size: 10}}}
	for _, ref := range []store.Ref{gone, bogus, noID} {
		kept := h.upload(h.a, []byte("kept"))
		h.fails("Create from nothing", h.a.Create(h.Context(), "/d/f", store.Refs(ref)), smq.ErrNotFound)
		content := append(store.Bytes([]byte("head")), store.Refs(kept, ref)...)
		h.fails("Create partly from nothing", h.b.Create(h.Context(), "/d/f", content), smq.ErrNotFound)
		h.absent(h.b, "/d/f")
		if err := h.a.Discard(h.Context(), kept); err != nil {
			h.Errorf("Discard: %v", err)
		}
	}
}

// testCreateBig makes files larger than any one message or piece.
func testCreateBig(h *handles) {
	want := pattern(9, 9<<20)
	h.create(h.a, "/big/bytes", want)
	h.holds(h.b, "/big/bytes", want)

	var parts [][]byte
	for rest := want; len(rest) > 0; {
		n := min(len(rest), 700_001)
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	h.create(h.b, "/big/parts", parts...)
	h.holds(h.a, "/big/parts", want)

	var refs []store.Ref
	for rest := want; len(rest) > 0; {
		n := min(len(rest), int(h.a.Limits().Piece))
		refs, rest = append(refs, h.upload(h.a, rest[:n])), rest[n:]
	}
	if err := h.b.Create(h.Context(), "/big/refs", store.Refs(refs...)); err != nil {
		h.Fatalf("Create: %v", err)
	}
	h.holds(h.a, "/big/refs", want)

	if err := h.a.Create(h.Context(), "/big/ref", store.Refs(h.upload(h.b, want))); err != nil {
		h.Fatalf("Create: %v", err)
	}
	h.holds(h.b, "/big/ref", want)
}

// testCreateKeepsNoBuffer changes the slices after the calls have returned.
func testCreateKeepsNoBuffer(h *handles) {
	buf := pattern(1, 100)
	h.create(h.a, "/k/create", buf)
	ref := h.upload(h.a, buf)
	if _, err := h.a.Replace(h.Context(), "/k/replace", buf, ""); err != nil {
		h.Fatalf("Replace: %v", err)
	}
	clear(buf)
	if err := h.a.Create(h.Context(), "/k/ref", store.Refs(ref)); err != nil {
		h.Fatalf("Create: %v", err)
	}
	for _, p := range []string{"/k/create", "/k/replace", "/k/ref"} {
		got, _, err := h.a.Read(h.Context(), p)
		if err != nil {
			h.Fatalf("Read(%q): %v", p, err)
		}
		clear(got)
		h.holds(h.a, p, pattern(1, 100))
		h.holds(h.b, p, pattern(1, 100))
	}
}

// testCloseOneHandle closes one handle; the other goes on.
func testCloseOneHandle(h *handles) {
	h.create(h.a, "/d/f", []byte("x"))
	h.closed = true
	if err := h.a.Close(); err != nil {
		h.Errorf("Close: %v", err)
	}
	h.holds(h.b, "/d/f", []byte("x"))
	h.create(h.b, "/d/g", []byte("y"))
	h.holds(h.b, "/d/g", []byte("y"))
	if err := h.b.Close(); err != nil {
		h.Errorf("Close: %v", err)
	}
}
