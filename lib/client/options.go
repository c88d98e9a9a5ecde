package client

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// Values for durations whose zero means a default.
const (
	// NoLinger sends what is published as soon as its partition can take it.
	NoLinger time.Duration = -1
	// Forever never gives a message up.
	Forever time.Duration = -1
)

// Defaults of PublisherOptions and SubscriberOptions.
const (
	DefaultLinger          = 5 * time.Millisecond
	DefaultBatchBytes      = 1 << 20
	DefaultBuffer          = 64 << 20
	DefaultDeliveryTimeout = 2 * time.Minute
	DefaultPrefetch        = 32 << 20
)

// PublisherOptions configure a publisher. The zero value is ready for use.
type PublisherOptions struct {
	Acks  AckLevel
	Codec record.Codec
	// Linger is how long a message may wait for others to share its batch; 0:
	// DefaultLinger. A batch that cannot be sent yet goes on filling anyway.
	Linger time.Duration
	// BatchBytes is the size, before compression, from which on a batch takes no
	// more; 0: DefaultBatchBytes. At most smq.MaxBatchSize. One larger message
	// makes a batch by itself.
	BatchBytes int
	// BatchMessages is the same in messages; 0: no such limit.
	BatchMessages int
	// Buffer bounds the bytes of messages that are neither acked nor failed,
	// with those whose Results have not returned; 0: DefaultBuffer. Publish
	// waits while it is full.
	Buffer int64
	// Spread distributes messages without a key over all partitions, a batch
	// here, a batch there. Otherwise they all go to one partition, picked at
	// random for each publisher, so that they keep their order.
	Spread bool
	// DeliveryTimeout is how long a batch is tried, counted from its first
	// message; 0: DefaultDeliveryTimeout, negative: Forever.
	DeliveryTimeout time.Duration
	// Results is told of every message once, partition by partition in order,
	// by one goroutine. It must not call the publisher's Flush, PublishSync or
	// Close, nor Publish, which may wait for what Results has yet to release.
	// Without it Flush and Close return the first failure.
	Results func(Results)
}

// withDefaults fills in what is not set and refuses what cannot be.
func (o PublisherOptions) withDefaults() (PublisherOptions, error) {
	if o.Linger == 0 {
		o.Linger = DefaultLinger
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = DefaultBatchBytes
	}
	if o.BatchMessages == 0 {
		o.BatchMessages = math.MaxInt32
	}
	if o.Buffer == 0 {
		o.Buffer = DefaultBuffer
	}
	if o.DeliveryTimeout == 0 {
		o.DeliveryTimeout = DefaultDeliveryTimeout
	}
	switch {
	case o.BatchBytes < 0 || o.BatchBytes > smq.MaxBatchSize:
		return o, fmt.Errorf("%w batch size %d: use 1 to %d bytes", smq.ErrInvalid, o.BatchBytes, smq.MaxBatchSize)
	case o.BatchMessages < 0 || o.BatchMessages > math.MaxInt32:
		return o, fmt.Errorf("%w number of messages in a batch: %d", smq.ErrInvalid, o.BatchMessages)
	case o.Buffer < 0:
		return o, fmt.Errorf("%w buffer size %d", smq.ErrInvalid, o.Buffer)
	case !o.Codec.Valid():
		return o, fmt.Errorf("%w %v", smq.ErrInvalid, o.Codec)
	case o.Acks < AckDefault || o.Acks > AckReplicated:
		return o, fmt.Errorf("%w %v", smq.ErrInvalid, o.Acks)
	}
	return o, nil
}

type startKind int8

const (
	startLatest startKind = iota
	startEarliest
	startOffset
	startLast
	startTime
)

// Start is where a subscriber begins in a partition. The zero value is Latest.
type Start struct {
	kind startKind
	n    int64
}

// Latest begins with the first message that is published from now on.
func Latest() Start { return Start{} }

// Earliest begins with the first message that there is.
func Earliest() Start { return Start{kind: startEarliest} }

// Offset begins at offset n, which is at least 0.
func Offset(n int64) Start { return Start{startOffset, n} }

// Last begins n messages before the end, or at the first one there is.
func Last(n int64) Start { return Start{startLast, n} }

// Time begins with the first message whose timestamp is t or later, or at the
// end when there is none.
func Time(t time.Time) Start { return Start{startTime, t.UnixMilli()} }

// SubscriberOptions configure a subscriber.
type SubscriberOptions struct {
	// Partitions to receive; nil: all of the topic.
	Partitions []int32
	// Start is where to begin in every partition that Starts does not name.
	Start  Start
	Starts map[int32]Start
	// Buffer bounds the bytes received ahead of Poll, to within one frame of
	// each broker; 0: DefaultPrefetch.
	Buffer int64
}

func (o SubscriberOptions) withDefaults() (SubscriberOptions, error) {
	if o.Buffer == 0 {
		o.Buffer = DefaultPrefetch
	}
	if o.Buffer < 0 {
		return o, fmt.Errorf("%w buffer size %d", smq.ErrInvalid, o.Buffer)
	}
	if o.Start.n < 0 && o.Start.kind != startTime {
		return o, fmt.Errorf("%w start: %d is below 0", smq.ErrInvalid, o.Start.n)
	}
	for p, s := range o.Starts {
		if s.n < 0 && s.kind != startTime {
			return o, fmt.Errorf("%w start of partition %d: %d is below 0", smq.ErrInvalid, p, s.n)
		}
	}
	o.Partitions = slices.Clone(o.Partitions)
	slices.Sort(o.Partitions)
	o.Partitions = slices.Compact(o.Partitions)
	return o, nil
}
