package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var (
	seeds  = flag.Int("seeds", 200, "how many lives to run")
	first  = flag.Uint64("first", 1, "the first life's seed")
	seed   = flag.Uint64("seed", 0, "run the life of this seed only, and (-v) tell what happened in it")
	shaped = flag.String("life", "", "run the life of this config only, and (-v) tell what happened in it")
	logs   = flag.Bool("logs", false, "write what all parts log to stderr")
)

func TestLives(t *testing.T) {
	switch {
	case *shaped != "":
		cfg, err := parseConfig(*shaped)
		if err != nil {
			t.Fatal(err)
		}
		tell(t, cfg)
		return
	case *seed != 0:
		tell(t, drawConfig(*seed))
		return
	}
	n := *seeds
	if raceDetector {
		n /= 10
	}
	var mu sync.Mutex
	counts := make(map[string]int)
	for i := range uint64(n) {
		cfg := drawConfig(*first + i)
		t.Run(fmt.Sprintf("seed %d", cfg.seed), func(t *testing.T) {
			t.Parallel()
			s := live(t, cfg, nil, nil)
			if s.err != nil {
				t.Fatal(smallest(t, cfg, s))
			}
			mu.Lock()
			defer mu.Unlock()
			for event, n := range s.counts {
				counts[event] += n
			}
		})
	}
	t.Cleanup(func() {
		t.Logf("in %d lives: %v", n, counts)
		if n >= 100 && !t.Failed() {
			expectAll(t, counts)
		}
	})
}

// expectAll sees that the lives together have met everything that can happen.
func expectAll(t *testing.T, counts map[string]int) {
	t.Helper()
	for _, event := range []string{
		"acked: stored", "acked: replicated", "unknown", "not stored", "kill", "drain", "cut", "break", "lead", "many segments",
		"store: drop", "store: full", "store: late", "store: lose", "store: refuse",
		"split", "merge", "split failed", "merge failed",
	} {
		if counts[event] == 0 {
			t.Errorf("%q never happened; what did is %q", event, slices.Sorted(maps.Keys(counts)))
		}
	}
}

func tell(t *testing.T, cfg config) {
	var logger *slog.Logger
	if *logs {
		logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s := live(t, cfg, logger, nil)
	t.Logf("%v\n%s\n%v", cfg, strings.Join(s.journal, "\n"), s.counts)
	if s.err != nil {
		t.Fatal(s.err)
	}
}

// smallest looks for a smaller life that fails, and describes it.
func smallest(t *testing.T, cfg config, s story) string {
	for again := true; again; {
		again = false
		for _, c := range cfg.smaller() {
			if small := live(t, c, nil, nil); small.err != nil {
				cfg, s, again = c, small, true
				break
			}
		}
	}
	return fmt.Sprintf("%v\nin the life\n%s\nagain: go test ./lib/sim/cluster -life %q (repeat by -count)", s.err, strings.Join(s.journal, "\n"), cfg.String())
}

// badStore is a store that does one thing wrong with chunks.
type badStore struct {
	store.Store
	create func(s store.Store, path string, content []store.Part) error
}

func (b badStore) Create(ctx context.Context, path string, content []store.Part) error {
	if !strings.HasSuffix(path, ".log") {
		return b.Store.Create(ctx, path, content)
	}
	return b.create(b.Store, path, content)
}

func TestLivesFindMutants(t *testing.T) {
	ctx := context.Background()
	for name, create := range map[string]func(s store.Store, path string, content []store.Part) error{
		"create overwrites": func(s store.Store, path string, content []store.Part) error {
			if err := s.Remove(ctx, path); err != nil {
				return err
			}
			return s.Create(ctx, path, content)
		},
		"create says yes to a name that is taken": func(s store.Store, path string, content []store.Part) error {
			if err := s.Create(ctx, path, content); !errors.Is(err, smq.ErrExists) {
				return err
			}
			return nil
		},
		"create keeps nothing now and then": func(s store.Store, path string, content []store.Part) error {
			if strings.HasSuffix(path, "3.log") {
				return nil
			}
			return s.Create(ctx, path, content)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const tries = 50
			for seed := range uint64(tries) {
				s := live(t, drawConfig(seed+1), nil, func(st store.Store) store.Store { return badStore{st, create} })
				if s.err != nil {
					t.Logf("seed %d: %v", seed+1, s.err)
					return
				}
			}
			t.Errorf("nothing was found in %d lives", tries)
		})
	}
}
