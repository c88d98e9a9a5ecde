package seaweed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

const (
	// maxRemembered bounds the remembered files, in pieces.
	maxRemembered = 1 << 18
	// rememberFile bounds it in time, for memory's sake only: what is
	// remembered is compared with the filer's version at each use.
	rememberFile = 10 * time.Minute
	// readTries is how often a file is looked up that changes while it is read.
	readTries = 5
)

// Read returns a small file whole, with its version.
func (s *Store) Read(ctx context.Context, path string) ([]byte, store.Version, error) {
	if err := checkArgs(ctx, checkPath(path)); err != nil {
		return nil, "", err
	}
	var data []byte
	f, err := s.reading(ctx, path, func(f file) error {
		if f.info.Size > store.MaxSmall {
			return fmt.Errorf("%w: %d bytes, the limit is %d", smq.ErrTooLarge, f.info.Size, store.MaxSmall)
		}
		data = make([]byte, f.info.Size)
		return s.readInto(ctx, f, data, 0)
	})
	if err != nil {
		return nil, "", wrap(err, "read %s", path)
	}
	return data, f.version, nil
}

// ReadAt fills p from the file's bytes at off on.
func (s *Store) ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error) {
	err := checkPath(path)
	if err == nil && off < 0 {
		err = fmt.Errorf("%w offset %d", smq.ErrInvalid, off)
	}
	if err := checkArgs(ctx, err); err != nil {
		return 0, err
	}
	n := 0
	_, err = s.reading(ctx, path, func(f file) error {
		n = int(min(int64(len(p)), max(f.info.Size-off, 0)))
		return s.readInto(ctx, f, p[:n], off)
	})
	switch {
	case err != nil:
		return 0, wrap(err, "read %s at %d", path, off)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

// reading reads from a file, and again when it turns out to have changed: what
// read has read is of the version that is returned, which was there during the
// call.
func (s *Store) reading(ctx context.Context, path string, read func(file) error) (file, error) {
	if f, ok := s.files.get(path); ok {
		if current, err := s.readChecked(ctx, path, f, read); current {
			return f, err
		}
		s.files.remove(path)
	}
	return s.readOpened(ctx, path, read)
}

// readChecked reads from a file as it is remembered, while it asks the filer
// whether that is still the file.
func (s *Store) readChecked(ctx context.Context, path string, f file, read func(file) error) (current bool, err error) {
	var asking sync.WaitGroup
	asking.Go(func() {
		// Whoever reads anew meets an error again.
		e, err := s.lookUp(ctx, path)
		current = err == nil && parseVersion(e) == f.version
	})
	err = read(f)
	asking.Wait()
	return current && !errors.Is(err, errLost), err
}

// readOpened looks the file up and reads from it. When a piece is lost it looks
// again: only if the filer still names the piece is the file damaged.
func (s *Store) readOpened(ctx context.Context, path string, read func(file) error) (file, error) {
	f, err := s.open(ctx, path)
	if err != nil {
		return f, err
	}
	for range readTries {
		if err = read(f); !errors.Is(err, errLost) {
			return f, err
		}
		s.files.remove(path)
		now, openErr := s.open(ctx, path)
		if openErr != nil {
			return f, openErr
		}
		if slices.Equal(now.extents, f.extents) {
			return f, err
		}
		f = now
	}
	return f, err
}

// readInto fills p from the file at off; that much is there.
func (s *Store) readInto(ctx context.Context, f file, p []byte, off int64) error {
	if f.inline() {
		copy(p, f.content[min(off, int64(len(f.content))):])
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	first := sort.Search(len(f.extents), func(i int) bool { return f.extents[i].end() > off })
	for _, x := range f.extents[first:] {
		if len(p) == 0 {
			break
		}
		at := off - x.off
		n := min(int64(len(p)), x.size-at)
		part := p[:n]
		p, off = p[n:], off+n
		g.Go(func() error { return s.fetch(gctx, x, part, at) })
	}
	return g.Wait()
}

// Stat describes the file or folder at path.
func (s *Store) Stat(ctx context.Context, path string) (store.Info, error) {
	if err := checkArgs(ctx, checkPath(path)); err != nil {
		return store.Info{}, err
	}
	e, err := s.lookUp(ctx, path)
	if err != nil {
		return store.Info{}, wrap(err, "stat %s", path)
	}
	return parseInfo(e), nil
}
