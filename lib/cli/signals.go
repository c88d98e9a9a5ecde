package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// withSignals derives a context that SIGINT and SIGTERM end, with a
// *SignalError as the cause. The second signal ends the process at once. Call
// stop when the command is over.
func withSignals(parent context.Context, stderr io.Writer, name string) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	// Being told of SIGPIPE, which nobody reads here, makes writes to a
	// closed pipe fail with an error instead of ending the process. Ignoring
	// it would do the same but be inherited by child processes.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for count := 0; ; count++ {
			select {
			case <-done:
				return
			case s := <-signals:
				err := &SignalError{Signal: s.(syscall.Signal)}
				if count > 0 {
					io.WriteString(stderr, name+": stopped at once by a second signal\n")
					os.Exit(err.ExitCode())
				}
				cancel(err)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
