package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/emptypb"
)

// maxFrameSize is the largest message or frame that either end takes, in bytes:
// a batch of smq.MaxBatchSize and about as much again.
const maxFrameSize = 32 << 20

// What both ends set on a connection. With windows of a fixed size gRPC sends
// no probes to find its own, and a window bounds what an application that does
// not read makes its own process hold.
const (
	streamWindow = 8 << 20
	connWindow   = 16 << 20
	ioBuffer     = 128 << 10
)

// Times after which the peer is asked for a sign of life, and given up.
const (
	quietAfter  = time.Second
	silentAfter = 3 * time.Second
)

// ServerOptions configure NewServer. The zero value serves without encryption
// and logs nothing.
type ServerOptions struct {
	// Credentials encrypt and authenticate; nil: plain text.
	Credentials credentials.TransportCredentials
	// Logger hears of panics in handlers; nil: nobody does.
	Logger *slog.Logger
	// StreamWindow and ConnWindow bound, in bytes, what a peer may have sent
	// that the application has not received yet, per stream and per connection.
	// 0: 8 MiB and 16 MiB.
	StreamWindow, ConnWindow int32
}

// NewServer makes a gRPC server with SMQ's codec, limits and errors. Its
// handlers may panic: the call ends with an internal error and the panic is
// logged with its stack.
func NewServer(o ServerOptions) *grpc.Server {
	i := interceptors{logger: orDiscard(o.Logger)}
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ChainUnaryInterceptor(i.unary),
		grpc.ChainStreamInterceptor(i.stream),
		grpc.MaxRecvMsgSize(maxFrameSize),
		grpc.MaxSendMsgSize(maxFrameSize),
		grpc.StaticStreamWindowSize(orDefault(o.StreamWindow, streamWindow)),
		grpc.StaticConnWindowSize(orDefault(o.ConnWindow, connWindow)),
		grpc.ReadBufferSize(ioBuffer),
		grpc.WriteBufferSize(ioBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quietAfter, Timeout: silentAfter - quietAfter}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: quietAfter / 2, PermitWithoutStream: true}),
	}
	if o.Credentials != nil {
		options = append(options, grpc.Creds(o.Credentials))
	}
	s := grpc.NewServer(options...)
	s.RegisterService(&peerService, struct{}{})
	return s
}

func orDefault(n, otherwise int32) int32 {
	if n == 0 {
		return otherwise
	}
	return n
}

func orDiscard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// interceptors surround every handler.
type interceptors struct{ logger *slog.Logger }

func (i interceptors) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	defer i.finish(info.FullMethod, &err)
	return handle(ctx, req)
}

func (i interceptors) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	defer i.finish(info.FullMethod, &err)
	return handle(srv, serverStream{s})
}

// finish runs deferred: it turns a panic into an error, and the error into a
// status.
func (i interceptors) finish(method string, err *error) {
	if p := recover(); p != nil {
		i.logger.Error("a handler panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = fmt.Errorf("internal error in %s; the server's log has the details", method)
	}
	*err = toStatus(*err)
}

// serverStream gives a handler errors instead of statuses.
type serverStream struct{ grpc.ServerStream }

func (s serverStream) SendMsg(m any) error { return fromStatus(s.ServerStream.SendMsg(m)) }
func (s serverStream) RecvMsg(m any) error { return fromStatus(s.ServerStream.RecvMsg(m)) }

// pingMethod answers every server's peers: see watchedConn.
const pingMethod = "/smq.v1.Peer/Ping"

var peerService = grpc.ServiceDesc{
	ServiceName: "smq.v1.Peer",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Ping", Handler: servePing}},
}

func servePing(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var empty emptypb.Empty
	if err := decode(&empty); err != nil {
		return nil, err
	}
	return &empty, nil
}
