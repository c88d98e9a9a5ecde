package storetest

import (
	"strings"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var pathTests = []testCase{
	{"InvalidPaths", testInvalidPaths},
	{"LongPath", testLongPath},
}

// testInvalidPaths offers every method paths that none of them takes.
func testInvalidPaths(h *handles) {
	paths := []string{
		"", "/", "a", "a/b", "./a", "//", "//a", "/a/", "/a//b", "/.", "/..", "/a/.", "/a/..", "/a/../b", "/./a", "/../a",
		"/.hidden", "/a/.hidden", "/.hidden/a", "/a\x00b", `/a\b`, "/" + strings.Repeat("x", 256),
	}
	for _, p := range paths {
		h.refuses(p, p == "/")
	}
	h.page("/", "", 0, nil)
}

// refuses checks that all methods refuse the path; those that take a folder
// are left out when it is the root, except for RemoveAll.
func (h *handles) refuses(p string, root bool) {
	ctx, s := h.Context(), h.a
	errs := map[string]error{
		"Create":    s.Create(ctx, p, store.Bytes([]byte("x"))),
		"Remove":    s.Remove(ctx, p),
		"RemoveAll": s.RemoveAll(ctx, p),
	}
	_, errs["Replace"] = s.Replace(ctx, p, []byte("x"), "")
	_, _, errs["Read"] = s.Read(ctx, p)
	_, errs["ReadAt"] = s.ReadAt(ctx, p, make([]byte, 1), 0)
	_, errs["Stat"] = s.Stat(ctx, p)
	if !root {
		_, errs["List"] = s.List(ctx, p, "", 0)
		errs["Watch"] = s.Watch(ctx, p, func() { h.Errorf("Watch(%q) is ready", p) }, func(string) {})
	}
	for method, err := range errs {
		h.fails(method+" of "+p, err, smq.ErrInvalid)
	}
}

// testLongPath uses the longest element that a path may have, and many.
func testLongPath(h *handles) {
	p := "/" + strings.Repeat("x", 255)
	h.create(h.a, p, []byte("x"))
	h.holds(h.b, p, []byte("x"))
	p = strings.Repeat("/0123456789abcdef", 40)
	h.create(h.a, p, []byte("y"))
	h.holds(h.b, p, []byte("y"))
}
