package rpc

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestAFailedConnectionIsToldInAFewWords(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for want, err := range map[string]error{
		syscall.ECONNREFUSED.Error():     dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		syscall.EHOSTUNREACH.Error():     dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
		"no such host":                   dial(&net.DNSError{Err: "no such host", Name: "m", IsNotFound: true}),
		"timed out":                      dial(os.ErrDeadlineExceeded),
		"refused by a dialer of its own": errors.New("refused by a dialer of its own"),
	} {
		inTown(t, func(t *testing.T, w *town) {
			conns := NewConns(DialOptions{Dialer: func(context.Context, string) (net.Conn, error) { return nil, err }})
			defer conns.Close()
			ctx, cancel := within(5 * time.Second)
			defer cancel()
			_, got := NewCluster([]string{"m:1"}, conns, nil).Info(ctx)
			if got == nil || got.Error() != "no master answers at m:1 ("+want+")" {
				t.Errorf("got %v, want %q", got, want)
			}
			if !errors.Is(got, smq.ErrUnavailable) {
				t.Errorf("%v is not unavailability", got)
			}
			_, got = smqpb.NewBrokerClient(must(conns.Get("b:1"))).ListSegments(ctx, &smqpb.ListSegmentsRequest{})
			if got == nil || got.Error() != want && !errors.Is(got, context.DeadlineExceeded) {
				t.Errorf("a broker: got %v, want %q", got, want)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestOtherKindsOfServersAreNoMasters(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.NotFoundHandler()}
	go web.Serve(plain)
	defer web.Close()
	grpcOnly, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(ServerOptions{})
	go server.Serve(grpcOnly)
	defer server.Stop()

	old, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	go func() {
		for {
			c, err := old.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.0 400 Bad request syntax\r\n\r\n")) // whether it is read is up to the other end
			defer c.Close()
		}
	}()

	conns := NewConns(DialOptions{})
	defer conns.Close()
	for _, l := range []net.Listener{plain, old, grpcOnly} {
		addr := l.Addr().String()
		_, err := NewCluster([]string{addr}, conns, nil).Info(t.Context())
		if err == nil || err.Error() != addr+" is not an SMQ master" || !errors.Is(err, smq.ErrUnavailable) || errors.Is(err, smq.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
}

func TestLeaderSaysThatThereIsNoBroker(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.start("m:1", &node{info: says("m:1", "")})
		ctx, cancel := within(10 * time.Second)
		defer cancel()
		err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(ctx, lookup)
		if !errors.Is(err, ErrNoBroker) || !errors.Is(err, smq.ErrUnavailable) || strings.Contains(err.Error(), "master") {
			t.Errorf("got %v", err)
		}
	})
}

// The master hangs when the deadline comes: what it said before matters more.
func TestLeaderKeepsTheErrorThatSaysMore(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		asked := 0
		w.start("m:1", &node{info: func() (*smqpb.ClusterInfo, error) {
			if asked++; asked > 1 {
				return nil, smq.ErrUnavailable
			}
			return says("m:1", "")()
		}})
		ctx, cancel := within(10 * time.Second)
		defer cancel()
		err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(ctx, lookup)
		if !errors.Is(err, ErrNoBroker) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestReasonsOfGRPC(t *testing.T) {
	for text, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: connection refused"`:                                                "connection refused",
		`last connection error: connection error: desc = "transport: Error while dialing: no such host"`:                               "no such host",
		`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`:  "transport: authentication handshake failed: tls: first record does not look like a TLS handshake",
		`connection error: desc = "error reading server preface: EOF"`:                                                                 "it does not speak gRPC: EOF",
		`connection error: desc = "error reading server preface: read tcp 127.0.0.1:2->127.0.0.1:1: use of closed network connection"`: "it takes connections and then says nothing",
		`the broker is gone`: `the broker is gone`,
	} {
		if got := fromStatus(status.Error(codes.Unavailable, text)); got.Error() != want || !errors.Is(got, smq.ErrUnavailable) {
			t.Errorf("got %q, want %q", got, want)
		} else if errors.Is(got, ErrHangs) != strings.Contains(want, "says nothing") {
			t.Errorf("%q hangs: %v", got, errors.Is(got, ErrHangs))
		}
	}
	if got := fromStatus(status.FromContextError(context.DeadlineExceeded).Err()); got.Error() != "timed out" {
		t.Errorf("got %q", got)
	}
}
