package store

import (
	"fmt"
	"strings"

	"github.com/seaweedmq/smq/lib/smq"
)

// maxElement is the longest element of a path, in bytes, that every file
// system takes.
const maxElement = 255

// CheckPath says whether path is one that a store takes: absolute, clean, not
// the root, and with no element that begins with a dot (those are the
// backends' own). The error is an smq.ErrInvalid.
func CheckPath(path string) error {
	if len(path) < 2 || path[0] != '/' {
		return fmt.Errorf("%w path %q: it must begin with / and name something", smq.ErrInvalid, path)
	}
	return checkElements(path)
}

// CheckDir is CheckPath for folders: the root, "/", is one.
func CheckDir(path string) error {
	if path == "/" {
		return nil
	}
	return CheckPath(path)
}

func checkElements(path string) error {
	for e := range strings.SplitSeq(path[1:], "/") {
		switch {
		case e == "":
			return fmt.Errorf("%w path %q: empty element", smq.ErrInvalid, path)
		case e[0] == '.':
			return fmt.Errorf("%w path %q: element %q begins with a dot", smq.ErrInvalid, path, e)
		case len(e) > maxElement:
			return fmt.Errorf("%w path %q: element of %d bytes, the limit is %d", smq.ErrInvalid, path, len(e), maxElement)
		case strings.ContainsAny(e, "\x00\\"):
			return fmt.Errorf("%w path %q: element %q holds a character that not every store takes", smq.ErrInvalid, path, e)
		}
	}
	return nil
}
