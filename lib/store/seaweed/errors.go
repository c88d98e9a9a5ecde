package seaweed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// errCondition means that the condition of a mutation did not hold, so nothing
// was changed.
var errCondition = errors.New("condition not met")

func isInvalid(err error) bool { return errors.Is(err, smq.ErrInvalid) }

// clockSlack is how much earlier than the context a server may find that the
// context's deadline has passed.
const clockSlack = 50 * time.Millisecond

// ended returns the context's error when that is why a call failed.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	deadline, ok := ctx.Deadline()
	if ok && status.Code(err) == codes.DeadlineExceeded && time.Until(deadline) < clockSlack {
		return context.DeadlineExceeded
	}
	return nil
}

// readError classifies the outcome of a call that changes nothing.
func readError(ctx context.Context, a attempt) error {
	if a.err == nil {
		return nil
	}
	if cause := ended(ctx, a.err); cause != nil {
		if errors.Is(a.err, cause) {
			return a.err
		}
		return fmt.Errorf("%w: %v", cause, text(a.err))
	}
	if transient(a.err) {
		return fmt.Errorf("%w: %v", smq.ErrUnavailable, text(a.err))
	}
	return a.err
}

// mutateError classifies the outcome of a call that changes something.
func mutateError(ctx context.Context, a attempt) error {
	if a.err == nil {
		return nil
	}
	if !a.sent || refusedUnread(a.err) {
		return readError(ctx, a)
	}
	if cause := ended(ctx, a.err); cause != nil {
		return fmt.Errorf("%w: %w: %v", store.ErrAmbiguous, cause, text(a.err))
	}
	return fmt.Errorf("%w: %v", store.ErrAmbiguous, text(a.err))
}

// refusedUnread reports a status by which a filer refuses a request before it
// does anything. A message that is too large is not among them: it may be the
// answer.
func refusedUnread(err error) bool {
	switch status.Code(err) {
	case codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return true
	}
	return false
}

// text is an error's message without gRPC's frame around it.
func text(err error) string {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return err.Error()
	}
	if _, why, found := strings.Cut(s.Message(), whileDialing); found {
		return strings.TrimSuffix(why, `"`)
	}
	return s.Message()
}

// whileDialing is what gRPC puts in front of the reason for which there is no
// connection.
const whileDialing = "transport: Error while dialing: "

// isAbsent reports whether a lookup failed because nothing is there. Older
// filers send their own error, of which only the text arrives.
func isAbsent(err error) bool {
	switch status.Code(err) {
	case codes.NotFound:
		return true
	case codes.Unknown:
		return strings.Contains(text(err), pb.ErrNotFound.Error())
	}
	return false
}

// transactionError classifies what a filer answered to a transaction of one
// mutation. An answer that is not known to precede the change is ambiguous: the
// filer reports some errors after it has written the entry.
func transactionError(code pb.FilerError, message string) error {
	switch code {
	case pb.FilerError_PRECONDITION_FAILED, pb.FilerError_ENTRY_ALREADY_EXISTS:
		return errCondition
	case pb.FilerError_EXISTING_IS_DIRECTORY, pb.FilerError_EXISTING_IS_FILE:
		return fmt.Errorf("%w: %s", smq.ErrConflict, message)
	case pb.FilerError_ENTRY_NAME_TOO_LONG, pb.FilerError_PARENT_IS_FILE:
		return fmt.Errorf("%w: %s", smq.ErrInvalid, message)
	case pb.FilerError_READ_ONLY:
		return fmt.Errorf("%w: %s", smq.ErrUnavailable, message)
	}
	switch {
	case code == pb.FilerError_OK && message == "":
		return nil
	case strings.Contains(message, nonEmptyFolder):
		return fmt.Errorf("%w: %s", smq.ErrConflict, message)
	case strings.HasPrefix(message, "mutation 0: read only"):
		return fmt.Errorf("%w: %s", smq.ErrUnavailable, message)
	}
	return fmt.Errorf("%w: the filer answered: %s", store.ErrAmbiguous, message)
}

// nonEmptyFolder is how a filer says that a folder has something in it.
const nonEmptyFolder = "fail to delete non-empty folder"

// fullWords are in what masters and volume servers say when nothing more fits.
var fullWords = []string{"no free volume", "no writable volume", "no space left", "not enough space"}

// isFull reports whether a message says that the cluster is full.
func isFull(message string) bool {
	message = strings.ToLower(message)
	for _, words := range fullWords {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
