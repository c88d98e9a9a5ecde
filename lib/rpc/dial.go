package rpc

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seaweedmq/smq/lib/smq"
)

// DialOptions configure Dial and NewConns. The zero value connects by TCP
// without encryption.
type DialOptions struct {
	// Credentials encrypt and authenticate; nil: plain text.
	Credentials credentials.TransportCredentials
	// Dialer opens connections; nil: TCP.
	Dialer func(ctx context.Context, addr string) (net.Conn, error)
	// StreamWindow and ConnWindow bound, in bytes, what the peer may have sent
	// that the application has not received yet, per stream and per connection.
	// 0: 8 MiB and 16 MiB.
	StreamWindow, ConnWindow int32
}

// Dial prepares a connection to addr, host:port, with SMQ's codec, limits and
// errors. It is made at the first call, made again whenever it breaks (first at
// once, then at most a second apart, and with every call), and rests when it was not
// used for a while; calls meanwhile fail with smq.ErrUnavailable. A peer that has been
// silent for three seconds though it was asked for a sign of life counts as
// gone, even while the network still accepts what is sent to it.
func Dial(addr string, o DialOptions) (*grpc.ClientConn, error) { return dialWatched(addr, o, nil) }

// dialWatched is Dial. quiet, if not nil, is told when a connection's peer is quiet,
// see Conns.OnQuiet.
func dialWatched(addr string, o DialOptions, quiet func()) (*grpc.ClientConn, error) {
	w := watcher{dial: o.Dialer, quiet: quiet, dials: newDials(), ready: make(chan struct{})}
	if w.dial == nil {
		w.dial = dialTCP
	}
	creds := o.Credentials
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	// The name is passed to the dialer as it is, which resolves it anew for
	// every connection.
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(w.connect),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(newCodec()),
			grpc.MaxCallRecvMsgSize(maxFrameSize),
			grpc.MaxCallSendMsgSize(maxFrameSize),
		),
		grpc.WithChainUnaryInterceptor(w.unary),
		grpc.WithChainStreamInterceptor(w.stream),
		grpc.WithStaticStreamWindowSize(orDefault(o.StreamWindow, streamWindow)),
		grpc.WithStaticConnWindowSize(orDefault(o.ConnWindow, connWindow)),
		grpc.WithReadBufferSize(ioBuffer),
		grpc.WithWriteBufferSize(ioBuffer),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: silentAfter,
		}),
		grpc.WithIdleTimeout(time.Minute),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("%w address %q: %w", smq.ErrInvalid, addr, err)
	}
	w.conn = conn
	close(w.ready)
	return conn, nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

func (w *watcher) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	w.reach(ctx, cc)
	return fromStatus(invoke(ctx, method, req, reply, cc, opts...))
}

func (w *watcher) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	w.reach(ctx, cc)
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, fromStatus(err)
	}
	// gRPC would open a stream anew if the server cannot have seen it, and hold up
	// everybody who uses the stream while it waits for a connection. Asking for the
	// context keeps it from that; streams' users begin anew by themselves.
	_ = s.Context()
	return clientStream{s}, nil
}

// clientStream gives the caller errors instead of statuses.
type clientStream struct{ grpc.ClientStream }

func (s clientStream) SendMsg(m any) error { return fromStatus(s.ClientStream.SendMsg(m)) }
func (s clientStream) RecvMsg(m any) error { return fromStatus(s.ClientStream.RecvMsg(m)) }

// unusedFor is how long a connection that rests is kept since it was last asked for:
// brokers come and go, at ever new addresses.
const unusedFor = 10 * time.Minute

// Conns shares connections: one an address. It is safe for concurrent use.
type Conns struct {
	options DialOptions
	quiet   bells // of peers, see OnQuiet

	mu     sync.Mutex
	conns  map[string]*sharedConn
	closed bool
}

// sharedConn is a connection of Conns.
type sharedConn struct {
	*grpc.ClientConn
	asked time.Time // when it was last asked for
}

// NewConns makes an empty set, whose connections Close closes.
func NewConns(o DialOptions) *Conns {
	return &Conns{options: o, conns: make(map[string]*sharedConn)}
}

// Get returns the connection to addr, which the caller must not close, and must ask
// for again when it has not used it for some minutes. It does not wait for it to be
// made. smq.ErrInvalid for an address that cannot be
// one, smq.ErrUnavailable after Close.
func (c *Conns) Get(addr string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("connect to %s: %w: shutting down", addr, smq.ErrUnavailable)
	}
	if conn, ok := c.conns[addr]; ok {
		conn.asked = time.Now()
		return conn.ClientConn, nil
	}
	if err := CheckAddress(addr); err != nil {
		return nil, err
	}
	conn, err := dialWatched(addr, c.options, func() { c.quiet.ring(addr) })
	if err != nil {
		return nil, err
	}
	c.dropUnused()
	c.conns[addr] = &sharedConn{conn, time.Now()}
	return conn, nil
}

// dropUnused closes the connections that nobody has asked for in a long time, and
// that carry no call. c.mu is held.
func (c *Conns) dropUnused() {
	for addr, conn := range c.conns {
		if time.Since(conn.asked) >= unusedFor && conn.GetState() == connectivity.Idle {
			delete(c.conns, addr)
			go conn.Close() // it says only that it was closed before
		}
	}
}

// CheckAddress refuses what cannot be the address of a server: smq.ErrInvalid.
func CheckAddress(addr string) error {
	number := 0
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		number, err = net.LookupPort("tcp", port)
	}
	if err != nil || number == 0 {
		return fmt.Errorf("%w address %q: it is not HOST:PORT", smq.ErrInvalid, addr)
	}
	return nil
}

// Close closes every connection; calls under way fail, and so does Get. A peer
// that takes nothing in may hold it up for some seconds, but neither Get nor the
// other connections.
func (c *Conns) Close() {
	c.mu.Lock()
	conns := c.conns
	c.conns, c.closed = nil, true
	c.mu.Unlock()
	var closing sync.WaitGroup
	for _, conn := range conns {
		closing.Go(func() { _ = conn.Close() }) // it says only that it was closed before
	}
	closing.Wait()
}
