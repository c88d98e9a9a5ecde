package client

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// AnyPartition as a message's partition leaves the choice to its key and to the
// publisher.
const AnyPartition int32 = -1

// Message is what a publisher takes. Publish copies what it needs: all of it may
// be reused as soon as Publish has returned.
type Message struct {
	Key       []byte // nil: no key
	Value     []byte // nil: null, which is not the same as empty
	Headers   []record.RecordHeader
	Timestamp int64 // ms since 1970; 0: now
	// Partition is where the message goes, or AnyPartition: then its key
	// decides (as the topic's configuration says what the key is), and without
	// one the message follows the publisher's other ones, see
	// PublisherOptions.Spread. The zero value is partition 0.
	Partition int32
	Token     uint64 // the caller's; comes back in Results
}

// AckLevel is what an ack promises.
type AckLevel int8

const (
	// AckDefault asks for the best that the topic gives: replicated where it
	// can be, else stored.
	AckDefault AckLevel = AckLevel(smqpb.AckLevel_DEFAULT)
	// AckStored: the message is in the store.
	AckStored AckLevel = AckLevel(smqpb.AckLevel_STORED)
	// AckReplicated: every replica of the segment holds the message in memory,
	// and it will soon be in the store.
	AckReplicated AckLevel = AckLevel(smqpb.AckLevel_REPLICATED)
)

// String is the level's name: default, stored or replicated.
func (l AckLevel) String() string {
	switch l {
	case AckDefault:
		return "default"
	case AckStored:
		return "stored"
	case AckReplicated:
		return "replicated"
	}
	return fmt.Sprintf("ack level %d", int8(l))
}

// ParseAckLevel reads a level's name, as AckLevel.String prints it. The error is
// an smq.ErrInvalid.
func ParseAckLevel(s string) (AckLevel, error) {
	for _, l := range []AckLevel{AckDefault, AckStored, AckReplicated} {
		if s == l.String() {
			return l, nil
		}
	}
	return AckDefault, fmt.Errorf("%w ack level %q: use stored, replicated or default", smq.ErrInvalid, s)
}

// Results tells the fate of messages that were published one after the other to
// one partition.
type Results struct {
	Partition int32
	// Tokens of the messages, in order. Message i has offset BaseOffset+i. They
	// are valid during the call only.
	Tokens []uint64
	// BaseOffset is the first message's offset; -1 if they failed, or if they
	// are known to be stored and their place is not.
	BaseOffset int64
	Level      AckLevel // of the ack: stored or replicated
	// Err is nil for messages that are acked. Otherwise it is an ErrNotStored or
	// an ErrUnknown, and wraps the cause.
	Err error
}
