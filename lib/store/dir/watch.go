package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Watch has the kernel tell of changes in dir, which it makes if it is absent,
// and in every folder below. A folder that comes or goes means that something
// may have been missed: files in it may have come and gone before it was
// watched.
func (s *Store) Watch(ctx context.Context, dir string, ready func(), changed func(path string)) error {
	if err := store.CheckDir(dir); err != nil {
		return err
	}
	if err := s.enter(ctx, "watch", dir); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	if err := s.folders.make(dir); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	kernel, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w: %w", dir, smq.ErrUnavailable, err)
	}
	defer kernel.Close()
	w := &watch{
		s: s, dir: dir, kernel: kernel, folders: map[string]bool{}, changed: changed,
		overflowed: make(chan struct{}, 1), failed: make(chan error, 1),
	}
	go w.drainErrors()
	if err := w.addTree(dir); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	ready()
	if err := w.run(ctx); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	return nil
}

type watch struct {
	s       *Store
	dir     string
	kernel  *fsnotify.Watcher
	folders map[string]bool // that are watched, or were when they were seen
	changed func(path string)

	overflowed chan struct{} // holds one when the kernel has dropped events
	failed     chan error    // holds the first error that ends the watch
}

// drainErrors sorts the kernel's errors, on a goroutine of its own: fsnotify
// sends some of them while it holds the lock that adding a folder waits for.
func (w *watch) drainErrors() {
	for err := range w.kernel.Errors {
		switch {
		case errors.Is(err, fsnotify.ErrEventOverflow):
			select {
			case w.overflowed <- struct{}{}:
			default:
			}
		case errors.Is(err, syscall.EINVAL):
			// It wanted to unwatch a folder that was moved, and is deleted now.
		default:
			select {
			case w.failed <- err:
			default:
			}
		}
	}
}

func (w *watch) run(ctx context.Context) error {
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.s.done:
			return fmt.Errorf("%w: the store is closed", smq.ErrUnavailable)
		case err = <-w.failed:
			err = fmt.Errorf("%w: %w", smq.ErrUnavailable, err)
		case <-w.overflowed:
			err = w.lookAgain()
		case e := <-w.kernel.Events:
			err = w.handle(e)
		}
		if err != nil {
			return err
		}
	}
}

// lookAgain looks for folders whose coming has not been told.
func (w *watch) lookAgain() error {
	if err := w.addTree(w.dir); err != nil {
		return err
	}
	w.changed(w.dir)
	return nil
}

func (w *watch) handle(e fsnotify.Event) error {
	path, ok := w.path(e.Name)
	if !ok {
		return nil
	}
	switch {
	case e.Has(fsnotify.Remove), e.Has(fsnotify.Rename):
		if w.folders[path] {
			return w.folderGone(path)
		}
		w.changed(path)
	case e.Has(fsnotify.Create):
		return w.entryCame(path)
	case e.Has(fsnotify.Write):
		w.changed(path)
	}
	return nil
}

func (w *watch) entryCame(path string) error {
	info, err := os.Lstat(w.s.native(path))
	switch {
	case err != nil: // it is gone already, and may have been a folder
		w.changed(path)
	case info.IsDir():
		if err := w.addTree(path); err != nil {
			return err
		}
	default:
		w.changed(path)
		return nil
	}
	w.changed(w.dir)
	return nil
}

// path is the store's name for what the kernel has told of, if it has one.
func (w *watch) path(name string) (string, bool) {
	path := filepath.ToSlash(strings.TrimPrefix(name, w.s.root))
	return path, store.CheckPath(path) == nil
}

// errFolderGone ends a watch whose folder was removed.
var errFolderGone = fmt.Errorf("%w: the folder was removed", smq.ErrUnavailable)

func (w *watch) folderGone(path string) error {
	if path == w.dir {
		return errFolderGone
	}
	for f := range w.folders {
		if f == path || strings.HasPrefix(f, path+"/") {
			delete(w.folders, f)
			// It may be gone from the kernel's list already. A folder that was
			// moved is not, and would tell of its deletion under its old name.
			w.kernel.Remove(w.s.native(f))
		}
	}
	w.changed(w.dir)
	return nil
}

// addTree watches a folder and those below it. A folder is watched first and
// read then, so that a folder that is made meanwhile is met by one or the other.
func (w *watch) addTree(path string) error {
	name := w.s.native(path)
	w.folders[path] = true // also if it has gone: that is yet to be told
	err := w.kernel.Add(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == w.dir:
		return errFolderGone
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: the system refuses to watch %s: %w", smq.ErrUnavailable, path, err)
	}
	entries, err := os.ReadDir(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		below := strings.TrimSuffix(path, "/") + "/" + e.Name()
		if e.IsDir() && store.CheckPath(below) == nil {
			if err := w.addTree(below); err != nil {
				return err
			}
		}
	}
	return nil
}
