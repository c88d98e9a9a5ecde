package seaweed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// TestMutateError classifies every status that a change can end with. Once the
// request has left, only those are sure that precede all work.
func TestMutateError(t *testing.T) {
	sure := map[codes.Code]bool{codes.Unimplemented: true, codes.PermissionDenied: true, codes.Unauthenticated: true}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		err := status.Error(code, "told")
		if got := mutateError(t.Context(), attempt{err: err, sent: true}); errors.Is(got, store.ErrAmbiguous) == sure[code] {
			t.Errorf("%v after sending: %v", code, got)
		}
		if got := mutateError(t.Context(), attempt{err: err}); errors.Is(got, store.ErrAmbiguous) {
			t.Errorf("%v before sending: %v", code, got)
		}
	}
	if err := mutateError(t.Context(), attempt{sent: true}); err != nil {
		t.Errorf("success: %v", err)
	}
}

// TestEndedContexts wants the context's error to show, whoever noticed first.
func TestEndedContexts(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	soon, cancel := context.WithDeadline(t.Context(), time.Now().Add(clockSlack/5))
	defer cancel()
	later, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want error
	}{
		"canceled":           {canceled, status.Error(codes.Canceled, "context canceled"), context.Canceled},
		"before the call":    {canceled, context.Canceled, context.Canceled},
		"the server's clock": {soon, status.Error(codes.DeadlineExceeded, "too late"), context.DeadlineExceeded},
		"another deadline":   {later, status.Error(codes.DeadlineExceeded, "too late"), smq.ErrUnavailable},
	} {
		for _, sent := range []bool{false, true} {
			err := mutateError(test.ctx, attempt{err: test.err, sent: sent})
			if errors.Is(err, store.ErrAmbiguous) != sent || !sent && !errors.Is(err, test.want) {
				t.Errorf("%s, sent %v: %v", name, sent, err)
			}
			if test.want != smq.ErrUnavailable && !errors.Is(err, test.want) {
				t.Errorf("%s, sent %v: %v, want %v", name, sent, err, test.want)
			}
		}
		if err := readError(test.ctx, attempt{err: test.err}); !errors.Is(err, test.want) {
			t.Errorf("%s, reading: %v, want %v", name, err, test.want)
		}
	}
}

func TestTransactionError(t *testing.T) {
	for _, test := range []struct {
		code    pb.FilerError
		message string
		want    error
	}{
		{pb.FilerError_OK, "", nil},
		{pb.FilerError_PRECONDITION_FAILED, "precondition failed", errCondition},
		{pb.FilerError_ENTRY_ALREADY_EXISTS, "", errCondition},
		{pb.FilerError_EXISTING_IS_DIRECTORY, "mutation 0: …", smq.ErrConflict},
		{pb.FilerError_ENTRY_NAME_TOO_LONG, "mutation 0: entry name too long", smq.ErrInvalid},
		{pb.FilerError_READ_ONLY, "", smq.ErrUnavailable},
		{pb.FilerError_OK, "mutation 0: read only: /smq (e.g. bucket over quota)", smq.ErrUnavailable},
		{pb.FilerError_OK, "mutation 0: fail to delete non-empty folder: /a", smq.ErrConflict},
		{pb.FilerError_OK, "mutation 0: insert entry /a: no space left on device", store.ErrAmbiguous},
		{pb.FilerError_OK, "mutation 0: mkdir /a: interrupted", store.ErrAmbiguous},
		{99, "something new", store.ErrAmbiguous},
		{99, "", store.ErrAmbiguous},
	} {
		err := transactionError(test.code, test.message)
		if test.want == nil && err != nil || !errors.Is(err, test.want) {
			t.Errorf("%v %q: %v, want %v", test.code, test.message, err, test.want)
		}
		if test.want != store.ErrAmbiguous && errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("%v %q: %v", test.code, test.message, err)
		}
	}
}

func TestIsAbsent(t *testing.T) {
	for err, want := range map[error]bool{
		status.Error(codes.NotFound, "no"):                          true,
		status.Error(codes.Unknown, pb.ErrNotFound.Error()):         true,
		status.Error(codes.Unknown, "leveldb: not found"):           false,
		status.Error(codes.Internal, pb.ErrNotFound.Error()):        false,
		fmt.Errorf("filer: %w", status.Error(codes.NotFound, "no")): true,
	} {
		if got := isAbsent(err); got != want {
			t.Errorf("isAbsent(%v) = %v", err, got)
		}
	}
	if isAbsent(nil) {
		t.Error("isAbsent(nil)")
	}
}

func TestIsFull(t *testing.T) {
	for message, want := range map[string]bool{
		"assign volume: No writable volumes and no free volumes left for {}": true,
		"no writable volumes for {}, volume growth in progress":              true,
		"No free volume slot found!":                                         true,
		"write /data/1.dat: no space left on device":                         true,
		"master is warming up, topology is still loading":                    false,
		"volume 7 is read only":                                              false,
		"":                                                                   false,
	} {
		if got := isFull(message); got != want {
			t.Errorf("isFull(%q) = %v", message, got)
		}
	}
}

func TestTextOfFailedConnections(t *testing.T) {
	for message, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:18888: connect: connection refused"`: "dial tcp 127.0.0.1:18888: connect: connection refused",
		"the filer is stopping": "the filer is stopping",
	} {
		if got := text(status.Error(codes.Unavailable, message)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
