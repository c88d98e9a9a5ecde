package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Remove deletes a file or an empty folder, under the path's lock.
func (s *Store) Remove(ctx context.Context, path string) error {
	if err := store.CheckPath(path); err != nil {
		return err
	}
	c, err := s.change(ctx, "remove", path)
	if err != nil {
		return err
	}
	return c.finish(ctx, c.remove)
}

func (c *change) remove() error {
	if err := c.s.folders.check(parent(c.path)); err == errNoFolder || err == errBelowFile {
		return nil
	} else if err != nil {
		return err
	}
	unlock, err := c.s.locks.lock(c.s.locks.of(c.path))
	if err != nil {
		return err
	}
	err = c.unlink()
	unlock()
	if err != nil {
		return err
	}
	// Also when nothing was there: that may be an earlier attempt's doing.
	if err := c.s.folders.sync(parent(c.path)); err != nil {
		return unknown(err)
	}
	return nil
}

func (c *change) unlink() error {
	name := c.s.native(c.path)
	info, err := os.Lstat(name)
	if err == nil && info.IsDir() {
		unlock, lockErr := c.s.locks.lock(folderLock)
		if lockErr != nil {
			return lockErr
		}
		defer unlock()
		err = c.s.locks.newToken()
	}
	if err == nil {
		err = c.begin()
	}
	if err == nil {
		err = c.s.calls.remove(name)
	}
	switch {
	case err == nil, errors.Is(absent(err), smq.ErrNotFound):
		return nil
	case errors.Is(err, fs.ErrExist): // which ENOTEMPTY is, too
		return fmt.Errorf("%w: the folder is not empty", smq.ErrConflict)
	case uncertain(err):
		return unknown(err)
	default:
		return err
	}
}

// RemoveAll moves what is at the path to .tmp, under all locks, and deletes it
// there.
func (s *Store) RemoveAll(ctx context.Context, dir string) error {
	if err := store.CheckPath(dir); err != nil {
		return err
	}
	c, err := s.change(ctx, "remove all of", dir)
	if err != nil {
		return err
	}
	return c.finish(ctx, func() error { return c.removeAll(ctx) })
}

func (c *change) removeAll(ctx context.Context) error {
	if err := c.s.folders.check(parent(c.path)); err == errNoFolder || err == errBelowFile {
		return nil
	} else if err != nil {
		return err
	}
	trash := c.s.tempName(trashPrefix)
	if err := c.moveTo(trash); err != nil {
		return err
	}
	err := c.s.folders.sync(parent(c.path))
	if treeErr := removeTree(ctx, trash); treeErr != nil {
		err = errors.Join(err, fmt.Errorf("moved to %s, and there not all was deleted: %w", trash, treeErr))
	}
	if err != nil {
		return unknown(err)
	}
	return nil
}

// moveTo moves what is at the path out of the store. If a disk is so full that
// it cannot be moved, it is deleted in place.
func (c *change) moveTo(trash string) error {
	unlock, err := c.s.locks.lockAll()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.s.locks.newToken(); err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	name := c.s.native(c.path)
	err = c.s.calls.rename(name, trash)
	switch {
	case err == nil, errors.Is(absent(err), smq.ErrNotFound):
		return nil
	case uncertain(err):
		return unknown(err)
	}
	if err := os.RemoveAll(name); err != nil {
		return unknown(err)
	}
	return nil
}

// removeTree deletes a file or a folder with all in it, until the context ends.
// Absence is a success: several processes may delete the same.
func removeTree(ctx context.Context, name string) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := os.Remove(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) { // it is for another reason than not being empty
			return err
		}
		if err := removeSome(ctx, name); err != nil {
			return err
		}
	}
}

// removeSome deletes the first entries of a folder. The next call opens the
// folder anew: where reading goes on after a removal, file systems differ.
func removeSome(ctx context.Context, name string) error {
	d, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	entries, err := d.Readdirnames(1024)
	if err != nil && err != io.EOF && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if err := removeTree(ctx, filepath.Join(name, entry)); err != nil {
			return err
		}
	}
	return nil
}

// sweepAge is the age at which what lies in .tmp belongs to nobody.
const sweepAge = 24 * time.Hour

// sweep deletes what was written to .tmp before the given time and not taken
// over, and goes on with what a RemoveAll has not finished.
func (s *Store) sweep(ctx context.Context, before time.Time) {
	tmp := filepath.Join(s.root, tmpDir)
	entries, err := os.ReadDir(tmp)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("cannot look for files left behind", "err", err)
		}
		return
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return
		}
		info, err := e.Info()
		if err != nil { // gone by now
			continue
		}
		if !strings.HasPrefix(e.Name(), trashPrefix) && !info.ModTime().Before(before) {
			continue
		}
		if err := removeTree(ctx, filepath.Join(tmp, e.Name())); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot delete what was left behind", "err", err)
		}
	}
}
