package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// kind ties a sentinel to its name on the wire and to its gRPC code.
type kind struct {
	sentinel error
	name     string
	code     codes.Code
}

// kinds is the table. An error that is several of these is the first of them:
// the ones that say more about a request's fate come first.
var kinds = []kind{
	{smq.ErrSegmentSealed, "segment_sealed", codes.FailedPrecondition},
	{smq.ErrNotOwner, "not_owner", codes.FailedPrecondition},
	{smq.ErrNotLeader, "not_leader", codes.FailedPrecondition},
	{smq.ErrOutOfSequence, "out_of_sequence", codes.FailedPrecondition},
	{smq.ErrUnknownProducer, "unknown_producer", codes.FailedPrecondition},
	{smq.ErrStaleProducer, "stale_producer", codes.FailedPrecondition},
	{smq.ErrDuplicate, "duplicate", codes.AlreadyExists},
	{smq.ErrOffsetOutOfRange, "offset_out_of_range", codes.OutOfRange},
	{smq.ErrTooLarge, "too_large", codes.ResourceExhausted},
	{smq.ErrCorrupt, "corrupt", codes.DataLoss},
	{smq.ErrNoSpace, "no_space", codes.ResourceExhausted},
	{smq.ErrNotFound, "not_found", codes.NotFound},
	{smq.ErrExists, "exists", codes.AlreadyExists},
	{smq.ErrInvalid, "invalid", codes.InvalidArgument},
	{smq.ErrConflict, "conflict", codes.Aborted},
	{smq.ErrDraining, "draining", codes.Unavailable},
	{smq.ErrTimeout, "timeout", codes.DeadlineExceeded},
	{smq.ErrOverloaded, "overloaded", codes.ResourceExhausted},
	{smq.ErrUnavailable, "unavailable", codes.Unavailable},
	// What a handler's own context did to it. The caller, whose context is
	// another one, learns only what that means for the request.
	{context.DeadlineExceeded, "timeout", codes.DeadlineExceeded},
	{context.Canceled, "unavailable", codes.Unavailable},
}

// internal names every error that no sentinel describes.
var internal = kind{name: "internal", code: codes.Internal}

// kindOf finds err in the table.
func kindOf(err error) kind {
	for _, k := range kinds {
		if errors.Is(err, k.sentinel) {
			return k
		}
	}
	return internal
}

// NotLeaderError refuses a request that only the leader answers, and says who
// that is. It is an smq.ErrNotLeader.
type NotLeaderError struct {
	Address string // gRPC, host:port; empty while nobody is known to lead
}

// Error says who leads.
func (e *NotLeaderError) Error() string {
	if e.Address == "" {
		return smq.ErrNotLeader.Error() + ": nobody is known to lead"
	}
	return fmt.Sprintf("%v: %s is", smq.ErrNotLeader, e.Address)
}

// Unwrap makes the error an smq.ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return smq.ErrNotLeader }

// maxErrorText bounds the text of an error on the wire, in bytes: details
// travel in a gRPC header.
const maxErrorText = 4 << 10

// ErrorInfo is err in the form that crosses the wire; nil for nil. An error
// that wraps no sentinel of lib/smq gets the code "internal". A context's
// deadline is a timeout, its cancellation is unavailability.
func ErrorInfo(err error) *smqpb.ErrorInfo {
	if err == nil {
		return nil
	}
	info := &smqpb.ErrorInfo{Code: kindOf(err).name, Message: wireText(err.Error())}
	var sequence *smq.SequenceError
	if errors.As(err, &sequence) {
		info.HasSequence, info.LastSequence = true, sequence.Last
	}
	var notLeader *NotLeaderError
	if errors.As(err, &notLeader) {
		info.LeaderAddress = notLeader.Address
	}
	return info
}

// FromErrorInfo is the error that info stands for; nil for nil. Its text is the
// remote's; errors.Is finds the sentinel, errors.As a *smq.SequenceError or
// *NotLeaderError where the remote gave one. A code that is not known here, a
// newer peer's, gives an error that is none of the sentinels.
func FromErrorInfo(info *smqpb.ErrorInfo) error {
	if info == nil {
		return nil
	}
	return &remoteError{text: info.GetMessage(), cause: causeOf(info)}
}

func causeOf(info *smqpb.ErrorInfo) error {
	for _, k := range kinds {
		if k.name != info.GetCode() {
			continue
		}
		switch {
		case k.sentinel == smq.ErrOutOfSequence && info.GetHasSequence():
			return &smq.SequenceError{Last: info.GetLastSequence()}
		case k.sentinel == smq.ErrNotLeader:
			return &NotLeaderError{Address: info.GetLeaderAddress()}
		}
		return k.sentinel
	}
	return nil
}

// remoteError is an error that happened at the other end.
type remoteError struct {
	text  string
	cause error // a sentinel or an error that wraps one; nil for an internal error
}

func (e *remoteError) Error() string {
	switch {
	case e.text != "":
		return e.text
	case e.cause != nil:
		return e.cause.Error()
	}
	return "error without a description"
}

func (e *remoteError) Unwrap() error { return e.cause }

// wireText makes s fit for a protobuf string: valid UTF-8 and not too long.
func wireText(s string) string {
	if len(s) > maxErrorText {
		s = s[:maxErrorText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
