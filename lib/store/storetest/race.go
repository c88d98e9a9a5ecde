package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var createRaceTests = []testCase{
	{"CreateRace", testCreateRace},
	{"CreateRaceOfRefs", testCreateRaceOfRefs},
	{"CreateRaceWithReplace", testCreateRaceWithReplace},
	{"CreateManyAtOnce", testCreateManyAtOnce},
	{"CreateSeenAtOnce", testCreateSeenAtOnce},
}

const (
	racers = 8
	rounds = 60
)

// together runs f n times at once, with a common start.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// testCreateRace has racers create one name over both handles, each with
// content of its own: one of them wins, and its content is there whole.
func testCreateRace(h *handles) {
	h.race(func(round, i int) []store.Part {
		return store.Bytes(racerContent(round, i))
	})
}

// testCreateRaceOfRefs does so with uploaded content, and with a mixture.
func testCreateRaceOfRefs(h *handles) {
	h.race(func(round, i int) []store.Part {
		content := racerContent(round, i)
		if i%2 == 0 {
			return store.Refs(h.upload(h.either(i/2), content))
		}
		ref := h.upload(h.either(i/2), content[10:])
		return append(store.Bytes(content[:10]), store.Part{Ref: &ref})
	})
}

func racerContent(round, i int) []byte {
	return pattern(uint64(round*racers+i), 1000+5000*i)
}

func (h *handles) race(content func(round, i int) []store.Part) {
	for round := range rounds {
		path := fmt.Sprintf("/race/%d/f", round)
		var contents [racers][]store.Part
		for i := range contents {
			contents[i] = content(round, i)
		}
		var errs [racers]error
		together(racers, func(i int) {
			errs[i] = h.either(i).Create(h.Context(), path, contents[i])
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				h.Fatalf("round %d: both %d and %d created %s", round, winner, i, path)
			case !errors.Is(err, smq.ErrExists):
				h.Fatalf("round %d: racer %d: %v", round, i, err)
			}
		}
		if winner < 0 {
			h.Fatalf("round %d: nobody created %s", round, path)
		}
		h.holds(h.either(round), path, racerContent(round, winner))
	}
}

// testCreateRaceWithReplace has Create and a Replace of "no file" race: one of
// all wins.
func testCreateRaceWithReplace(h *handles) {
	for round := range rounds {
		path := fmt.Sprintf("/race/%d", round)
		var errs [racers]error
		together(racers, func(i int) {
			data := fmt.Appendf(nil, "racer %d", i)
			if s := h.either(i); i/2%2 == 0 {
				errs[i] = s.Create(h.Context(), path, store.Bytes(data))
			} else {
				_, errs[i] = s.Replace(h.Context(), path, data, "")
			}
		})
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				h.holds(h.either(round), path, fmt.Appendf(nil, "racer %d", i))
			} else if !errors.Is(err, smq.ErrExists) && !errors.Is(err, smq.ErrConflict) {
				h.Errorf("round %d: racer %d: %v", round, i, err)
			}
		}
		if winners != 1 {
			h.Fatalf("round %d: %d winners", round, winners)
		}
	}
}

// testCreateManyAtOnce creates different names in one folder that is not there
// yet: all of them succeed.
func testCreateManyAtOnce(h *handles) {
	for round := range 10 {
		dir := fmt.Sprintf("/many/%d/x/y", round)
		var errs [2 * racers]error
		together(len(errs), func(i int) {
			errs[i] = h.either(i).Create(h.Context(), fmt.Sprintf("%s/%02d", dir, i), store.Bytes(racerContent(round, i)))
		})
		if err := errors.Join(errs[:]...); err != nil {
			h.Fatal(err)
		}
		if names := h.names(h.either(round), dir); len(names) != len(errs) {
			h.Fatalf("List(%q) = %q, want %d names", dir, names, len(errs))
		}
		for i := range errs {
			h.holds(h.either(i), fmt.Sprintf("%s/%02d", dir, i), racerContent(round, i))
		}
	}
}

// testCreateSeenAtOnce looks from one handle at what the other has just
// finished, with every call that promises to see it.
func testCreateSeenAtOnce(h *handles) {
	for i := range rounds {
		from, to := h.either(i), h.either(i+1)
		name := fmt.Sprintf("%05d", i)
		h.create(from, "/seen/"+name, racerContent(i, 0))
		h.holds(to, "/seen/"+name, racerContent(i, 0))
		infos, err := to.List(h.Context(), "/seen", fmt.Sprintf("%05d", i-1), 0)
		if err != nil || len(infos) != 1 || infos[0].Name != name || infos[0].Size != 1000 {
			h.Fatalf("List after creating %s = %+v, %v", name, infos, err)
		}
	}
}
