package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

const (
	tmpDir  = ".tmp"
	lockDir = ".lock"

	folderMode = 0o750
	fileMode   = 0o640

	maxChanges = 128 // under way at once; each may hold a thread in a system call
)

// Options say how a store is opened.
type Options struct {
	// Fsync makes each change durable before it succeeds. Without it a power
	// cut may undo, or tear, what was done in the last seconds before. All
	// processes that use a store should say the same.
	Fsync bool
	// Logger is told what goes wrong in the background; nil: nobody is.
	Logger *slog.Logger
}

// Store is a handle on a directory.
type Store struct {
	root    string // as the operating system names it
	name    string // the URL
	fsync   bool
	log     *slog.Logger
	calls   calls
	slots   chan struct{} // one for each change under way
	folders *folders
	locks   *locks
	files   *files

	prepareMu sync.Mutex
	prepared  bool

	done       <-chan struct{} // closed by Close
	stop       func()
	close      sync.Once
	background sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open opens the directory at path. One that is absent is made by the first
// change. The error is an smq.ErrInvalid when something else is there.
func Open(path string, opts Options) (*Store, error) {
	s, err := newStore(path, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.done, s.stop = ctx.Done(), cancel
	s.background.Go(func() { s.housekeeping(ctx) })
	return s, nil
}

func newStore(path string, opts Options) (*Store, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store directory %q: %w", path, err)
	}
	name := storeURL(root, opts)
	if root, err = resolve(root); err != nil {
		return nil, err
	}
	s := &Store{
		root:  root,
		name:  name,
		fsync: opts.Fsync,
		log:   opts.Logger,
		calls: systemCalls(),
		slots: make(chan struct{}, maxChanges),
		files: newFiles(maxOpenFiles),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.folders = newFolders(s)
	s.locks = newLocks(filepath.Join(root, lockDir))
	return s, nil
}

// resolve follows links to the root, once, so that it stays the same directory
// while the store is open.
func resolve(root string) (string, error) {
	if filepath.Dir(root) == root {
		return "", fmt.Errorf("store directory %s: %w: it is the root of a file system", root, smq.ErrInvalid)
	}
	resolved, err := filepath.EvalSymlinks(root)
	if errors.Is(err, fs.ErrNotExist) {
		return root, nil
	}
	if err != nil {
		return "", fmt.Errorf("store directory %s: %w: %w", root, smq.ErrInvalid, err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", fmt.Errorf("store directory %s: %w", root, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("store directory %s: %w: it is not a directory", root, smq.ErrInvalid)
	}
	return resolved, nil
}

func storeURL(root string, opts Options) string {
	u := url.URL{Scheme: "dir", Path: filepath.ToSlash(root)}
	if u.Path[0] != '/' { // a volume's name
		u.Path = "/" + u.Path
	}
	if !opts.Fsync {
		u.RawQuery = "fsync=false"
	}
	return u.String()
}

// native is the operating system's name for a path.
func (s *Store) native(path string) string {
	return s.root + filepath.FromSlash(path)
}

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

// prepare makes the folders that changes need, once.
func (s *Store) prepare() error {
	s.prepareMu.Lock()
	defer s.prepareMu.Unlock()
	if s.prepared {
		return nil
	}
	if err := s.makeRoot(s.root); err != nil {
		return fmt.Errorf("make the store's directory: %w", err)
	}
	for _, d := range []string{tmpDir, lockDir} {
		if err := os.Mkdir(filepath.Join(s.root, d), folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the store's directory: %w", err)
		}
	}
	if err := s.locks.prepare(); err != nil {
		return fmt.Errorf("make the store's locks: %w", err)
	}
	s.prepared = true
	return nil
}

// makeRoot makes a directory, and those above it, durably.
func (s *Store) makeRoot(path string) error {
	parent := filepath.Dir(path)
	info, err := os.Stat(path)
	existed := err == nil && info.IsDir()
	if !existed {
		if parent != path {
			if err := s.makeRoot(parent); err != nil {
				return err
			}
		}
		if err := os.Mkdir(path, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if !s.fsync {
		return nil
	}
	err = s.calls.syncDir(parent)
	if existed && errors.Is(err, fs.ErrPermission) {
		return nil // whoever may not even look there did not make it either
	}
	return err
}

// housekeeping deletes what processes left behind, and lets go of files that
// are no longer read.
func (s *Store) housekeeping(ctx context.Context) {
	const sweepEvery = 60
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%sweepEvery == 0 {
			s.sweep(ctx, time.Now().Add(-sweepAge))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.files.closeUnused()
		}
	}
}

// Limits says what suits a local disk.
func (s *Store) Limits() store.Limits {
	return store.Limits{Inline: 64 << 10, Piece: 4 << 20}
}

// String is the store's URL.
func (s *Store) String() string { return s.name }

// Close lets go of all files. Later calls fail, and watches end. It may be
// called again.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.stop()
		s.background.Wait()
		s.files.closeAll()
		s.prepareMu.Lock()
		defer s.prepareMu.Unlock()
		s.locks.close()
	})
	return nil
}
