package smq

import "fmt"

// Limits of a topic's number of partitions, which is fixed at its creation.
const (
	DefaultPartitions = 64
	MaxPartitions     = 1_000_000
)

// MaxMessageSize is the largest message, in bytes of key, value and headers
// together. Anything larger travels by reference.
const MaxMessageSize = 16 << 20

// MaxBatchSize bounds an encoded batch, in bytes: one message of the largest
// size and its framing always fit.
const MaxBatchSize = MaxMessageSize + 64<<10

// Partition is the number of one of a topic's ordered logs.
type Partition = int32

// Offset is a message's place in its partition: 0, 1, 2, … dense, never reused.
type Offset = int64

// Position is a batch's place in its segment: 0, 1, 2, …
type Position = uint64

// SegmentID numbers the segments of one topic, from 1. Ids rise along every
// partition's history and are never reused.
type SegmentID uint64

// String prints the bare number.
func (id SegmentID) String() string { return fmt.Sprintf("%d", uint64(id)) }

// LeaderEpoch is what a segment's batches carry in Kafka's leader epoch field:
// the segment id, which rises along every partition's history.
func (id SegmentID) LeaderEpoch() int32 { return int32(id & 0x7fffffff) }

// Range is the partitions from Lo (included) to Hi (excluded).
type Range struct {
	Lo, Hi Partition
}

// Contains reports whether p lies in the range.
func (r Range) Contains(p Partition) bool { return p >= r.Lo && p < r.Hi }

// Len is the number of partitions in the range.
func (r Range) Len() int { return int(r.Hi) - int(r.Lo) }

// Overlaps reports whether the two ranges share a partition.
func (r Range) Overlaps(o Range) bool { return r.Lo < o.Hi && o.Lo < r.Hi }

// String prints the half-open interval, for instance [0,64).
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Lo, r.Hi) }
