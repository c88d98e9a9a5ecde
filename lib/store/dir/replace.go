package dir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Replace writes a temporary file and renames it under the path's lock, if the
// version is right; see the package's comment.
func (s *Store) Replace(ctx context.Context, path string, data []byte, version store.Version) (store.Version, error) {
	if err := store.CheckPath(path); err != nil {
		return "", err
	}
	if len(data) > store.MaxSmall {
		return "", fmt.Errorf("replace %s: %w: %d bytes, the limit is %d", path, smq.ErrTooLarge, len(data), store.MaxSmall)
	}
	c, err := s.change(ctx, "replace", path)
	if err != nil {
		return "", err
	}
	// A look ahead, to write nothing in vain. The one that counts is under the
	// lock.
	if _, err := c.checkVersion(version); err != nil {
		return "", c.cancel(err)
	}
	t, err := s.writeTemp(ctx, tempPrefix, store.Bytes(data))
	if err != nil {
		return "", c.cancel(err)
	}
	sum := sha256.Sum256(data)
	var next store.Version
	err = c.finish(ctx, func() error {
		defer t.drop()
		if err := t.seal(); err != nil {
			return err
		}
		n, err := c.exchange(t.name, sum, version)
		if err != nil {
			return err
		}
		next = n
		if err := s.folders.sync(parent(path)); err != nil {
			return unknown(err)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return next, nil
}

// exchange puts the file that is called name, in .tmp, in the place of the one
// at the path.
func (c *change) exchange(name string, sum [sha256.Size]byte, version store.Version) (store.Version, error) {
	lock := c.s.locks.of(c.path)
	unlock, err := c.s.locks.lock(lock)
	if err != nil {
		return "", err
	}
	defer unlock()
	modified, err := c.checkVersion(version)
	if err != nil {
		return "", err
	}
	stamp, err := c.s.stamp(lock, name, modified)
	if err != nil {
		return "", err
	}
	if err := c.begin(); err != nil {
		return "", err
	}
	if version == "" {
		err = c.link(name) // and not rename: Create takes no lock
	} else {
		err = c.s.calls.rename(name, c.s.native(c.path))
	}
	switch {
	case err == nil:
		return versionOf(stamp, sum), nil
	case errors.Is(err, fs.ErrExist) && version == "":
		return "", fmt.Errorf("%w: there is a file now", smq.ErrConflict)
	case uncertain(err):
		return "", unknown(err)
	default:
		return "", err
	}
}

// checkVersion sees that the file at the path, if any, has the version, and
// returns its modification time.
func (c *change) checkVersion(version store.Version) (time.Time, error) {
	if err := c.s.folders.check(parent(c.path)); err != nil && err != errNoFolder {
		return time.Time{}, err
	}
	current, modified, err := c.s.version(c.path)
	if err == nil && current != version {
		err = fmt.Errorf("%w: its version is %q, not %q", smq.ErrConflict, current, version)
	}
	return modified, err
}

// version looks at what is at a path now. Its version is empty, and the time
// zero, if that is nothing.
func (s *Store) version(path string) (store.Version, time.Time, error) {
	data, info, err := s.readSmall(path)
	switch {
	case errors.Is(err, errIsFolder):
		return "", time.Time{}, fmt.Errorf("%w: a folder is there", smq.ErrInvalid)
	case errors.Is(err, smq.ErrNotFound):
		return "", time.Time{}, nil
	case errors.Is(err, smq.ErrTooLarge):
		return "too large", info.ModTime(), nil
	case err != nil:
		return "", time.Time{}, err
	}
	return versionOf(info.ModTime(), sha256.Sum256(data)), info.ModTime(), nil
}

func versionOf(stamp time.Time, sum [sha256.Size]byte) store.Version {
	return store.Version(fmt.Sprintf("%x-%x", stamp.UnixNano(), sum[:16]))
}

// stamp gives a temporary file a modification time that no file guarded by this
// lock has had, and that is later than the one given.
func (s *Store) stamp(lock int, name string, after time.Time) (time.Time, error) {
	last, err := s.locks.stamp(lock)
	if err != nil {
		return time.Time{}, err
	}
	least := max(last+1, time.Now().UnixNano())
	if !after.IsZero() {
		least = max(least, after.UnixNano()+1)
	}
	// File systems keep times in units of this many nanoseconds.
	for _, unit := range []int64{1, 100, 1000, 1e9, 2e9} {
		want := time.Unix(0, (least+unit-1)/unit*unit)
		if err := s.calls.chtimes(name, want, want); err != nil {
			return time.Time{}, err
		}
		info, err := os.Lstat(name)
		if err != nil {
			return time.Time{}, err
		}
		if info.ModTime().Equal(want) {
			return want, s.locks.setStamp(lock, want.UnixNano())
		}
	}
	return time.Time{}, fmt.Errorf("the file system keeps no modification times: %w", syscall.ENOTSUP)
}
