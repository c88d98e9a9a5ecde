//go:build !windows

package cli

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// WatchOutput derives a context that ends, with ErrOutputClosed as the cause,
// when the reader of standard output leaves. A command that waits for
// something to print would otherwise learn of it only then, and a pipeline
// such as "smq-sub t | head -1" would not come back.
func (e *Env) WatchOutput(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if w, ok := e.Stdout.(pipeWriter); ok && isPipe(w.file) {
		// The goroutine stays behind in the system call until the reader
		// leaves or the process ends.
		go func() {
			if waitForHangup(int32(w.file.Fd())) {
				cancel(ErrOutputClosed)
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// waitForHangup returns true when the other end of fd is closed, and false
// when the system cannot say.
func waitForHangup(fd int32) bool {
	for {
		fds := []unix.PollFd{{Fd: fd}} // errors and hang-ups are always told
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || fds[0].Revents&unix.POLLNVAL != 0:
			return false
		case fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		}
	}
}
