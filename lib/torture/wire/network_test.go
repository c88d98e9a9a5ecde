package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// patience bounds what must come.
const patience = 30 * time.Second

// server is a part that hands its connections to the test.
type server struct {
	listener net.Listener
	accepted chan net.Conn
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{listener: l, accepted: make(chan net.Conn, 10)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted <- c
		}
	}()
	t.Cleanup(func() { l.Close() })
	return s
}

func (s *server) accept(t *testing.T) net.Conn {
	t.Helper()
	select {
	case c := <-s.accepted:
		t.Cleanup(func() { c.Close() })
		return c
	case <-time.After(patience):
		t.Fatal("no connection has come")
		return nil
	}
}

// pair is a network with a part b behind a door.
func pair(t *testing.T, owner Owner) (*Network, *Door, *server) {
	t.Helper()
	n := New(owner)
	t.Cleanup(n.Close)
	s := newServer(t)
	d, err := n.Door("b")
	if err != nil {
		t.Fatal(err)
	}
	d.Lead(s.listener.Addr().String())
	return n, d, s
}

func dial(t *testing.T, n *Network, part string, d *Door) net.Conn {
	t.Helper()
	c, err := n.Dialer(part)(t.Context(), d.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("received %q, %v; want %q", got, err, want)
	}
}

// expectEnd waits until a connection ends.
func expectEnd(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, want) {
		t.Fatalf("received %d bytes, %v; want %v", n, err, want)
	}
}

// expectRefused opens a connection, which must be reset, before or after it
// counts as open.
func expectRefused(t *testing.T, open func() (net.Conn, error)) {
	t.Helper()
	c, err := open()
	if err == nil {
		defer c.Close()
		expectEnd(t, c, syscall.ECONNRESET)
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
}

func TestOneWayCut(t *testing.T) {
	n, d, s := pair(t, nil)
	a := dial(t, n, "a", d)
	write(t, a, "before")
	b := s.accept(t)
	expect(t, b, "before")

	lift := n.Impose(Rule{From: Parts{"a"}, To: Parts{"b"}, Cut: true})
	got := make(chan string, 1)
	write(t, a, "held up")
	go func() {
		text := make([]byte, len("held up"))
		_, _ = io.ReadFull(b, text) // the text tells
		got <- string(text)
	}()
	write(t, b, "the other way")
	expect(t, a, "the other way")
	select {
	case text := <-got:
		t.Fatalf("%q has arrived through a cut", text)
	default:
	}
	// What a dead sender had under way arrives late, and then its end.
	a.Close()
	lift()
	if text := <-got; text != "held up" {
		t.Errorf("%q has arrived", text)
	}
	expectEnd(t, b, io.EOF)
	lift() // harmless
}

func TestNewConnectionsWaitForBothWays(t *testing.T) {
	n, d, s := pair(t, nil)
	lift := n.Impose(Rule{From: Parts{"b"}, To: Parts{"a"}, Cut: true})
	a := dial(t, n, "a", d)
	write(t, a, "hello")
	// Another part is not concerned, and is served meanwhile.
	c := dial(t, n, "c", d)
	write(t, c, "from c")
	expect(t, s.accept(t), "from c")
	select {
	case <-s.accepted:
		t.Error("a connection was opened through a cut")
	default:
	}
	lift()
	expect(t, s.accept(t), "hello")
}

func TestReset(t *testing.T) {
	n, d, s := pair(t, nil)
	a := dial(t, n, "a", d)
	write(t, a, "x")
	b := s.accept(t)
	expect(t, b, "x")
	lift := n.Impose(Rule{From: Parts{"b"}, To: Parts{"a"}, Reset: true})
	expectEnd(t, a, syscall.ECONNRESET)
	expectEnd(t, b, syscall.ECONNRESET)
	expectRefused(t, func() (net.Conn, error) { return n.Dialer("a")(t.Context(), d.Address()) })
	lift()
	a = dial(t, n, "a", d)
	write(t, a, "again")
	expect(t, s.accept(t), "again")
}

func TestADoorWithNothingBehindRefuses(t *testing.T) {
	n, d, s := pair(t, nil)
	d.Lead("")
	expectRefused(t, func() (net.Conn, error) { return n.Dialer("a")(t.Context(), d.Address()) })
	d.Lead(s.listener.Addr().String())
	a := dial(t, n, "a", d)
	write(t, a, "back")
	expect(t, s.accept(t), "back")
}

func TestHalfClose(t *testing.T) {
	n, d, s := pair(t, nil)
	a := dial(t, n, "a", d)
	write(t, a, "question")
	if err := a.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b := s.accept(t)
	expect(t, b, "question")
	expectEnd(t, b, io.EOF)
	write(t, b, "answer")
	b.Close()
	expect(t, a, "answer")
	expectEnd(t, a, io.EOF)
}

func TestCloseEndsWhatIsCut(t *testing.T) {
	n, d, s := pair(t, nil)
	a := dial(t, n, "a", d)
	write(t, a, "x")
	b := s.accept(t)
	expect(t, b, "x")
	n.Impose(Rule{Cut: true})
	write(t, a, "held up")
	waiting := dial(t, n, "a", d)
	n.Close()
	expectEnd(t, a, syscall.ECONNRESET)
	expectEnd(t, b, syscall.ECONNRESET)
	expectEnd(t, waiting, syscall.ECONNRESET)
	if _, err := n.Dialer("a")(context.Background(), d.Address()); err == nil {
		t.Error("a closed network accepts connections")
	}
}
