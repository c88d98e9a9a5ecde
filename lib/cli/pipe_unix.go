//go:build !windows

package cli

import (
	"errors"
	"syscall"
)

// brokenPipe reports whether err says that the reader of a pipe has left.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
