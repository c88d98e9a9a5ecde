package storetest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/store"
)

var uploadTests = []testCase{
	{"Upload", testUpload},
	{"UploadParallel", testUploadParallel},
	{"UploadInvisible", testUploadInvisible},
	{"Discard", testDiscard},
	{"Limits", testLimits},
}

// testUpload checks what a reference says of the bytes.
func testUpload(h *handles) {
	data := pattern(1, 200_000)
	for _, slices := range [][][]byte{
		{data},
		{data[:1], data[1:]},
		{data[:100_000], nil, data[100_000:150_000], {}, data[150_000:]},
	} {
		ref := h.upload(h.a, slices...)
		if ref.Size() != int64(len(data)) {
			h.Errorf("the reference says %d bytes, want %d", ref.Size(), len(data))
		}
		off := int64(0)
		for i, p := range ref.Pieces {
			if p.ID == "" || p.Size <= 0 || off+p.Size > int64(len(data)) {
				h.Fatalf("piece %d: %+v", i, p)
			}
			if want := crc(data[off : off+p.Size]); p.CRC32C != want {
				h.Errorf("piece %d: checksum %08x, want %08x", i, p.CRC32C, want)
			}
			off += p.Size
		}
	}
	if ref := h.upload(h.a); ref.Size() != 0 {
		h.Errorf("nothing uploaded is %d bytes", ref.Size())
	}
}

// testUploadParallel uploads over both handles at once and joins all of it.
func testUploadParallel(h *handles) {
	const n = 4 * racers
	var refs [n]store.Ref
	var errs [n]error
	together(n, func(i int) {
		refs[i], errs[i] = h.either(i).Upload(h.Context(), pattern(uint64(i), 10_000+i))
	})
	if err := errors.Join(errs[:]...); err != nil {
		h.Fatal(err)
	}
	seen := map[string]bool{}
	var want [][]byte
	for i, ref := range refs {
		want = append(want, pattern(uint64(i), 10_000+i))
		for _, p := range ref.Pieces {
			if seen[p.ID] {
				h.Fatalf("two pieces are named %q", p.ID)
			}
			seen[p.ID] = true
		}
	}
	if err := h.a.Create(h.Context(), "/d/joined", store.Refs(refs[:]...)); err != nil {
		h.Fatalf("Create: %v", err)
	}
	h.holds(h.b, "/d/joined", bytes.Join(want, nil))
}

// testUploadInvisible sees nothing of an upload before a file takes it over.
func testUploadInvisible(h *handles) {
	ref := h.upload(h.a, pattern(1, 1000))
	h.page("/", "", 0, nil)
	if err := h.b.Create(h.Context(), "/f", store.Refs(ref)); err != nil {
		h.Fatalf("Create: %v", err)
	}
	h.page("/", "", 0, []string{"f"})
}

// testDiscard discards references, repeatedly; others are not touched.
func testDiscard(h *handles) {
	var refs []store.Ref
	for i := range 4 {
		refs = append(refs, h.upload(h.either(i), pattern(uint64(i), 1000)))
	}
	for _, ref := range []store.Ref{refs[0], refs[2], {}} {
		for i := range 3 {
			if err := h.either(i).Discard(h.Context(), ref); err != nil {
				h.Errorf("Discard, time %d: %v", i+1, err)
			}
		}
	}
	for i, ref := range []store.Ref{refs[1], refs[3]} {
		p := fmt.Sprintf("/d/%d", i)
		if err := h.either(i).Create(h.Context(), p, store.Refs(ref)); err != nil {
			h.Errorf("Create: %v", err)
		}
		h.holds(h.a, p, pattern(uint64(2*i+1), 1000))
	}
}

func testLimits(h *handles) {
	if l := h.a.Limits(); l.Inline <= 0 || l.Piece <= 0 || l != h.b.Limits() {
		h.Errorf("Limits() = %+v and %+v", l, h.b.Limits())
	}
	if h.a.String() == "" || h.a.String() != h.b.String() {
		h.Errorf("String() = %q and %q", h.a.String(), h.b.String())
	}
}
