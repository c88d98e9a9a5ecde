package smq

import (
	"errors"
	"fmt"
)

// The kinds of failure that cross package and process borders. lib/rpc maps
// each to a gRPC code and back in one table, lib/cli to an exit code. Wrap them
// with what was tried; compare with errors.Is.
var (
	// ErrInvalid: the request can never succeed as it is.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: the thing named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists: the name is taken.
	ErrExists = errors.New("already exists")
	// ErrConflict: the state is not the one that the request was made for
	// (a version has moved on, a term has passed).
	ErrConflict = errors.New("conflict")
	// ErrUnavailable: nobody could answer, or not yet; trying again may help.
	ErrUnavailable = errors.New("unavailable")
	// ErrTimeout: no answer within the time allowed; whether the request took
	// effect is unknown.
	ErrTimeout = errors.New("timed out")
	// ErrNotLeader: the one asked does not lead (a master or a broker); the
	// caller looks the leader up and asks it.
	ErrNotLeader = errors.New("not the leader")
	// ErrNotOwner: the broker does not own the segment.
	ErrNotOwner = errors.New("not the owner of the segment")
	// ErrSegmentSealed: the segment takes no more messages; its successors in
	// the next layout do. What was refused so is not stored.
	ErrSegmentSealed = errors.New("segment is sealed")
	// ErrOffsetOutOfRange: the offset is outside of what the partition holds.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrCorrupt: stored or received bytes fail a check.
	ErrCorrupt = errors.New("corrupt")
	// ErrTooLarge: a message, batch or request exceeds a limit.
	ErrTooLarge = errors.New("too large")
	// ErrOverloaded: buffers stayed full past the deadline; nothing was stored.
	ErrOverloaded = errors.New("overloaded")
	// ErrDraining: the broker is leaving and takes nothing new.
	ErrDraining = errors.New("draining")
	// ErrNoSpace: the store is full.
	ErrNoSpace = errors.New("no space left")
	// ErrOutOfSequence: a producer's batch leaves a gap after the last one held.
	ErrOutOfSequence = errors.New("out of sequence")
	// ErrUnknownProducer: no state is held for the producer and its sequence
	// is not 0.
	ErrUnknownProducer = errors.New("unknown producer")
	// ErrStaleProducer: the producer's epoch has been superseded.
	ErrStaleProducer = errors.New("stale producer epoch")
	// ErrDuplicate: the sequence lies before those still remembered, so the
	// batch is a repeat, but its offset is no longer known.
	ErrDuplicate = errors.New("duplicate sequence")
)

// SequenceError answers a batch that overlaps with what a partition holds of
// its producer: the producer cuts its batch anew behind Last. It is an
// ErrOutOfSequence.
type SequenceError struct {
	Last int32 // the last sequence held; -1 when none is
}

// Error says what is held.
func (e *SequenceError) Error() string {
	return fmt.Sprintf("%v: the last sequence held is %d", ErrOutOfSequence, e.Last)
}

// Unwrap makes the error an ErrOutOfSequence.
func (e *SequenceError) Unwrap() error { return ErrOutOfSequence }
