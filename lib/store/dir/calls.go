package dir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// calls are the system calls whose failure has consequences of its own, so that
// tests can make each of them fail.
type calls struct {
	write   func(f *os.File, p []byte) (int, error)
	copy    func(dst, src *os.File, n int64) (int64, error)
	sync    func(f *os.File) error
	syncDir func(path string) error
	mkdir   func(path string) error
	link    func(oldname, newname string) error
	rename  func(oldname, newname string) error
	remove  func(name string) error
	chtimes func(name string, atime, mtime time.Time) error
	lstat   func(name string) (fs.FileInfo, error) // of what a listing has named
}

func systemCalls() calls {
	return calls{
		write: (*os.File).Write,
		// Between two files the kernel copies, where it can.
		copy:    func(dst, src *os.File, n int64) (int64, error) { return io.CopyN(dst, src, n) },
		sync:    (*os.File).Sync,
		syncDir: syncDir,
		mkdir:   func(path string) error { return os.Mkdir(path, folderMode) },
		link:    os.Link,
		rename:  os.Rename,
		remove:  os.Remove,
		chtimes: os.Chtimes,
		lstat:   os.Lstat,
	}
}

// uncertain reports whether a call that failed so may have been carried out:
// the disk, or a server that the file system is mounted from, gave no answer.
func uncertain(err error) bool {
	for _, e := range []error{syscall.EIO, syscall.ETIMEDOUT, syscall.ESTALE, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
