package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/seaweedmq/smq/lib/tui/noquery"
)

func init() { noquery.Restore() }

// ErrInterrupted means that the console was ended by ctrl+c.
var ErrInterrupted = errors.New("interrupted")

// PanicError is a fault in the console, which has given the terminal back.
type PanicError struct {
	Value any
	Stack []byte
}

// Error tells what it was.
func (e *PanicError) Error() string { return fmt.Sprintf("the console failed: %v", e.Value) }

// Options say what the console shows and how.
type Options struct {
	Backend  Backend
	Topic    string // to begin with; empty: the list of topics
	ReadOnly bool   // refuse what changes the cluster
	ASCII    bool   // draw with plain characters
	NoColor  bool
	Zone     *time.Location // of times of day; nil: the local one
	// In and Out are the terminal.
	In, Out *os.File
	// Last is given a function that gives the terminal back, for a process that
	// must end at once; nil: it is not wanted.
	Last func(restore func())
}

// Run shows the console until it is quit (nil), interrupted (ErrInterrupted),
// ctx ends (its cause), the cluster cannot be watched (the backend's error), or
// the console fails (a *PanicError). In each case it gives the terminal back.
func Run(ctx context.Context, o Options) error { return newModel(o).run(ctx) }

func (m *Model) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	m.ctx = ctx
	o := m.o
	g := &guard{Model: m}
	p := tea.NewProgram(g, tea.WithInput(o.In), tea.WithOutput(o.Out),
		tea.WithAltScreen(), tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithFPS(30))
	g.quit = p.Quit
	// Not by tea.WithContext, which ends a program without waiting for the one
	// that reads the terminal.
	defer context.AfterFunc(ctx, p.Quit)()
	if o.Last != nil {
		o.Last(func() { _ = p.ReleaseTerminal() }) // the process ends
	}
	feed := &feed{backend: o.Backend, send: p.Send}
	m.copy = func(s string) error { return copyTo(o.Out, s) }
	m.focus = func(topic string) { feed.look(ctx, topic) }
	feed.start(ctx)
	m.focus(m.watch)
	_, err := p.Run()
	cause := context.Cause(ctx)
	cancel()
	feed.wait()
	switch {
	case g.fault != nil:
		return g.fault
	case m.failed != nil:
		return m.failed
	case cause != nil:
		return cause
	case err != nil:
		return fmt.Errorf("run the console: %w", err)
	}
	return nil
}

// copyTo puts a text on the clipboard of whoever looks at the terminal, by the
// escape sequence for that, which many terminals know.
func copyTo(out io.Writer, s string) error {
	_, err := io.WriteString(out, ansi.SetSystemClipboard(s))
	return err
}

// guard ends the program, in good order, when the model panics.
type guard struct {
	*Model
	quit  func()
	fault error
}

// Update is the model's.
func (g *guard) Update(msg tea.Msg) (same tea.Model, cmd tea.Cmd) {
	defer func() {
		if v := recover(); v != nil {
			g.fault = &PanicError{v, debug.Stack()}
			same, cmd = g, tea.Quit
		}
	}()
	if g.fault != nil {
		return g, tea.Quit
	}
	_, cmd = g.Model.Update(msg)
	return g, cmd
}

// View is the model's.
func (g *guard) View() (frame string) {
	if g.fault != nil {
		return ""
	}
	defer func() {
		if v := recover(); v != nil {
			g.fault = &PanicError{v, debug.Stack()}
			go g.quit() // it waits for the one who calls View
		}
	}()
	return g.Model.View()
}

// guarded makes a panic of what runs beside the model one of the console's.
func guarded(cmd tea.Cmd) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = faultMsg{&PanicError{v, debug.Stack()}}
			}
		}()
		return cmd()
	}
}
