package rpc

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaweedmq/smq/lib/smq"
)

// worded is an error whose text says all that its causes, kept for errors.Is
// and errors.As, have to say.
type worded struct {
	text   string
	causes []error
}

func (e *worded) Error() string   { return e.text }
func (e *worded) Unwrap() []error { return e.causes }

// ErrNoBroker means that the masters answer and no broker has joined them. It is an
// smq.ErrUnavailable.
var ErrNoBroker error = &worded{
	text:   "no broker is in the cluster; start one (smq-broker), see smq-admin doctor",
	causes: []error{smq.ErrUnavailable},
}

// ErrHangs means that a peer takes connections and then says nothing, as a
// process does that is paused or overloaded: the machine it runs on took them. It
// comes with an smq.ErrUnavailable.
var ErrHangs = errors.New("the process hangs")

// ErrForeign means that what answers is no server of SMQ's, or not of the wanted kind.
var ErrForeign = errors.New("another kind of server")

// dialError is a failed attempt to connect, in as few words as say why: whoever
// reports it names the address already.
func dialError(err error) error {
	var lookup *net.DNSError
	var timeout net.Error
	var call *os.SyscallError
	var op *net.OpError
	text := err.Error()
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		text = "no such host"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		text = "timed out"
	case errors.As(err, &call):
		text = call.Err.Error()
	case errors.As(err, &op):
		text = op.Err.Error()
	}
	return &worded{text, []error{err}}
}

// What gRPC puts around the reason for which there is no connection.
const (
	whileConnecting = `connection error: desc = "`
	whileDialing    = "transport: Error while dialing: "
	beforePreface   = "error reading server preface: "
)

// reason is the text of a status that gRPC itself made, without its wrapping.
func reason(st *status.Status) string {
	text := st.Message()
	switch st.Code() {
	case codes.DeadlineExceeded:
		return smq.ErrTimeout.Error()
	case codes.Unavailable:
		// There may be more of gRPC's in front: which of its parts noticed.
		if _, inner, found := strings.Cut(text, whileConnecting); found {
			text = strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `\"`, `"`)
		}
		if after, found := strings.CutPrefix(text, whileDialing); found {
			return after
		}
		after, found := strings.CutPrefix(text, beforePreface)
		switch {
		case isHang(st):
			return "it takes connections and then says nothing"
		case found:
			return "it does not speak gRPC: " + after
		}
	}
	return text
}

// isHang reports whether a status that gRPC itself made tells that a connection
// was closed here, by its watcher, before the peer had said anything.
func isHang(st *status.Status) bool {
	text := strings.TrimSuffix(st.Message(), `"`)
	return st.Code() == codes.Unavailable && strings.Contains(text, beforePreface) && strings.HasSuffix(text, net.ErrClosed.Error())
}

// isForeign reports whether a status that gRPC itself made tells that the other
// end is no server of SMQ's, or of another kind than is wanted: it lacks all the
// methods of that kind, not just a newer one, or answers as HTTP servers do.
func isForeign(st *status.Status) bool {
	text := st.Message()
	switch st.Code() {
	case codes.Unimplemented:
		return strings.HasPrefix(text, "unknown service")
	case codes.Unavailable: // text that is read as a frame has an impossible length
		return strings.Contains(text, beforePreface) &&
			(strings.Contains(text, "frame too large") || strings.Contains(text, "HTTP/1.1 header"))
	}
	return false
}
