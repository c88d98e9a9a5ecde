package dir

import (
	"errors"

	"golang.org/x/sys/windows"
)

// openFlags is empty: on Windows links are told apart only before the open.
const openFlags = 0

// syncDir does nothing: Windows journals names by itself and has no way to wait
// for them.
func syncDir(string) error { return nil }

// noSpace reports whether a disk, or somebody's share of it, is full.
func noSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// isLink is never so: no open refuses a link.
func isLink(error) bool { return false }
