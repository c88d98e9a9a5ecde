//go:build unix

package dir

import (
	"errors"
	"os"
	"syscall"
)

// openFlags keep an open from following a link and from waiting for a pipe's
// other end.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncDir makes the names in a directory durable. A file system that cannot be
// asked to (it says EINVAL) has its own way.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// noSpace reports whether a disk, or somebody's share of it, is full, or the file
// would be larger than this process may write (ulimit -f).
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// isLink reports whether an open failed because a link was not followed.
func isLink(err error) bool { return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) }
