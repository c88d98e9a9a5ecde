package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/store"
)

var listTests = []testCase{
	{"List", testList},
	{"ListOrder", testListOrder},
	{"ListPages", testListPages},
	{"ListAbsent", testListAbsent},
	{"ListWhileCreating", testListWhileCreating},
}

// testList lists folders and files, with what Info says of them.
func testList(h *handles) {
	h.create(h.a, "/d/b", pattern(1, 10))
	h.create(h.a, "/d/a/x", pattern(1, 20))
	h.create(h.a, "/d/a.b", pattern(1, 30), pattern(2, 3))
	if err := h.a.Create(h.Context(), "/d/c", store.Refs(h.upload(h.a, pattern(1, 40)))); err != nil {
		h.Fatalf("Create: %v", err)
	}
	h.replace(h.a, "/d/e", "12345", "")
	want := []store.Info{
		{Name: "a", Dir: true}, {Name: "a.b", Size: 33}, {Name: "b", Size: 10}, {Name: "c", Size: 40}, {Name: "e", Size: 5},
	}
	for _, s := range []store.Store{h.a, h.b} {
		got, err := s.List(h.Context(), "/d", "", 0)
		if err != nil {
			h.Fatalf("List: %v", err)
		}
		for i := range got {
			if got[i].Modified.IsZero() && !got[i].Dir {
				h.Errorf("%s has no time", got[i].Name)
			}
			got[i].Modified = want[0].Modified
		}
		if !slices.Equal(got, want) {
			h.Errorf("List = %+v, want %+v", got, want)
		}
		if names := h.names(s, "/"); !slices.Equal(names, []string{"d"}) {
			h.Errorf("List(/) = %q", names)
		}
		if names := h.names(s, "/d/a"); !slices.Equal(names, []string{"x"}) {
			h.Errorf("List(/d/a) = %q", names)
		}
	}
}

// testListOrder lists names whose order is easily mistaken, from every point.
func testListOrder(h *handles) {
	names := []string{
		"0", "00000000000000000009", "00000000000000000010", "1", "10", "2", "A", "B", "_", "a", "a b", "a!", "a-b", "a.b", "a0", "aa", "b",
		"z", "~", "é", "日本",
	}
	slices.Sort(names)
	for i, name := range slices.Backward(names) {
		p := "/o/" + name
		if i%3 == 0 {
			p += "/below" // so this one is a folder
		}
		h.create(h.either(i), p, nil)
	}
	if got := h.names(h.b, "/o"); !slices.Equal(got, names) {
		h.Fatalf("List = %q, want %q", got, names)
	}
	for i, after := range names {
		h.page("/o", after, 0, names[i+1:])
		h.page("/o", after, 3, names[i+1:])
		h.page("/o", after+"!", 2, namesAfter(names, after+"!"))
		h.page("/o", after[:len(after)-1], 2, namesAfter(names, after[:len(after)-1]))
	}
}

func namesAfter(names []string, after string) []string {
	i, found := slices.BinarySearch(names, after)
	if found {
		i++
	}
	return names[i:]
}

// page lists once and checks the names against all that follow.
func (h *handles) page(dir, after string, limit int, following []string) {
	h.Helper()
	infos, err := h.b.List(h.Context(), dir, after, limit)
	want := following
	if limit > 0 {
		want = want[:min(limit, len(want))]
	}
	if got := namesOf(infos); err != nil || !slices.Equal(got, want) {
		h.Fatalf("List(%q, %q, %d) = %q, %v, want %q", dir, after, limit, got, err, want)
	}
}

// testListPages pages through a folder of some size.
func testListPages(h *handles) {
	const n = 1100
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%020d.log", i*7)
	}
	var errs [racers]error
	together(racers, func(r int) {
		for i := r; i < n && errs[r] == nil; i += racers {
			errs[r] = h.either(r).Create(h.Context(), "/p/"+names[i], store.Bytes([]byte("x")))
		}
	})
	if err := errors.Join(errs[:]...); err != nil {
		h.Fatal(err)
	}
	h.page("/p", "", -1, names)
	for _, limit := range []int{7, 100, 1000, n - 1, n, n + 1} {
		after, rest := "", names
		for len(rest) >= limit {
			h.page("/p", after, limit, rest)
			after, rest = rest[limit-1], rest[limit:]
		}
		h.page("/p", after, limit, rest)
	}
	for i := range 10 {
		h.page("/p", names[i], 1, names[i+1:])
		h.page("/p", names[n-1-i], 1, names[n-i:])
	}
	h.page("/p", "zzz", 10, nil)
	h.page("/p", names[n-1], 10, nil)
}

// testListAbsent lists where no folder is: nothing, without an error.
func testListAbsent(h *handles) {
	h.page("/", "", 0, nil)
	h.page("/none", "", 0, nil)
	h.page("/none/none", "x", 5, nil)
	h.create(h.a, "/d/f", nil)
	h.page("/d/f", "", 0, nil)
	h.page("/d/f/g", "", 0, nil)
	if err := h.a.Remove(h.Context(), "/d/f"); err != nil {
		h.Fatalf("Remove: %v", err)
	}
	h.page("/d", "", 0, nil)
}

// testListWhileCreating lists while files come and go: what was there before
// and stays is in every listing.
func testListWhileCreating(h *handles) {
	const stay = 50
	for i := range stay {
		h.create(h.a, fmt.Sprintf("/l/%03d-stays", i), []byte("x"))
	}
	done := make(chan struct{})
	together(3, func(i int) {
		if i == 0 {
			defer close(done)
			h.comeAndGo(100, stay)
			return
		}
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			if n := h.countStaying(i * 10); n != stay {
				h.Errorf("listing shows %d of the %d files that stay", n, stay)
				return
			}
		}
	})
}

// comeAndGo creates and removes files between those that stay.
func (h *handles) comeAndGo(times, stay int) {
	for n := range times {
		p := fmt.Sprintf("/l/%03d-goes", n%stay)
		if err := h.a.Create(h.Context(), p, store.Bytes([]byte("y"))); err != nil {
			h.Errorf("Create: %v", err)
		}
		if err := h.a.Remove(h.Context(), p); err != nil {
			h.Errorf("Remove: %v", err)
		}
	}
}

// countStaying lists page by page until a page is short.
func (h *handles) countStaying(limit int) (n int) {
	after := ""
	for {
		infos, err := h.b.List(h.Context(), "/l", after, limit)
		if err != nil {
			h.Errorf("List: %v", err)
			return 0
		}
		for _, info := range infos {
			after = info.Name
			if info.Size == 1 && after[4:] == "stays" {
				n++
			}
		}
		if len(infos) < limit {
			return n
		}
	}
}
