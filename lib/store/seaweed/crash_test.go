//go:build weed

package seaweed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// TestKilledServer kills the server while files are being created, and starts
// it again: every create that returned nil is there whole, every one that failed
// for sure is not, and what is there of the others is whole.
//
// This is the end of a process, which needs no fsync: what the server has
// written is the system's to keep. That fsync makes the difference when the
// machine ends can't be shown here.
func TestKilledServer(t *testing.T) {
	for _, parameters := range []string{"", "?fsync=true"} {
		t.Run("seaweedfs"+parameters, func(t *testing.T) {
			server := weedtest.Start(t)
			s := openAt(t, server, "/smq"+parameters)
			outcomes := createUntilKilled(t, s, server)
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkOutcomes(t, openAt(t, server, "/smq"+parameters), outcomes)
		})
	}
}

// made is what a create was asked for and how it ended.
type made struct {
	path    string
	content []byte
	err     error
}

// createUntilKilled creates files from several goroutines, of which some are
// under way when the server is killed.
func createUntilKilled(t *testing.T, s *Store, server *weedtest.Server) (all []made) {
	const writers, acked = 8, 400
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	enough := make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				m := made{path: fmt.Sprintf("/c/%d/%d", w, n), content: randomBytes(uint64(w)<<32+uint64(n), []int{50, 5000, 40_000, 1_500_000}[n%4])}
				m.err = createEitherWay(ctx, s, n, m)
				mu.Lock()
				all = append(all, m)
				if len(all) == acked {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	server.Kill()
	cancel()
	wg.Wait()
	return all
}

func createEitherWay(ctx context.Context, s *Store, n int, m made) error {
	if n%3 != 0 {
		return s.Create(ctx, m.path, store.Bytes(m.content))
	}
	ref, err := s.Upload(ctx, m.content)
	if err != nil {
		return err
	}
	return s.Create(ctx, m.path, store.Refs(ref))
}

func checkOutcomes(t *testing.T, s *Store, outcomes []made) {
	count := map[string]int{}
	for _, m := range outcomes {
		got, _, err := s.Read(t.Context(), m.path)
		absent := errors.Is(err, smq.ErrNotFound)
		switch {
		case err != nil && !absent:
			t.Errorf("%s, whose create returned %v: %v", m.path, m.err, err)
		case !absent && !bytes.Equal(got, m.content):
			t.Errorf("%s, whose create returned %v, is %d bytes that differ from the %d written", m.path, m.err, len(got), len(m.content))
		case m.err == nil && absent:
			t.Errorf("%s is missing", m.path)
		case m.err != nil && !errors.Is(m.err, store.ErrAmbiguous) && !absent:
			t.Errorf("%s is there, but create returned %v", m.path, m.err)
		}
		count[fmt.Sprintf("acknowledged %v, ambiguous %v", m.err == nil, errors.Is(m.err, store.ErrAmbiguous))]++
	}
	t.Log(count)
}
