package storetest

import (
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var removeTests = []testCase{
	{"Remove", testRemove},
	{"RemoveFolder", testRemoveFolder},
	{"RemoveAbsent", testRemoveAbsent},
	{"RemoveAll", testRemoveAll},
	{"RemoveAllKeepsNeighbours", testRemoveAllKeepsNeighbours},
	{"RemoveWhileReplacing", testRemoveWhileReplacing},
	{"RemoveAllWhileReplacing", testRemoveAllWhileReplacing},
}

// testRemove removes a file; the other handle no longer sees it, and its name
// is free.
func testRemove(h *handles) {
	h.create(h.a, "/d/f", []byte("one"))
	h.create(h.a, "/d/g", []byte("stays"))
	h.page("/d", "", 0, []string{"f", "g"})
	h.holds(h.b, "/d/f", []byte("one"))
	for i := range 3 {
		if err := h.either(i).Remove(h.Context(), "/d/f"); err != nil {
			h.Errorf("Remove, time %d: %v", i+1, err)
		}
		h.absent(h.a, "/d/f")
		h.absent(h.b, "/d/f")
	}
	if names := h.names(h.b, "/d"); !slices.Equal(names, []string{"g"}) {
		h.Errorf("List = %q", names)
	}
	h.create(h.b, "/d/f", []byte("two"))
	h.holds(h.a, "/d/f", []byte("two"))
	h.holds(h.a, "/d/g", []byte("stays"))
}

// testRemoveFolder removes a folder, which must be empty.
func testRemoveFolder(h *handles) {
	h.create(h.a, "/d/e/f", []byte("x"))
	h.fails("Remove of a folder with a file", h.b.Remove(h.Context(), "/d/e"), smq.ErrConflict)
	h.fails("Remove of a folder with a folder", h.b.Remove(h.Context(), "/d"), smq.ErrConflict)
	h.holds(h.a, "/d/e/f", []byte("x"))
	for _, p := range []string{"/d/e/f", "/d/e", "/d"} {
		for i := range 2 {
			if err := h.either(i).Remove(h.Context(), p); err != nil {
				h.Errorf("Remove(%q), time %d: %v", p, i+1, err)
			}
		}
		h.absent(h.b, p)
	}
	h.create(h.b, "/d", []byte("a file now"))
	h.holds(h.a, "/d", []byte("a file now"))
}

func testRemoveAbsent(h *handles) {
	h.create(h.a, "/d/f", []byte("x"))
	for _, p := range []string{"/none", "/none/none", "/d/g", "/d/f/g", "/d/f/g/h"} {
		if err := h.b.Remove(h.Context(), p); err != nil {
			h.Errorf("Remove(%q): %v", p, err)
		}
		if err := h.b.RemoveAll(h.Context(), p); err != nil {
			h.Errorf("RemoveAll(%q): %v", p, err)
		}
	}
	h.holds(h.b, "/d/f", []byte("x"))
}

// testRemoveAll removes a tree, which may then grow again.
func testRemoveAll(h *handles) {
	grow := func(s store.Store, content string) {
		for i := range 30 {
			h.create(s, fmt.Sprintf("/t/x/%d/y/%d", i%3, i), []byte(content))
		}
		if err := s.Create(h.Context(), "/t/x/ref", store.Refs(h.upload(s, []byte(content)))); err != nil {
			h.Fatalf("Create: %v", err)
		}
		h.replace(s, "/t/x/replaced", content, "")
	}
	for i, content := range []string{"one", "two", "three"} {
		from, to := h.either(i), h.either(i+1)
		grow(from, content)
		h.holds(to, "/t/x/1/y/1", []byte(content))
		h.holds(to, "/t/x/ref", []byte(content))
		h.holds(to, "/t/x/replaced", []byte(content))
		for range 2 {
			if err := to.RemoveAll(h.Context(), "/t/x"); err != nil {
				h.Fatalf("RemoveAll: %v", err)
			}
			for _, p := range []string{"/t/x", "/t/x/1", "/t/x/1/y/1", "/t/x/ref", "/t/x/replaced"} {
				h.absent(from, p)
				h.absent(to, p)
			}
			h.page("/t/x", "", 0, nil)
			h.page("/t/x/1/y", "", 0, nil)
		}
	}
	h.create(h.a, "/t/f", []byte("x"))
	if err := h.b.RemoveAll(h.Context(), "/t/f"); err != nil {
		h.Errorf("RemoveAll of a file: %v", err)
	}
	h.absent(h.a, "/t/f")
}

func testRemoveAllKeepsNeighbours(h *handles) {
	keep := []string{"/t/x.b", "/t/x-/f", "/t/x0", "/t/w", "/t/y/x/f", "/x/f"}
	for _, p := range append(keep, "/t/x/f") {
		h.create(h.a, p, []byte(p))
	}
	if err := h.b.RemoveAll(h.Context(), "/t/x"); err != nil {
		h.Fatalf("RemoveAll: %v", err)
	}
	h.absent(h.a, "/t/x/f")
	for _, p := range keep {
		h.holds(h.a, p, []byte(p))
	}
}

// testRemoveWhileReplacing has Replace race with the removal of its file: it is
// replaced and then removed, or removed and then not replaced.
func testRemoveWhileReplacing(h *handles) {
	for round := range rounds {
		p := fmt.Sprintf("/t/%d", round)
		version := h.replace(h.a, p, "before", "")
		var replaceErr, removeErr error
		together(2, func(i int) {
			if i == 0 {
				_, replaceErr = h.a.Replace(h.Context(), p, []byte("after"), version)
			} else {
				removeErr = h.b.Remove(h.Context(), p)
			}
		})
		if removeErr != nil {
			h.Fatalf("Remove: %v", removeErr)
		}
		if replaceErr != nil {
			h.fails("Replace while Remove", replaceErr, smq.ErrConflict)
		}
		h.absent(h.b, p)
	}
}

// testRemoveAllWhileReplacing has Replace race with the removal of its folder:
// whatever the order, a version from before matches nothing afterwards.
func testRemoveAllWhileReplacing(h *handles) {
	for round := range rounds {
		p := fmt.Sprintf("/t/%d/f", round)
		version := h.replace(h.a, p, "before", "")
		var replaceErr, removeErr error
		together(2, func(i int) {
			if i == 0 {
				_, replaceErr = h.a.Replace(h.Context(), p, []byte("after"), version)
			} else {
				removeErr = h.b.RemoveAll(h.Context(), fmt.Sprintf("/t/%d", round))
			}
		})
		if removeErr != nil {
			h.Fatalf("RemoveAll: %v", removeErr)
		}
		if replaceErr != nil {
			h.fails("Replace while RemoveAll", replaceErr, smq.ErrConflict)
		}
		h.absent(h.b, p)
	}
}
