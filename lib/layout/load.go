package layout

import (
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
)

// Load is traffic per second.
type Load struct {
	Messages float64 // per second
	Bytes    float64 // per second
}

// Add is both loads together.
func (l Load) Add(o Load) Load {
	return Load{Messages: l.Messages + o.Messages, Bytes: l.Bytes + o.Bytes}
}

// Sub is the load without o, and nothing where that would be less than nothing.
func (l Load) Sub(o Load) Load {
	return Load{Messages: max(0, l.Messages-o.Messages), Bytes: max(0, l.Bytes-o.Bytes)}
}

// Scale is the load times f.
func (l Load) Scale(f float64) Load { return Load{Messages: l.Messages * f, Bytes: l.Bytes * f} }

// IsZero reports whether there is no traffic at all.
func (l Load) IsZero() bool { return l == Load{} }

// sane reports whether both rates are numbers that traffic can have. What
// brokers tell is not trusted to be.
func (l Load) sane() bool {
	const most = 1e18 // far from where sums overflow
	return l.Bytes >= 0 && l.Bytes < most && l.Messages >= 0 && l.Messages < most
}

// Cost is the load as one number, in bytes per second or their like; see
// Broker.Cost.
func (l Load) Cost() float64 { return l.Bytes + costPerMessage*l.Messages }

// String prints the load for people, for instance "12.3MB/s, 4100msg/s".
func (l Load) String() string { return smq.ByteRate(l.Bytes) + ", " + smq.MessageRate(l.Messages) }

// PartitionLoad is the load of one partition.
type PartitionLoad struct {
	Partition smq.Partition
	Load
}

// SegmentLoad is the load of a live segment.
type SegmentLoad struct {
	Segment smq.SegmentID
	Load
	// Partitions are those that are not silent, rising. They may be missing
	// where only the sum is known.
	Partitions []PartitionLoad
	// Known: the segment's present owner has reported it, and not too long ago.
	// Otherwise the load is what is expected, by what was known of the segment's
	// predecessors or by what a dead owner told last, or nothing.
	Known bool
}

// Expect is the load to expect of a successor over r until its owner reports
// one: what its predecessors' partitions had. It is not Known.
func Expect(segment smq.SegmentID, r smq.Range, predecessors ...SegmentLoad) SegmentLoad {
	out := SegmentLoad{Segment: segment}
	for _, p := range predecessors {
		for _, part := range within(p.Partitions, r) {
			out.Partitions = append(out.Partitions, part)
			out.Load = out.Load.Add(part.Load)
		}
	}
	slices.SortFunc(out.Partitions, func(a, b PartitionLoad) int { return int(a.Partition) - int(b.Partition) })
	return out
}

// over is what the segment, which has the range span, takes in for the
// partitions of r: what they have, or an even share where only the sum is known.
func (l SegmentLoad) over(r, span smq.Range) Load {
	if len(l.Partitions) == 0 {
		return l.Scale(float64(r.Len()) / float64(span.Len()))
	}
	var sum Load
	for _, p := range within(l.Partitions, r) {
		sum = sum.Add(p.Load)
	}
	return sum
}

// within are the partitions that lie in the range, of rising ones; it shares
// their memory.
func within(parts []PartitionLoad, r smq.Range) []PartitionLoad {
	at := func(p smq.Partition) int {
		i, _ := slices.BinarySearchFunc(parts, p, func(a PartitionLoad, p smq.Partition) int { return int(a.Partition) - int(p) })
		return i
	}
	from, to := at(r.Lo), at(r.Hi)
	return parts[from:max(from, to)]
}
