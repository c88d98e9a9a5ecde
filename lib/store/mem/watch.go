package mem

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seaweedmq/smq/lib/smq"
)

// watcher gathers the paths that a Watch has yet to tell of.
type watcher struct {
	prefix string        // of all paths below its folder
	signal chan struct{} // holds one when there is something to take

	mu      sync.Mutex
	pending []string        // in the order of the first change of each
	known   map[string]bool // what is pending
}

// Watch tells of every changed path, merging what comes while changed runs.
func (s *Store) Watch(ctx context.Context, dir string, ready func(), changed func(path string)) error {
	if err := s.enterDir(ctx, "watch", dir); err != nil {
		return err
	}
	w := &watcher{prefix: strings.TrimSuffix(dir, "/") + "/", signal: make(chan struct{}, 1), known: map[string]bool{}}
	s.tree.watch(w)
	defer s.tree.unwatch(w)
	ready()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", dir, ctx.Err())
		case <-s.done:
			return fmt.Errorf("watch %s: %w: the store is closed", dir, smq.ErrUnavailable)
		case <-w.signal:
		}
		for _, path := range w.take() {
			changed(path)
		}
	}
}

func (w *watcher) add(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[path] {
		return
	}
	w.known[path] = true
	w.pending = append(w.pending, path)
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	pending := w.pending
	w.pending = nil
	clear(w.known)
	return pending
}

func (t *tree) watch(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers = append(t.watchers, w)
}

func (t *tree) unwatch(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers = slices.DeleteFunc(t.watchers, func(o *watcher) bool { return o == w })
}

// notify tells the watchers of a path; the caller holds the lock.
func (t *tree) notify(path string) {
	for _, w := range t.watchers {
		if strings.HasPrefix(path, w.prefix) {
			w.add(path)
		}
	}
}
