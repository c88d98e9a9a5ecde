package cli

import (
	"errors"
	"syscall"
)

// The two ways in which Windows says that the reader of a pipe has left.
const (
	errorBrokenPipe syscall.Errno = 109
	errorNoData     syscall.Errno = 232
)

// brokenPipe reports whether err says that the reader of a pipe has left.
func brokenPipe(err error) bool {
	return errors.Is(err, errorBrokenPipe) || errors.Is(err, errorNoData)
}
