package sim

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	long   = flag.Duration("long", 0, "go on for so long, with more faults at once")
	replay = flag.String("replay", "", "make the one run that takes these choices (see the failure that it is from)")
)

// shallow is what is searched whole: everything that can happen with one thing
// going wrong.
var shallow = []budget{
	{faults: 1, turns: anyTurns},
	{crashes: 1, turns: anyTurns},
	{retries: 1, turns: anyTurns},
}

// steady is searched too: three things going wrong, while turns are taken only
// where somebody waits.
var steady = budget{faults: 1, crashes: 1, retries: 1}

// deep is where chance picks runs from. (-long searches what is between.)
var deep = budget{faults: 3, crashes: 2, retries: 2, turns: anyTurns}

// samples is the number of runs by chance.
const samples = 1000

// between is what -long searches, one after the other, as far as it gets.
var between = []budget{
	steady,
	{faults: 1, turns: anyTurns},
	{crashes: 2, turns: anyTurns},
	{faults: 2, crashes: 1, retries: 1},
	{faults: 1, crashes: 1, retries: 1, turns: 1},
	{faults: 2, turns: anyTurns},
	{faults: 2, crashes: 1, retries: 1, turns: 2},
	{faults: 1, crashes: 1, retries: 1, turns: anyTurns},
	deep,
}

func TestSearch(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			switch {
			case *replay != "":
				s := newSearch(sc, budget{100, 100, 100, anyTurns})
				if f := s.replay(t, strings.Split(*replay, separator)); f != nil {
					t.Fatal(f)
				}
			case raceDetector: // which costs much, and looks for other things
				chance(t, sc, samples/2)
			default:
				whole(t, sc)
				chance(t, sc, samples)
			}
			if *long > 0 {
				further(t, sc, time.Now().Add(*long))
			}
		})
	}
}

func whole(t *testing.T, sc scenario) {
	budgets := append(slices.Clone(shallow), sc.more...)
	if !sc.wide {
		budgets = append(budgets, steady)
	}
	for _, b := range budgets {
		if sc.turns > 0 {
			b.turns = min(b.turns, sc.turns)
		}
		s := newSearch(sc, b)
		report(t, s, s.all(t))
	}
}

func chance(t *testing.T, sc scenario, n int) {
	s := newSearch(sc, deep)
	report(t, s, s.sample(t, n, rand.New(rand.NewPCG(1, 2))))
}

func further(t *testing.T, sc scenario, deadline time.Time) {
	for _, b := range between {
		s := newSearch(sc, b)
		s.deadline = deadline
		report(t, s, s.all(t))
	}
	for seed := uint64(0); time.Now().Before(deadline); seed++ {
		s := newSearch(sc, deep)
		report(t, s, s.sample(t, samples, rand.New(rand.NewPCG(seed, 3))))
	}
}

// report fails the test by what the search has found, made as small as can be.
func report(t *testing.T, s *search, f *failure) {
	t.Helper()
	if f != nil {
		t.Fatal(s.shrink(t, f))
	}
	t.Logf("%+v: %v", s.budget, s.stats)
}
