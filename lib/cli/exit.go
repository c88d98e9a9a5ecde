package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/seaweedmq/smq/lib/smq"
)

// The exit codes of all binaries. Scripts depend on them.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitPartly      = 3  // some of the messages are acked, and some are not
	ExitNotFound    = 4  // topic, broker, file or the like
	ExitUnreachable = 5  // or not answering in time
	ExitRefused     = 6  // it exists, it conflicts, it is not allowed
	ExitUnhealthy   = 10 // the doctor found something
	exitSignal      = 128
)

// ExitCodes is the paragraph of the help texts that states them.
const ExitCodes = `Exit codes: 0 done; 1 failed; 2 wrong usage; 3 partly delivered; 4 not found;
5 unreachable or timed out; 6 refused (exists, conflict, not allowed);
10 unhealthy; 130, 131 and 143 interrupted by SIGINT, SIGQUIT and SIGTERM.`

// exitTable maps kinds of errors to exit codes; the first that matches counts.
var exitTable = []struct {
	kind error
	code int
}{
	{smq.ErrNoSpace, ExitFailed}, // whatever timed out because of it
	{smq.ErrInvalid, ExitUsage},
	{smq.ErrNotFound, ExitNotFound},
	{os.ErrNotExist, ExitNotFound},
	{smq.ErrTimeout, ExitUnreachable},
	{smq.ErrUnavailable, ExitUnreachable},
	{smq.ErrNotLeader, ExitUnreachable},
	{smq.ErrDraining, ExitUnreachable},
	{smq.ErrOverloaded, ExitUnreachable},
	{context.DeadlineExceeded, ExitUnreachable},
	{smq.ErrExists, ExitRefused},
	{smq.ErrConflict, ExitRefused},
	{os.ErrPermission, ExitRefused},
}

// ExitError is an error that has its own exit code. When Err is nil the
// command ends with the code and prints nothing.
type ExitError struct {
	Code int
	Err  error
}

// Error is the text of the wrapped error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap gives the wrapped error.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit gives err an exit code of its own.
func Exit(code int, err error) error { return &ExitError{Code: code, Err: err} }

// Usagef is an error in how the command was called.
func Usagef(format string, args ...any) error {
	return Exit(ExitUsage, fmt.Errorf(format, args...))
}

// ExitCode is the code that a command that returns err ends with. cause is why
// the command's context ended, nil when it did not: what fails after a signal
// has failed because of the signal.
func ExitCode(err, cause error) int {
	var exit *ExitError
	var signalled *SignalError
	switch {
	case err == nil, errors.Is(err, ErrOutputClosed):
		return ExitDone
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &signalled):
		return signalled.ExitCode()
	case errors.As(cause, &signalled):
		return signalled.ExitCode()
	}
	for _, row := range exitTable {
		if errors.Is(err, row.kind) {
			return row.code
		}
	}
	return ExitFailed
}

// SignalError says that a signal interrupted the command. It is the cause of
// the end of a command's context.
type SignalError struct{ Signal syscall.Signal }

// Error names the signal.
func (e *SignalError) Error() string { return "interrupted by " + signalName(e.Signal) }

// ExitCode is 128 and the signal's number, as shells have it.
func (e *SignalError) ExitCode() int { return exitSignal + int(e.Signal) }

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	}
	return s.String()
}

// errorLine is err on one line, whatever its text is made of: line breaks
// become "; " and other control characters spaces.
func errorLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(printable(lines[i]))
	}
	return strings.Join(lines, "; ")
}

// printable replaces control characters, which could drive a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
