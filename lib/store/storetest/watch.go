package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seaweedmq/smq/lib/store"
)

var watchTests = []testCase{
	{"Watch", testWatch},
	{"WatchFolderToCome", testWatchFolderToCome},
	{"WatchNewFolders", testWatchNewFolders},
	{"WatchRoot", testWatchRoot},
	{"WatchRemoveAll", testWatchRemoveAll},
	{"WatchTwo", testWatchTwo},
	{"WatchEnds", testWatchEnds},
}

// watch is a running Watch.
type watch struct {
	h      *handles
	dir    string
	events chan string
	seen   map[string]bool
	cancel context.CancelFunc
	ended  chan error
}

// watch starts a Watch and returns when it is ready.
func (h *handles) watch(s store.Store, dir string) *watch {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	w := &watch{h: h, dir: dir, events: make(chan string), seen: map[string]bool{}, cancel: cancel, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		w.ended <- s.Watch(ctx, dir, func() { close(ready) }, func(p string) {
			select {
			case w.events <- p:
			case <-ctx.Done():
			}
		})
	}()
	select {
	case <-ready:
	case err := <-w.ended:
		h.Fatalf("Watch(%q) ended before it was ready: %v", dir, err)
	}
	return w
}

// sees waits until every path has been reported since the last call, by itself
// or by "something may have been missed".
func (w *watch) sees(paths ...string) {
	w.h.Helper()
	missing := map[string]bool{}
	for _, p := range paths {
		missing[p] = true
	}
	for len(missing) > 0 {
		select {
		case p := <-w.events:
			below := strings.HasPrefix(p, strings.TrimSuffix(w.dir, "/")+"/")
			if p != w.dir && !below || strings.Contains(p, "/.") {
				w.h.Fatalf("Watch(%q) reports %q", w.dir, p)
			}
			delete(missing, p)
			if p == w.dir {
				clear(missing)
			}
		case err := <-w.ended:
			w.h.Fatalf("Watch(%q) ended: %v", w.dir, err)
		}
	}
}

func (w *watch) end() {
	w.h.Helper()
	w.cancel()
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		w.h.Errorf("Watch(%q) ended with %v, want the context's error", w.dir, err)
	}
}

// testWatch watches what the other handle, and the same one, do.
func testWatch(h *handles) {
	h.create(h.a, "/w/before", []byte("x"))
	h.create(h.a, "/w/d/before", []byte("x"))
	w := h.watch(h.b, "/w")
	for i := range 3 {
		s := h.either(i)
		p := fmt.Sprintf("/w/d/%d", i)
		h.create(s, p, []byte("x"))
		w.sees(p)
		h.create(s, "/elsewhere"+p, []byte("x"))
		h.create(s, "/w-neighbour"+p, []byte("x"))
		if err := s.Create(h.Context(), p+"-ref", store.Refs(h.upload(s, []byte("x")))); err != nil {
			h.Fatalf("Create: %v", err)
		}
		w.sees(p + "-ref")
		version := h.replace(s, p+"-replaced", "one", "")
		w.sees(p + "-replaced")
		h.replace(s, p+"-replaced", "two", version)
		w.sees(p + "-replaced")
		if err := s.Remove(h.Context(), p); err != nil {
			h.Fatalf("Remove: %v", err)
		}
		w.sees(p)
	}
	if err := h.a.Remove(h.Context(), "/w/before"); err != nil {
		h.Fatalf("Remove: %v", err)
	}
	w.sees("/w/before")
	w.end()
}

// testWatchFolderToCome watches a folder that is not there yet.
func testWatchFolderToCome(h *handles) {
	w := h.watch(h.b, "/none/yet")
	h.create(h.a, "/none/other", []byte("x"))
	h.create(h.a, "/none/yet/f", []byte("x"))
	w.sees("/none/yet/f")
	h.create(h.a, "/none/yet/d/f", []byte("x"))
	w.sees("/none/yet/d/f")
	w.end()
}

// testWatchNewFolders makes folders faster than a watch can follow.
func testWatchNewFolders(h *handles) {
	w := h.watch(h.b, "/w")
	for round := range 5 {
		var paths []string
		for i := range racers {
			paths = append(paths, fmt.Sprintf("/w/%d/%d/x/y/z/f", round, i), fmt.Sprintf("/w/%d/%d/x/g", round, i))
		}
		errs := make([]error, len(paths))
		made := make(chan struct{})
		go func() {
			defer close(made)
			together(len(paths), func(i int) {
				errs[i] = h.either(i).Create(h.Context(), paths[i], store.Bytes([]byte("x")))
			})
		}()
		w.sees(paths...)
		<-made
		if err := errors.Join(errs...); err != nil {
			h.Fatal(err)
		}
	}
	w.end()
}

func testWatchRoot(h *handles) {
	w := h.watch(h.b, "/")
	h.upload(h.a, []byte("no path"))
	h.create(h.a, "/f", []byte("x"))
	w.sees("/f")
	h.create(h.a, "/d/e/f", []byte("x"))
	w.sees("/d/e/f")
	w.end()
}

// testWatchRemoveAll watches a tree go and grow again.
func testWatchRemoveAll(h *handles) {
	w := h.watch(h.b, "/w")
	for i := range 5 {
		paths := []string{"/w/t/f", "/w/t/d/f", "/w/t/d/e/f"}
		for _, p := range paths {
			h.create(h.either(i), p, []byte("x"))
		}
		w.sees(paths...)
		removed := make(chan error, 1)
		go func() { removed <- h.either(i/2).RemoveAll(h.Context(), "/w/t") }()
		w.sees(paths...)
		if err := <-removed; err != nil {
			h.Fatalf("RemoveAll: %v", err)
		}
	}
	w.end()
}

// testWatchTwo runs several watches at once, one of which ends early.
func testWatchTwo(h *handles) {
	w1, w2, w3 := h.watch(h.a, "/w"), h.watch(h.a, "/w/d"), h.watch(h.b, "/w/d")
	h.create(h.b, "/w/d/f", []byte("x"))
	for _, w := range []*watch{w1, w2, w3} {
		w.sees("/w/d/f")
	}
	w2.end()
	h.create(h.a, "/w/d/g", []byte("x"))
	w1.sees("/w/d/g")
	w3.sees("/w/d/g")
	w1.end()
	w3.end()
}

func testWatchEnds(h *handles) {
	w := h.watch(h.a, "/w")
	w.end()
	err := h.a.Watch(canceled(h.Context()), "/w", func() {}, func(string) {})
	if !errors.Is(err, context.Canceled) {
		h.Errorf("Watch with a context that has ended: %v", err)
	}
}
