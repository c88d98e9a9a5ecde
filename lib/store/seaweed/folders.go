package seaweed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

const (
	maxFolders     = 1 << 14
	rememberFolder = time.Minute
)

// checkFolders finds a file where a folder would have to be for path: the
// filer would turn it into one. Folders seen lately are not asked for again.
func (s *Store) checkFolders(ctx context.Context, path string) error {
	for dir, _ := split(path); dir != "/"; dir, _ = split(dir) {
		if _, seen := s.folders.get(dir); seen {
			return nil
		}
		e, err := s.lookUp(ctx, dir)
		switch {
		case errors.Is(err, smq.ErrNotFound):
			continue // it will be made, if nothing above is a file
		case err != nil:
			return wrap(err, "look at %s", dir)
		case !e.GetIsDirectory():
			return fmt.Errorf("%w: %s is a file", smq.ErrInvalid, dir)
		}
		s.folders.put(dir, struct{}{}, 1)
		return nil
	}
	return nil
}

// sawFolders remembers the folder of a file that was just made.
func (s *Store) sawFolders(path string) {
	dir, _ := split(path)
	s.folders.put(dir, struct{}{}, 1)
}

// forgetBelow drops what is remembered of a path and of all below it.
func (s *Store) forgetBelow(path string) {
	below := func(p string) bool {
		return p == path || strings.HasPrefix(p, path) && p[len(path)] == '/'
	}
	s.files.forget(below)
	s.folders.forget(below)
}
