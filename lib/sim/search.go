package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// errRefused is a definite error of the store: nothing was applied.
var errRefused = fmt.Errorf("the store refuses: %w", smq.ErrUnavailable)

// mishap is an outcome of a store call other than its success.
type mishap struct {
	name  string
	apply func(g *gate, s *step)
}

// The faults that a scenario may allow. "unknown" stands for all ambiguous
// outcomes: what it postpones may be applied at once, later, or never.
var (
	unknown = mishap{"unknown", func(g *gate, s *step) { g.doubt(s) }}
	refused = mishap{"refused", func(g *gate, s *step) { g.fail(s, errRefused) }}
	full    = mishap{"full", func(g *gate, s *step) { g.fail(s, smq.ErrNoSpace) }}
)

// scenario is a small world whose every run is searched.
type scenario struct {
	name   string
	faults []mishap
	more   []budget // to be searched whole, beside what all scenarios are
	wide   bool     // so many processes that several mishaps at once are left to chance
	turns  int      // that runs are limited to, unless they are searched for long; 0: not
	build  func(w *world)
}

// search goes through all runs of a scenario that a budget allows, depth
// first. Nothing of a run is kept: each begins anew, repeats the choices of the
// one before up to a point and takes another way there.
type search struct {
	scenario scenario
	budget   budget
	deadline time.Time           // zero: none
	visited  map[uint64]struct{} // digests of states that were met before
	stats    stats
}

// stats says how much was searched.
type stats struct {
	runs, states, known, depth int
	complete                   bool
}

func (s stats) String() string {
	done := "all of them"
	if !s.complete {
		done = "not all of them"
	}
	return fmt.Sprintf("%d runs, %d states, %d runs ended in a known one, up to %d choices deep, %s", s.runs, s.states, s.known, s.depth, done)
}

// failure is a run that broke a promise.
type failure struct {
	err    error
	labels []string // of the choices that led there
}

// point is a choice that was made.
type point struct {
	labels []string
	chosen int
}

func labelsOf(path []point) []string {
	labels := make([]string, len(path))
	for i, p := range path {
		labels[i] = p.labels[p.chosen]
	}
	return labels
}

func newSearch(sc scenario, b budget) *search {
	return &search{scenario: sc, budget: b, visited: make(map[uint64]struct{})}
}

// all searches until every run was made, one failed, or time is up.
func (s *search) all(t *testing.T) *failure {
	var path []point
	for {
		next, err := s.run(t, path)
		if err != nil {
			return &failure{err, labelsOf(next)}
		}
		path = backtrack(next)
		if path == nil {
			s.stats.complete = true
			return nil
		}
		if !s.deadline.IsZero() && time.Now().After(s.deadline) {
			return nil
		}
	}
}

// backtrack turns the last choice that has an alternative to the next one.
func backtrack(path []point) []point {
	for i := len(path) - 1; i >= 0; i-- {
		if p := path[i]; p.chosen+1 < len(p.labels) {
			p.chosen++
			return append(slices.Clone(path[:i]), p)
		}
	}
	return nil
}

// run repeats the choices of prefix and takes the first one everywhere behind.
func (s *search) run(t *testing.T, prefix []point) ([]point, error) {
	// All but the prefix's last choice were checked in an earlier run.
	return s.execute(t, len(prefix)-1, func(w *world, depth int, labels []string, left budget) (int, error) {
		if depth >= len(prefix) {
			if s.known(w, left) {
				return -1, nil
			}
			return 0, nil
		}
		if !slices.Equal(labels, prefix[depth].labels) {
			return -1, fmt.Errorf("a run cannot be repeated: choice %d was among %q, now it is among %q", depth, prefix[depth].labels, labels)
		}
		return prefix[depth].chosen, nil
	})
}

// known reports whether the search has been in the same state before, and
// remembers it.
func (s *search) known(w *world, left budget) bool {
	s.stats.states++
	d := w.digest(left)
	_, known := s.visited[d]
	s.visited[d] = struct{}{}
	if known {
		s.stats.known++
	}
	return known
}

// sample makes n runs in which chance decides.
func (s *search) sample(t *testing.T, n int, rnd *rand.Rand) *failure {
	for range n {
		path, err := s.execute(t, 0, func(w *world, _ int, labels []string, left budget) (int, error) {
			s.known(w, left)
			return rnd.IntN(len(labels)), nil
		})
		if err != nil {
			return &failure{err, labelsOf(path)}
		}
	}
	return nil
}

// execute makes one run and counts it.
func (s *search) execute(t *testing.T, from int, choose chooser) ([]point, error) {
	var path []point
	err := execute(t, s.scenario, s.budget, from, func(w *world, depth int, labels []string, left budget) (int, error) {
		i, err := choose(w, depth, labels, left)
		if i >= 0 {
			path = append(path, point{labels, i})
		}
		return i, err
	})
	s.stats.runs++
	s.stats.depth = max(s.stats.depth, len(path))
	return path, err
}
