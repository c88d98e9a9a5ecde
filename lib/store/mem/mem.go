// Package mem is a store in memory, for tests and simulations. It keeps the
// whole contract of store.Store, lasts as long as its process, and is cheap to
// make: a simulation makes thousands of them.
//
// It is deterministic: names of pieces and versions are counted, nothing waits
// for anything but a short lock, no goroutine is started, and time comes from
// the clock that is given. So it also works inside of a testing/synctest bubble.
//
// The handles on one store stand for processes that share it; closing one does
// not touch the others.
package mem

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Store is a handle on a store in memory.
type Store struct {
	tree  *tree
	done  chan struct{} // closed by Close
	close sync.Once
}

var _ store.Store = (*Store)(nil)

// New makes an empty store whose files bear the time of the system's clock (in
// a synctest bubble: the bubble's).
func New() *Store { return NewWithClock(time.Now) }

// NewWithClock makes an empty store whose files bear the time that now tells.
func NewWithClock(now func() time.Time) *Store {
	return newHandle(newTree(now))
}

// Handle returns another handle on the same store, as another process would
// have it.
func (s *Store) Handle() *Store { return newHandle(s.tree) }

func newHandle(t *tree) *Store { return &Store{tree: t, done: make(chan struct{})} }

// enter fails when a call should not begin.
func (s *Store) enter(ctx context.Context, op, path string) error {
	select {
	case <-s.done:
		return fmt.Errorf("%s %s: %w: the store is closed", op, path, smq.ErrUnavailable)
	default:
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: not begun: %w", op, path, err)
	}
	return nil
}

func (s *Store) enterPath(ctx context.Context, op, path string) error {
	if err := store.CheckPath(path); err != nil {
		return err
	}
	return s.enter(ctx, op, path)
}

func (s *Store) enterDir(ctx context.Context, op, dir string) error {
	if err := store.CheckDir(dir); err != nil {
		return err
	}
	return s.enter(ctx, op, dir)
}

// Create makes a file of a copy of the bytes and of uploaded bytes, which it
// takes over.
func (s *Store) Create(ctx context.Context, path string, content []store.Part) error {
	if err := s.enterPath(ctx, "create", path); err != nil {
		return err
	}
	return s.tree.create(path, content)
}

// Replace writes a small file if its version is the given one.
func (s *Store) Replace(ctx context.Context, path string, data []byte, version store.Version) (store.Version, error) {
	if err := s.enterPath(ctx, "replace", path); err != nil {
		return "", err
	}
	if len(data) > store.MaxSmall {
		return "", fmt.Errorf("replace %s: %w: %d bytes, the limit is %d", path, smq.ErrTooLarge, len(data), store.MaxSmall)
	}
	return s.tree.replace(path, data, version)
}

// Read returns a copy of a file.
func (s *Store) Read(ctx context.Context, path string) ([]byte, store.Version, error) {
	if err := s.enterPath(ctx, "read", path); err != nil {
		return nil, "", err
	}
	data, version, err := s.tree.file(path)
	if err != nil {
		return nil, "", err
	}
	if len(data) > store.MaxSmall {
		return nil, "", fmt.Errorf("read %s: %w: %d bytes, the limit is %d", path, smq.ErrTooLarge, len(data), store.MaxSmall)
	}
	return append([]byte{}, data...), version, nil
}

// ReadAt copies a part of a file.
func (s *Store) ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error) {
	if err := s.enterPath(ctx, "read", path); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, fmt.Errorf("read %s: %w offset %d", path, smq.ErrInvalid, off)
	}
	data, _, err := s.tree.file(path)
	if err != nil {
		return 0, err
	}
	if off >= int64(len(data)) && len(p) > 0 {
		return 0, io.EOF
	}
	n := copy(p, data[min(off, int64(len(data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Stat describes a file or a folder.
func (s *Store) Stat(ctx context.Context, path string) (store.Info, error) {
	if err := s.enterPath(ctx, "stat", path); err != nil {
		return store.Info{}, err
	}
	return s.tree.stat(path)
}

// List returns a page of a folder.
func (s *Store) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	if err := s.enterDir(ctx, "list", dir); err != nil {
		return nil, err
	}
	return s.tree.list(dir, after, limit), nil
}

// Remove deletes a file or an empty folder.
func (s *Store) Remove(ctx context.Context, path string) error {
	if err := s.enterPath(ctx, "remove", path); err != nil {
		return err
	}
	return s.tree.remove(path)
}

// RemoveAll deletes a file, or a folder with all below it, in one step.
func (s *Store) RemoveAll(ctx context.Context, dir string) error {
	if err := s.enterPath(ctx, "remove all of", dir); err != nil {
		return err
	}
	s.tree.removeAll(dir)
	return nil
}

// Upload keeps a copy of the bytes, as one piece.
func (s *Store) Upload(ctx context.Context, data ...[]byte) (store.Ref, error) {
	if err := s.enter(ctx, "upload", ""); err != nil {
		return store.Ref{}, err
	}
	var size int
	var crc uint32
	for _, d := range data {
		size += len(d)
		crc = crc32.Update(crc, castagnoli, d)
	}
	if size == 0 {
		return store.Ref{}, nil
	}
	piece := make([]byte, 0, size)
	for _, d := range data {
		piece = append(piece, d...)
	}
	id := s.tree.upload(piece)
	return store.Ref{Pieces: []store.Piece{{ID: id, Size: int64(size), CRC32C: crc}}}, nil
}

// Discard forgets uploaded bytes.
func (s *Store) Discard(ctx context.Context, ref store.Ref) error {
	if err := s.enter(ctx, "discard", ""); err != nil {
		return err
	}
	s.tree.discard(ref)
	return nil
}

// Limits are those of a store across a network, so that callers shape their
// writes in tests as they would there.
func (s *Store) Limits() store.Limits {
	return store.Limits{Inline: 64 << 10, Piece: 1 << 20}
}

// String is "mem:", which no URL opens: what is in memory is nobody else's.
func (s *Store) String() string { return "mem:" }

// Close makes later calls on this handle fail, and its watches end. It may be
// called again.
func (s *Store) Close() error {
	s.close.Do(func() { close(s.done) })
	return nil
}
