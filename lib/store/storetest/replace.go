package storetest

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var replaceTests = []testCase{
	{"Replace", testReplace},
	{"ReplaceVersions", testReplaceVersions},
	{"ReplaceAfterRemove", testReplaceAfterRemove},
	{"ReplaceCreated", testReplaceCreated},
	{"ReplaceWhereAFolderIs", testReplaceWhereAFolderIs},
	{"ReplaceSizes", testReplaceSizes},
	{"ReplaceRace", testReplaceRace},
	{"ReplaceCounter", testReplaceCounter},
}

// testReplace follows one file through both handles.
func testReplace(h *handles) {
	const p = "/groups/shard.json"
	_, err := h.a.Replace(h.Context(), p, []byte("x"), "no such version")
	h.fails("Replace of a version where there is no file", err, smq.ErrConflict)
	h.absent(h.a, p)

	version := h.replace(h.a, p, "one", "")
	for i, data := range []string{"two", "", "three, which is longer", "3"} {
		from, to := h.either(i), h.either(i+1)
		_, err := from.Replace(h.Context(), p, []byte("lost"), "")
		h.fails("Replace of no file where there is one", err, smq.ErrConflict)
		next := h.replace(from, p, data, version)
		_, err = to.Replace(h.Context(), p, []byte("lost"), version)
		h.fails("Replace of the version before", err, smq.ErrConflict)
		h.holds(to, p, []byte(data))
		h.holds(from, p, []byte(data))
		if _, read, err := to.Read(h.Context(), p); err != nil || read != next {
			h.Fatalf("Read: version %q, %v, want %q", read, err, next)
		}
		version = next
	}
	if names := h.names(h.b, "/groups"); len(names) != 1 || names[0] != "shard.json" {
		h.Errorf("List = %q", names)
	}
}

// testReplaceVersions writes the same bytes over and over: no two writes share
// a version, so a repeat, and a return to earlier content, is a conflict.
func testReplaceVersions(h *handles) {
	const p = "/d/f"
	seen := map[store.Version]int{}
	version := store.Version("")
	for i := range rounds {
		data := []string{"A", "A", "B"}[i%3]
		s := h.either(i / 2)
		next := h.replace(s, p, data, version)
		if before, ok := seen[next]; ok {
			h.Fatalf("writes %d and %d share the version %q", before, i, next)
		}
		seen[next] = i
		_, err := s.Replace(h.Context(), p, []byte(data), version)
		h.fails("a repeat of Replace", err, smq.ErrConflict)
		version = next
	}
	for old, i := range seen {
		if old == version {
			continue
		}
		_, err := h.a.Replace(h.Context(), p, []byte("A"), old)
		h.fails(fmt.Sprintf("Replace of version %d", i), err, smq.ErrConflict)
	}
}

// testReplaceAfterRemove removes the file and writes the same bytes: the
// version from before matches neither the absence nor the new file.
func testReplaceAfterRemove(h *handles) {
	const p = "/d/f"
	for i := range rounds {
		old := h.replace(h.either(i), p, "same", "")
		if err := h.a.Remove(h.Context(), p); err != nil {
			h.Fatalf("Remove: %v", err)
		}
		_, err := h.b.Replace(h.Context(), p, []byte("late"), old)
		h.fails("Replace of a removed file", err, smq.ErrConflict)
		h.absent(h.b, p)
		again := h.replace(h.either(i+1), p, "same", "")
		_, err = h.b.Replace(h.Context(), p, []byte("late"), old)
		h.fails("Replace of a file that was made anew", err, smq.ErrConflict)
		h.replace(h.a, p, "other", again)
		if err := h.b.Remove(h.Context(), p); err != nil {
			h.Fatalf("Remove: %v", err)
		}
	}
}

