// Package storetest is the conformance suite of lib/store: whatever passes Run
// keeps the contract that the comments of store.Store lay down, as far as tests
// can tell. It is imported by the tests of backends only.
//
// A backend's test is a function that opens two handles on one empty store and
// hands them over:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
//			s := mem.New()
//			return s, s.Handle()
//		})
//	}
//
// The suite waits for events, never for time, so a backend that loses an event
// shows as a test that hangs until go test's own -timeout.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Run tests a backend. For each test open is called once and returns two
// handles on the same fresh and empty store, such as two processes would have.
// The suite closes them.
func Run(t *testing.T, open func(t *testing.T) (a, b store.Store)) {
	groups := [][]testCase{
		createTests, createRaceTests, replaceTests, readTests, listTests,
		removeTests, uploadTests, watchTests, cancelTests, pathTests,
	}
	for _, c := range slices.Concat(groups...) {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			h := &handles{T: t, a: a, b: b}
			t.Cleanup(h.close)
			c.run(h)
		})
	}
}

type testCase struct {
	name string
	run  func(h *handles)
}

// handles is what every test works with: two handles on one store.
type handles struct {
	*testing.T
	a, b   store.Store
	closed bool
}

func (h *handles) close() {
	if h.closed {
		return
	}
	h.closed = true
	for _, s := range []store.Store{h.a, h.b} {
		if err := s.Close(); err != nil {
			h.Errorf("Close: %v", err)
		}
	}
}

// either picks one of the two handles, in turns.
func (h *handles) either(i int) store.Store {
	if i%2 == 0 {
		return h.a
	}
	return h.b
}

// create makes a file that was not there.
func (h *handles) create(s store.Store, path string, content ...[]byte) {
	h.Helper()
	if err := s.Create(h.Context(), path, store.Bytes(content...)); err != nil {
		h.Fatalf("Create(%q): %v", path, err)
	}
}

// replace writes a small file whose version is known.
func (h *handles) replace(s store.Store, path, data string, version store.Version) store.Version {
	h.Helper()
	v, err := s.Replace(h.Context(), path, []byte(data), version)
	if err != nil {
		h.Fatalf("Replace(%q, %q, %q): %v", path, data, version, err)
	}
	if v == "" {
		h.Fatalf("Replace(%q, %q, %q) returned the empty version", path, data, version)
	}
	return v
}

// upload stores bytes that no path names yet.
func (h *handles) upload(s store.Store, data ...[]byte) store.Ref {
	h.Helper()
	ref, err := s.Upload(h.Context(), data...)
	if err != nil {
		h.Fatalf("Upload: %v", err)
	}
	return ref
}

// holds checks that the file is whole, as every way of looking at it shows it.
func (h *handles) holds(s store.Store, path string, want []byte) {
	h.Helper()
	info, err := s.Stat(h.Context(), path)
	if err != nil {
		h.Fatalf("Stat(%q): %v", path, err)
	}
	if info.Size != int64(len(want)) || info.Dir {
		h.Errorf("Stat(%q) = %+v, want a file of %d bytes", path, info, len(want))
	}
	got := make([]byte, len(want))
	n, err := s.ReadAt(h.Context(), path, got, 0)
	if n != len(want) || err != nil && err != io.EOF {
		h.Fatalf("ReadAt(%q) = %d, %v, want %d bytes", path, n, err, len(want))
	}
	h.same(path, got, want)
	if len(want) > store.MaxSmall {
		return
	}
	got, version, err := s.Read(h.Context(), path)
	if err != nil || version == "" {
		h.Fatalf("Read(%q): version %q, %v", path, version, err)
	}
	h.same(path, got, want)
}

func (h *handles) same(path string, got, want []byte) {
	h.Helper()
	if !bytes.Equal(got, want) {
		h.Fatalf("%s holds %d bytes %s, want %d bytes %s", path, len(got), excerpt(got), len(want), excerpt(want))
	}
}

// absent checks that nothing is at the path, as every way of looking shows it.
func (h *handles) absent(s store.Store, path string) {
	h.Helper()
	if info, err := s.Stat(h.Context(), path); !errors.Is(err, smq.ErrNotFound) {
		h.Errorf("Stat(%q) = %+v, %v, want not found", path, info, err)
	}
	if got, _, err := s.Read(h.Context(), path); !errors.Is(err, smq.ErrNotFound) {
		h.Errorf("Read(%q) = %s, %v, want not found", path, excerpt(got), err)
	}
	if n, err := s.ReadAt(h.Context(), path, make([]byte, 1), 0); n != 0 || !errors.Is(err, smq.ErrNotFound) {
		h.Errorf("ReadAt(%q) = %d, %v, want not found", path, n, err)
	}
}

// names lists a folder whole and checks that its entries are in order.
func (h *handles) names(s store.Store, dir string) []string {
	h.Helper()
	infos, err := s.List(h.Context(), dir, "", 0)
	if err != nil {
		h.Fatalf("List(%q): %v", dir, err)
	}
	names := namesOf(infos)
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		h.Fatalf("List(%q) is out of order or repeats: %q", dir, names)
	}
	return names
}

func namesOf(infos []store.Info) []string {
	names := make([]string, len(infos))
	for i := range infos {
		names[i] = infos[i].Name
	}
	return names
}

// fails checks an error that says for sure that nothing was applied.
func (h *handles) fails(what string, err error, want ...error) {
	h.Helper()
	if err == nil || errors.Is(err, store.ErrAmbiguous) {
		h.Errorf("%s: %v, want an error that leaves nothing open", what, err)
		return
	}
	if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		h.Errorf("%s: %v, want %v", what, err, want)
	}
}

// pattern makes n bytes that differ between seeds and nowhere repeat.
func pattern(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	copy(key[:], fmt.Sprintf("%d", seed))
	rand.NewChaCha8(key).Read(b)
	return b
}

func crc(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func excerpt(b []byte) string {
	if len(b) > 24 {
		return fmt.Sprintf("%q…(crc %08x)", b[:24], crc(b))
	}
	return fmt.Sprintf("%q", b)
}

// canceled returns a context that has ended.
func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
