package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long a signal that comes again counts as the same one.
// Whoever signals a process and then its whole group (timeout of GNU does, and
// so do shells and service managers) has not changed their mind.
const sameSignal = 500 * time.Millisecond

// withSignals derives a context that SIGINT, SIGTERM and SIGQUIT, where that is
// an interruption too, end with a *SignalError as the cause. The second signal
// ends the process at once. Call stop when the command is over.
func withSignals(parent context.Context, e *Env) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, e.interruptions()...)
	// Being told of SIGPIPE, which nobody reads here, makes writes to a
	// closed pipe fail with an error instead of ending the process. Ignoring
	// it would do the same but be inherited by child processes.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		counter := signalCounter{now: time.Now}
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				err := &SignalError{Signal: s.(syscall.Signal)}
				switch n := counter.count(err.Signal); {
				case n == 1:
					cancel(err)
				case n > 1:
					e.stopAtOnce(err.ExitCode())
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// stopAtOnce ends the process, after what OnSecondSignal asks for.
func (e *Env) stopAtOnce(code int) {
	_, _ = io.WriteString(e.Stderr, e.Name+": stopped at once by a second signal\n") // nobody is left to tell when this fails
	if f := e.lastThing.Load(); f != nil {
		(*f)()
	}
	os.Exit(code)
}

// OnSecondSignal has f called before a second signal ends the process: it takes
// away what must not stay behind. f must be quick, and runs beside whatever the
// command is doing.
func (e *Env) OnSecondSignal(f func()) { e.lastThing.Store(&f) }

// signalCounter counts signals, as far as they are not the last one once more.
type signalCounter struct {
	now  func() time.Time
	n    int
	last syscall.Signal
	at   time.Time
}

// count returns how many signals there are with s, or 0 when it is the last one
// once more.
func (c *signalCounter) count(s syscall.Signal) int {
	now := c.now()
	if c.n > 0 && s == c.last && now.Sub(c.at) < sameSignal {
		return 0
	}
	c.n++
	c.last, c.at = s, now
	return c.n
}
