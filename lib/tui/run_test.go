//go:build unix

package tui

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// screenTest is a console that runs on a pseudo-terminal.
type screenTest struct {
	t           *testing.T
	master, tty *os.File
	before      *term.State
	backend     *fake
	cancel      context.CancelCauseFunc
	ended       chan error

	mu  sync.Mutex
	out strings.Builder
}

// patience is how long tests wait for what must come.
const patience = 30 * time.Second

func startScreen(t *testing.T, prepare func(m *Model)) *screenTest {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); master.Close() })
	if err := pty.Setsize(master, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	s := &screenTest{t: t, master: master, tty: tty, backend: newFake(), ended: make(chan error, 1)}
	if s.before, err = term.GetState(tty.Fd()); err != nil {
		t.Fatal(err)
	}
	go s.read()
	ctx, cancel := context.WithCancelCause(t.Context())
	s.cancel = cancel
	m := newModel(Options{Backend: s.backend, In: tty, Out: tty, Zone: time.UTC})
	if prepare != nil {
		prepare(m)
	}
	go func() { s.ended <- m.run(ctx) }()
	<-s.backend.opened
	s.backend.watches[""].tell <- told{update: world()}
	return s
}

func (s *screenTest) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.out.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screenTest) written() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// wait waits until text has been written to the terminal.
func (s *screenTest) wait(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(s.written(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("no %q in\n%q", text, s.written())
		}
	}
}

func (s *screenTest) typeKeys(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the console's end and checks that the terminal is as it was.
func (s *screenTest) end() error {
	s.t.Helper()
	var err error
	select {
	case err = <-s.ended:
	case <-time.After(patience):
		s.t.Fatalf("the console does not end:\n%q", s.written())
	}
	after, stateErr := term.GetState(s.tty.Fd())
	if stateErr != nil {
		s.t.Fatal(stateErr)
	}
	if *after != *s.before {
		s.t.Errorf("the terminal is not as it was: %v, not %v", after, s.before)
	}
	s.wait("\x1b[?1049l") // back from the other screen
	s.wait("\x1b[?25h")   // the cursor is shown
	for _, never := range []string{"goroutine", "Caught panic"} {
		if strings.Contains(s.written(), never) {
			s.t.Errorf("%q was written", never)
		}
	}
	return err
}

func TestScreenQuits(t *testing.T) {
	s := startScreen(t, nil)
	s.wait("topic-17")
	s.typeKeys("y")
	s.wait("\x1b]52;c;b3JkZXJz\x07") // base64 of orders, for the clipboard
	s.typeKeys("\r")
	if topic := <-s.backend.opened; topic != "orders" {
		t.Errorf("watched %q", topic)
	}
	s.backend.watches["orders"].tell <- told{update: &smqpb.WatchUpdate{Detail: worldDetail()}}
	s.wait("a hot key")
	if err := pty.Setsize(s.master, &pty.Winsize{Rows: 5, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	s.wait("20x5 is too small")
	s.typeKeys("q")
	if err := s.end(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestScreenIsInterrupted(t *testing.T) {
	s := startScreen(t, nil)
	s.wait("topic-17")
	s.typeKeys("\x03")
	if err := s.end(); !errors.Is(err, ErrInterrupted) {
		t.Errorf("ended with %v", err)
	}
}

func TestScreenEndsWithItsContext(t *testing.T) {
	s := startScreen(t, nil)
	s.wait("topic-17")
	cause := errors.New("signalled")
	s.cancel(cause)
	if err := s.end(); !errors.Is(err, cause) {
		t.Errorf("ended with %v", err)
	}
}

func TestScreenEndsWithTheWatch(t *testing.T) {
	s := startScreen(t, nil)
	s.wait("topic-17")
	s.backend.watches[""].tell <- told{ended: smq.ErrInvalid}
	if err := s.end(); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("ended with %v", err)
	}
}

// badScreen fails where a test wants it to.
type badScreen struct {
	brokerScreen
	inView, inKey, beside bool
}

func (s *badScreen) view(*Model, int, int) []string {
	if s.inView {
		panic("bad view")
	}
	return []string{"the bad screen"}
}

func (s *badScreen) key(m *Model, k string) (tea.Cmd, bool) {
	if s.inKey {
		panic("bad key")
	}
	return guarded(func() tea.Msg { panic("bad command") }), true
}

// Whatever fails in the console, the terminal is given back, and nothing is
// written to it.
func TestScreenSurvivesPanics(t *testing.T) {
	for what, bad := range map[string]*badScreen{"bad view": {inView: true}, "bad key": {inKey: true}, "bad command": {beside: true}} {
		t.Run(what, func(t *testing.T) {
			s := startScreen(t, func(m *Model) { m.open(bad) })
			if !bad.inView {
				s.wait("the bad screen")
				s.typeKeys("x")
			}
			var fault *PanicError
			if err := s.end(); !errors.As(err, &fault) || fault.Value != what || len(fault.Stack) == 0 {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// A view that fails ends the program at once, not with the next message.
func TestFailingViewQuits(t *testing.T) {
	m := newModel(Options{Backend: newFake()})
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.open(&badScreen{inView: true})
	quit := make(chan struct{})
	g := &guard{Model: m, quit: func() { close(quit) }}
	if frame := g.View(); frame != "" || g.fault == nil {
		t.Errorf("drawn %q, %v", frame, g.fault)
	}
	<-quit
}
