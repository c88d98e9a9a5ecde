package rpc

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// toStatus is err as a gRPC status that carries the ErrorInfo, for a handler's
// answer; nil for nil. The interceptors of NewServer apply it. An error that
// comes from gRPC and wraps no sentinel passes as it is.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	k := kindOf(err)
	if k.sentinel == nil {
		if _, ok := status.FromError(err); ok {
			return err
		}
	}
	info := ErrorInfo(err)
	st := status.New(k.code, info.GetMessage())
	if detailed, err := st.WithDetails(info); err == nil {
		st = detailed
	}
	return st.Err()
}

// fromStatus is the error that a call ended with, seen by the caller: the
// remote's error as FromErrorInfo gives it, or what gRPC itself ran into,
// in words without gRPC's own, wrapping the sentinel that fits (unavailable, timed
// out, too large, invalid for a method that the other end does not have). When the caller's own context
// has ended it is that context's error too. nil and io.EOF stay what they are.
// The interceptors of Dial apply it.
func fromStatus(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(*smqpb.ErrorInfo); ok {
			return FromErrorInfo(info)
		}
	}
	cause := causeOfCode(st.Code())
	switch {
	case isHang(st):
		cause = errors.Join(ErrHangs, cause)
	case isForeign(st):
		// Whoever was wanted is not there any more, or never was.
		cause = errors.Join(ErrForeign, smq.ErrUnavailable)
	}
	return &remoteError{text: reason(st), cause: cause}
}

// causeOfCode interprets a status that no handler of ours made.
func causeOfCode(c codes.Code) error {
	switch c {
	case codes.Unavailable:
		return smq.ErrUnavailable
	case codes.DeadlineExceeded:
		return errDeadline
	case codes.Canceled:
		return context.Canceled
	case codes.ResourceExhausted:
		return smq.ErrTooLarge // gRPC's only use of the code: a message beyond the limit
	case codes.Unimplemented, codes.InvalidArgument:
		return smq.ErrInvalid
	}
	return nil
}

// errDeadline is the end of the caller's own deadline.
var errDeadline = errors.Join(smq.ErrTimeout, context.DeadlineExceeded)
