package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// overTheWire takes an error the way a call's error goes.
func overTheWire(t *testing.T, err error) error {
	t.Helper()
	st, ok := status.FromError(toStatus(err))
	if !ok {
		t.Fatalf("toStatus(%v) is no status", err)
	}
	b, marshalErr := proto.Marshal(st.Proto())
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	received := st.Proto()
	if err := proto.Unmarshal(b, received); err != nil {
		t.Fatal(err)
	}
	return fromStatus(status.FromProto(received).Err())
}

func TestEverySentinelCrossesTheWire(t *testing.T) {
	for _, k := range kinds {
		if k.sentinel == context.Canceled || k.sentinel == context.DeadlineExceeded {
			continue
		}
		sent := fmt.Errorf("append to segment 7: %w", k.sentinel)
		for name, got := range map[string]error{
			"status": overTheWire(t, sent),
			"info":   FromErrorInfo(ErrorInfo(sent)),
		} {
			if !errors.Is(got, k.sentinel) {
				t.Errorf("%s: %q does not wrap %q", name, got, k.sentinel)
			}
			if got.Error() != sent.Error() {
				t.Errorf("%s: text %q, want %q", name, got, sent)
			}
			for _, other := range kinds {
				if other.sentinel != k.sentinel && errors.Is(got, other.sentinel) {
					t.Errorf("%s: %q also wraps %q", name, got, other.sentinel)
				}
			}
		}
		if got := status.Code(toStatus(sent)); got != k.code {
			t.Errorf("%q has code %v, want %v", sent, got, k.code)
		}
	}
}

func TestErrorDetailsCrossTheWire(t *testing.T) {
	var sequence *smq.SequenceError
	if err := overTheWire(t, fmt.Errorf("partition 3: %w", &smq.SequenceError{Last: -1})); !errors.As(err, &sequence) || sequence.Last != -1 {
		t.Errorf("sequence error came as %#v", err)
	}
	if err := FromErrorInfo(&smqpb.ErrorInfo{Code: "out_of_sequence"}); !errors.Is(err, smq.ErrOutOfSequence) || errors.As(err, &sequence) {
		t.Errorf("an error without a sequence came as %#v", err)
	}
	var notLeader *NotLeaderError
	if err := overTheWire(t, fmt.Errorf("lookup: %w", &NotLeaderError{Address: "b:1"})); !errors.As(err, &notLeader) || notLeader.Address != "b:1" || !errors.Is(err, smq.ErrNotLeader) {
		t.Errorf("not-leader error came as %#v", err)
	}
	// A relay keeps the details.
	again := overTheWire(t, fmt.Errorf("relayed: %w", overTheWire(t, &smq.SequenceError{Last: 41})))
	if !errors.As(again, &sequence) || sequence.Last != 41 {
		t.Errorf("relayed sequence error came as %#v", again)
	}
}

func TestContextErrors(t *testing.T) {
	// What happened to the handler's context is not what happened to the caller's.
	if err := overTheWire(t, fmt.Errorf("flush: %w", context.DeadlineExceeded)); !errors.Is(err, smq.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a handler's deadline came as %v", err)
	}
	if err := overTheWire(t, context.Canceled); !errors.Is(err, smq.ErrUnavailable) || errors.Is(err, context.Canceled) {
		t.Errorf("a handler's cancellation came as %v", err)
	}
	// What gRPC tells the caller of its own context is.
	if err := fromStatus(status.FromContextError(context.DeadlineExceeded).Err()); !errors.Is(err, smq.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's deadline came as %v", err)
	}
	if err := fromStatus(status.FromContextError(context.Canceled).Err()); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's cancellation came as %v", err)
	}
}

func TestStatusesFromGRPCItself(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.Unavailable:       smq.ErrUnavailable,
		codes.ResourceExhausted: smq.ErrTooLarge,
		codes.Unimplemented:     smq.ErrInvalid,
	} {
		if err := fromStatus(status.Error(code, "because")); !errors.Is(err, want) || err.Error() != "because" {
			t.Errorf("%v came as %v, want a %v", code, err, want)
		}
	}
	for _, err := range []error{nil, io.EOF} {
		if got := fromStatus(err); got != err {
			t.Errorf("fromStatus(%v) = %v", err, got)
		}
	}
	if toStatus(nil) != nil || ErrorInfo(nil) != nil || FromErrorInfo(nil) != nil {
		t.Error("no error does not stay no error")
	}
	if err := fromStatus(overTheWire(t, status.Error(codes.PermissionDenied, "no"))); err.Error() != "no" {
		t.Errorf("a plain status came as %v", err)
	}
}

func TestErrorTextIsMadeFitForTheWire(t *testing.T) {
	hostile := errors.New("key \xff\xfe" + strings.Repeat("ä", maxErrorText))
	info := ErrorInfo(hostile)
	if !utf8.ValidString(info.Message) || len(info.Message) > maxErrorText+16 {
		t.Errorf("text of %d bytes, valid: %v", len(info.Message), utf8.ValidString(info.Message))
	}
	if _, err := proto.Marshal(info); err != nil {
		t.Error(err)
	}
	if got := overTheWire(t, hostile); got.Error() != info.Message {
		t.Errorf("came as %q", got)
	}
	if err := FromErrorInfo(&smqpb.ErrorInfo{Code: "of_the_future"}); err == nil || err.Error() == "" {
		t.Errorf("an unknown code came as %v", err)
	}
}
