package client

import (
	"errors"
	"fmt"
)

// What a failed message's error tells of its fate, besides the cause.
var (
	// ErrNotStored: the message is certainly not in the log, and will not be.
	ErrNotStored = errors.New("not stored")
	// ErrUnknown: the message was sent and no answer said what became of it; it
	// may be in the log, but not behind later messages of its publisher.
	ErrUnknown = errors.New("unknown whether it is stored")
	// ErrClosed: the client, publisher or subscriber has been closed.
	ErrClosed = errors.New("closed")
)

// PartitionError is what stopped a subscriber's partition: an offset out of
// range, corrupt data. The other partitions go on. Seek starts it again.
type PartitionError struct {
	Partition int32
	Offset    int64 // that could not be read
	Err       error
}

// Error says where and why.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("partition %d from offset %d: %v", e.Partition, e.Offset, e.Err)
}

// Unwrap is the cause.
func (e *PartitionError) Unwrap() error { return e.Err }
