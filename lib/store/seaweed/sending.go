package seaweed

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sendingKey is the context key of the flag that sendingHandler sets.
type sendingKey struct{}

// trackSending returns a context for one call and a flag that is set once its
// request has been handed to a connection. As long as it is not set no server
// has seen the request, whatever the call's error is: the status Unavailable
// alone does not tell a connection that never was from one lost before the
// answer.
func trackSending(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sendingKey{}, sent), sent
}

// sendingHandler is told by gRPC when a request leaves.
type sendingHandler struct{}

func (sendingHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sendingHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sendingHandler) HandleConn(context.Context, stats.ConnStats)                       {}

func (sendingHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	sent, ok := ctx.Value(sendingKey{}).(*atomic.Bool)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.Begin:
		if s.IsTransparentRetryAttempt {
			// gRPC repeats by itself only what it knows that no server has read.
			sent.Store(false)
		}
	case *stats.OutPayload:
		sent.Store(true)
	}
}
