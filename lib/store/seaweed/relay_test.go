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

	losingRequests atomic.Bool // what the client sends is read, and lost
	losingAnswers  atomic.Bool // what the filer sends is read, and lost
	oneRequest     atomic.Bool // requests are lost from the next whole one on
	refusing       atomic.Int64
	requests       chan struct{} // one for each whole request that was seen

	mu    sync.Mutex
	conns []net.Conn
}

func newRelay(t testing.TB, server *weedtest.Server) *relay {
	r := &relay{target: server.FilerGRPC(), requests: make(chan struct{}, 1000)}
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
	r.oneRequest.Store(false)
}

// forgetRequests lets the next one that is received be one that is still to come.
func (r *relay) forgetRequests() {
	for {
		select {
		case <-r.requests:
		default:
			return
		}
	}
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
	for {
		frame, ends, err := readFrame(in)
		if err != nil {
			return
		}
		if !r.losingRequests.Load() {
			if _, err := filer.Write(frame); err != nil {
				return
			}
		}
		if ends {
			if r.oneRequest.Load() {
				r.losingRequests.Store(true)
			}
			r.requests <- struct{}{}
		}
	}
}

// readFrame reads a frame: 3 bytes of length, type, flags, 4 bytes of stream,
// the payload.
func readFrame(in io.Reader) (frame []byte, ends bool, err error) {
	header := make([]byte, 9)
	if _, err := io.ReadFull(in, header); err != nil {
		return nil, false, err
	}
	size := binary.BigEndian.Uint32(header) >> 8
	frame = append(header, make([]byte, size)...)
	_, err = io.ReadFull(in, frame[9:])
	ends = http2.FrameType(header[3]) == http2.FrameData && http2.Flags(header[4]).Has(http2.FlagDataEndStream)
	return frame, ends, err
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
			t.Errorf("error %v, want one that is %q", err, w)
		}
	}
}
