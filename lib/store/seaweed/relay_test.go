//go:build weed

package seaweed

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// relay stands between a Store and a filer's gRPC. It passes what is sent, or
// loses it.
type relay struct {
	target string

	losingRequests atomic.Bool  // what the client sends is read, and lost
	losingAnswers  atomic.Bool  // what the filer sends is read, and lost
	refusing       atomic.Int64 // how many more connections are refused

	mu    sync.Mutex
	conns []net.Conn
	armed *trap // nil: none
}

// trap waits for a request that begins after it was set.
type trap struct {
	sprung   chan struct{} // receives when the whole request has been seen
	loseRest bool          // all that the client sends after it is lost
}

func newRelay(t testing.TB, server *weedtest.Server) *relay {
	r := &relay{target: server.FilerGRPC()}
	t.Cleanup(r.hangUp)
	return r
}

// option makes a Store dial through the relay.
func (r *relay) option() Option {
	return WithDialOptions(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.dial(ctx) }))
}

func (r *relay) dial(ctx context.Context) (net.Conn, error) {
	if r.refusing.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	filer, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.target)
	if err != nil {
		return nil, err
	}
	client, inner := net.Pipe()
	r.mu.Lock()
	r.conns = append(r.conns, filer, inner)
	r.mu.Unlock()
	go r.passAnswers(inner, filer)
	go r.passRequests(filer, inner)
	return client, nil
}

// hangUp ends all connections.
func (r *relay) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

// heal lets everything pass again, over new connections.
func (r *relay) heal() {
	r.hangUp()
	r.losingRequests.Store(false)
	r.losingAnswers.Store(false)
	r.refusing.Store(0)
}

// next sets a trap for the next request. What it returns receives once.
func (r *relay) next(loseRest bool) <-chan struct{} {
	t := &trap{sprung: make(chan struct{}, 1), loseRest: loseRest}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed = t
	return t.sprung
}

// take hands the trap that is set to a request that begins.
func (r *relay) take() *trap {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.armed
	r.armed = nil
	return t
}

func (r *relay) passAnswers(client, filer net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := filer.Read(buf)
		if err == nil && !r.losingAnswers.Load() {
			_, err = client.Write(buf[:n])
		}
		if err != nil {
			client.Close()
			return
		}
	}
}

// passRequests passes the client's HTTP/2 frames one by one, to know where a
// request ends.
func (r *relay) passRequests(filer, client net.Conn) {
	defer filer.Close()
	in := bufio.NewReader(client)
	if _, err := io.CopyN(filer, in, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	traps := map[uint32]*trap{} // by the stream of the request
	for {
		f, err := readFrame(in)
		if err != nil {
			return
		}
		if f.kind() == http2.FrameHeaders {
			if t := r.take(); t != nil {
				traps[f.stream()] = t
			}
		}
		if !r.losingRequests.Load() {
			if _, err := filer.Write(f); err != nil {
				return
			}
		}
		if t := traps[f.stream()]; t != nil && f.endsRequest() {
			if t.loseRest {
				r.losingRequests.Store(true)
			}
			t.sprung <- struct{}{}
			delete(traps, f.stream())
		}
	}
}

// frame is one of HTTP/2: 3 bytes of length, kind, flags, 4 bytes of stream,
// the payload.
type frame []byte

func readFrame(in io.Reader) (frame, error) {
	header := make([]byte, 9)
	if _, err := io.ReadFull(in, header); err != nil {
		return nil, err
	}
	f := append(header, make([]byte, binary.BigEndian.Uint32(header)>>8)...)
	_, err := io.ReadFull(in, f[9:])
	return f, err
}

func (f frame) kind() http2.FrameType { return http2.FrameType(f[3]) }
func (f frame) stream() uint32        { return binary.BigEndian.Uint32(f[5:]) }
func (f frame) endsRequest() bool {
	return f.kind() == http2.FrameData && http2.Flags(f[4]).Has(http2.FlagDataEndStream)
}

// until calls done until it reports true, as fast as the server answers.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for !done() {
		if err := t.Context().Err(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func wantError(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Fatalf("error %v, want one that is %q", err, w)
		}
	}
}