// testReplaceCreated replaces what Create made.
func testReplaceCreated(h *handles) {
	ref := h.upload(h.a, []byte("tail"))
	h.create(h.a, "/d/bytes", []byte("head"))
	if err := h.a.Create(h.Context(), "/d/mixed", []store.Part{{Bytes: []byte("head")}, {Ref: &ref}}); err != nil {
		h.Fatalf("Create: %v", err)
	}
	for p, want := range map[string]string{"/d/bytes": "head", "/d/mixed": "headtail"} {
		got, version, err := h.b.Read(h.Context(), p)
		if err != nil || string(got) != want || version == "" {
			h.Fatalf("Read(%q) = %q, %q, %v", p, got, version, err)
		}
		_, err = h.a.Replace(h.Context(), p, []byte("lost"), "")
		h.fails("Replace of no file where there is one", err, smq.ErrConflict)
		h.replace(h.a, p, "new", version)
		h.holds(h.b, p, []byte("new"))
		h.fails("Create over it", h.a.Create(h.Context(), p, nil), smq.ErrExists)
	}
}

func testReplaceWhereAFolderIs(h *handles) {
	h.create(h.a, "/d/e/f", []byte("x"))
	for _, version := range []store.Version{"", "some"} {
		_, err := h.b.Replace(h.Context(), "/d/e", []byte("y"), version)
		h.fails("Replace of a folder", err, smq.ErrConflict, smq.ErrInvalid)
	}
	h.holds(h.a, "/d/e/f", []byte("x"))
}

func testReplaceSizes(h *handles) {
	version := store.Version("")
	for _, size := range []int{1, 0, 64 << 10, 2<<20 + 1, store.MaxSmall, 5} {
		version = h.replace(h.a, "/d/f", string(pattern(uint64(size), size)), version)
		h.holds(h.b, "/d/f", pattern(uint64(size), size))
	}
	_, err := h.a.Replace(h.Context(), "/d/f", make([]byte, store.MaxSmall+1), version)
	h.fails("Replace by too much", err, smq.ErrTooLarge)
	h.holds(h.b, "/d/f", pattern(5, 5))

	h.create(h.a, "/d/large", pattern(1, store.MaxSmall), pattern(2, 1))
	_, _, err = h.b.Read(h.Context(), "/d/large")
	h.fails("Read of too much", err, smq.ErrTooLarge)
}

// testReplaceRace has racers replace one version: one of them wins.
func testReplaceRace(h *handles) {
	const p = "/d/f"
	version := store.Version("")
	for round := range rounds {
		var versions [racers]store.Version
		var errs [racers]error
		together(racers, func(i int) {
			// Half of them write the same bytes: they differ all the same.
			versions[i], errs[i] = h.either(i).Replace(h.Context(), p, fmt.Appendf(nil, "round %d racer %d", round, i/2), version)
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				h.Fatalf("round %d: both %d and %d replaced version %q", round, winner, i, version)
			case !errors.Is(err, smq.ErrConflict):
				h.Fatalf("round %d: racer %d: %v", round, i, err)
			}
		}
		if winner < 0 {
			h.Fatalf("round %d: nobody replaced version %q", round, version)
		}
		version = versions[winner]
		h.holds(h.either(round), p, fmt.Appendf(nil, "round %d racer %d", round, winner/2))
	}
}

// testReplaceCounter counts: each racer adds its share, and nothing is lost or
// counted twice.
func testReplaceCounter(h *handles) {
	const p, share = "/counter", 20
	var errs [racers]error
	together(racers, func(i int) {
		for n := 0; n < share && errs[i] == nil; n++ {
			errs[i] = increment(h, h.either(i), p)
		}
	})
	if err := errors.Join(errs[:]...); err != nil {
		h.Fatal(err)
	}
	h.holds(h.b, p, strconv.AppendInt(nil, racers*share, 10))
}

// increment adds one to the number in a file, however often others come first.
func increment(h *handles, s store.Store, p string) error {
	for {
		data, version, err := s.Read(h.Context(), p)
		if errors.Is(err, smq.ErrNotFound) {
			data, version, err = []byte("0"), "", nil
		}
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil {
			return err
		}
		_, err = s.Replace(h.Context(), p, strconv.AppendInt(nil, n+1, 10), version)
		if !errors.Is(err, smq.ErrConflict) {
			return err
		}
	}
}
