package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"
)

// Env is what a command has of its process. Commands take everything from
// here, so that tests run them without one.
type Env struct {
	Name   string // of the binary, for instance smq-pub
	Stdin  io.Reader
	Stdout io.Writer // fails with ErrOutputClosed when the reader has left
	Stderr io.Writer
	Getenv func(string) string

	// Whether each stream is a terminal.
	StdinTerminal, StdoutTerminal, StderrTerminal bool

	Flags Flags // the flags that every command knows

	atWork    atomic.Pointer[Progress] // what draws on standard error at present
	lastThing atomic.Pointer[func()]   // before a second signal ends the process
}

// NewEnv is the Env of this process.
func NewEnv(name string) *Env {
	return &Env{
		Name:           name,
		Stdin:          os.Stdin,
		Stdout:         pipeWriter{os.Stdout},
		Stderr:         os.Stderr,
		Getenv:         os.Getenv,
		StdinTerminal:  isTerminal(os.Stdin),
		StdoutTerminal: isTerminal(os.Stdout),
		StderrTerminal: isTerminal(os.Stderr),
	}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Plain reports whether colour and animation are unwanted whatever the stream.
func (e *Env) Plain() bool {
	return e.Flags.NoColor || e.Getenv("NO_COLOR") != "" || e.Getenv("TERM") == "dumb"
}

// Infof prints a line for people on standard error, unless -q forbids it.
func (e *Env) Infof(format string, args ...any) {
	if !e.Flags.Quiet {
		e.line(fmt.Sprintf(format, args...))
	}
}

// Warnf prints a warning, a line on standard error.
func (e *Env) Warnf(format string, args ...any) {
	e.line("warning: " + fmt.Sprintf(format, args...))
}

// line prints one line on standard error, above the progress when there is one.
func (e *Env) line(text string) {
	text = fmt.Sprintf("%s: %s\n", e.Name, text)
	if p := e.atWork.Load(); p != nil && p.printAbove(text) {
		return
	}
	io.WriteString(e.Stderr, text) // nobody is left to tell when this fails
}

// ErrOutputClosed means that whoever read standard output has left. A command
// that returns it ends quietly and with success.
var ErrOutputClosed = errors.New("the reader of standard output has left")

// pipeWriter is standard output.
type pipeWriter struct{ file *os.File }

// Write writes to standard output; it tells a reader that left from any other failure.
func (w pipeWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	switch {
	case err == nil:
		return n, nil
	case brokenPipe(err):
		return n, ErrOutputClosed
	}
	return n, fmt.Errorf("cannot write to standard output: %w", bare(err))
}

// bare takes the operation and path off an error of package os.
func bare(err error) error {
	if pathError := new(os.PathError); errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
