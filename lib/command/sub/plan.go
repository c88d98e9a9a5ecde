package sub

import (
	"context"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// noEnd is the end of a partition that has none.
const noEnd = 1<<63 - 1

// finder resolves positions; it is the client.
type finder interface {
	Offsets(ctx context.Context, topic smq.Topic, partitions []int32, kind smqpb.OffsetsRequest_Kind, at time.Time) ([]client.PartitionOffset, error)
}

// plan is what to read of one topic.
type plan struct {
	partitions []int32 // nil: all of the topic
	start      client.Start
	starts     map[int32]client.Start
	first      int64           // messages before this offset are not shown
	ends       map[int32]int64 // one past the last message to show; nil: no end, or not yet known
	endsAt     time.Time       // when the ends will be known, if it is in the future
}

// makePlan resolves from and until for a topic. Ends are fixed now, whatever
// is published meanwhile, unless until is a time in the future.
func makePlan(ctx context.Context, f finder, topic smq.Topic, partitions []int32, from, until place, now time.Time) (plan, error) {
	p := plan{partitions: partitions}
	if until.kind == placeTime && until.time.After(now) {
		p.endsAt = until.time
		until = place{}
	}
	fixed := until.kind == placeLatest || until.kind == placeTime
	if err := p.setEnds(ctx, f, topic, until); err != nil {
		return plan{}, err
	}
	if fixed {
		p.dropEmpty()
	}
	if err := p.setStart(ctx, f, topic, from, fixed); err != nil || until.kind != placeOffset {
		return p, err
	}
	return p, p.dropPassed(ctx, f, topic, from, until.n)
}

// nothing reports whether there is nothing to read.
func (p *plan) nothing() bool { return p.partitions != nil && len(p.partitions) == 0 }

// setEnds finds where each partition ends.
func (p *plan) setEnds(ctx context.Context, f finder, topic smq.Topic, until place) error {
	if until.kind == placeNone {
		return nil
	}
	kind := smqpb.OffsetsRequest_END
	if until.kind == placeTime {
		kind = smqpb.OffsetsRequest_TIME
	}
	found, err := f.Offsets(ctx, topic, p.partitions, kind, until.time)
	if err != nil {
		return err
	}
	p.ends = make(map[int32]int64, len(found))
	for _, o := range found {
		p.ends[o.Partition] = o.Offset
		if until.kind == placeOffset {
			p.ends[o.Partition] = until.n
		}
	}
	return nil
}

// dropEmpty takes out the partitions of which there is nothing to read.
func (p *plan) dropEmpty() {
	p.partitions = []int32{}
	for partition, end := range p.ends {
		if end > 0 {
			p.partitions = append(p.partitions, partition)
		} else {
			delete(p.ends, partition)
		}
	}
	slices.Sort(p.partitions)
}

// dropPassed takes out the partitions that begin at offset end or behind it: they
// have come to it, and need nothing to come.
func (p *plan) dropPassed(ctx context.Context, f finder, topic smq.Topic, from place, end int64) error {
	kind := smqpb.OffsetsRequest_END
	switch from.kind {
	case placeEarliest:
		kind = smqpb.OffsetsRequest_EARLIEST
	case placeTime:
		kind = smqpb.OffsetsRequest_TIME
	}
	found, err := f.Offsets(ctx, topic, p.partitions, kind, from.time)
	if err != nil {
		return err
	}
	left := []int32{}
	for _, o := range found {
		begin := o.Offset
		switch from.kind {
		case placeOffset:
			begin = from.n
		case placeLast:
			begin = max(0, begin-from.n)
		}
		if begin < end {
			left = append(left, o.Partition)
		} else {
			delete(p.ends, o.Partition)
		}
	}
	if len(left) < len(found) {
		slices.Sort(left)
		p.partitions = left
	}
	return nil
}

// setStart says where to begin. With ends that are fixed now, messages are
// counted back from those rather than from what the end may be a little later.
func (p *plan) setStart(ctx context.Context, f finder, topic smq.Topic, from place, fixed bool) error {
	switch from.kind {
	case placeEarliest:
		p.start = client.Earliest()
	case placeTime:
		p.start = client.Time(from.time)
	case placeLast:
		p.start = client.Last(from.n)
		if fixed {
			p.starts = make(map[int32]client.Start, len(p.ends))
			for partition, end := range p.ends {
				p.starts[partition] = client.Offset(max(0, end-from.n))
			}
		}
	case placeOffset:
		p.first = from.n
		return p.clampStart(ctx, f, topic, from.n)
	default:
		p.start = client.Latest()
	}
	return nil
}

// clampStart begins each partition at offset n, as far as it has that: what
// ends before is read from its end on, and shown from n on.
func (p *plan) clampStart(ctx context.Context, f finder, topic smq.Topic, n int64) error {
	if p.nothing() {
		return nil
	}
	earliest, err := f.Offsets(ctx, topic, p.partitions, smqpb.OffsetsRequest_EARLIEST, time.Time{})
	if err != nil {
		return err
	}
	ends, err := f.Offsets(ctx, topic, p.partitions, smqpb.OffsetsRequest_END, time.Time{})
	if err != nil {
		return err
	}
	p.starts = make(map[int32]client.Start, len(ends))
	for _, o := range ends {
		p.starts[o.Partition] = client.Offset(min(n, o.Offset))
	}
	for _, o := range earliest {
		if o.Offset > n {
			p.starts[o.Partition] = client.Earliest()
		}
	}
	return nil
}

// end is one past the last message of a partition to show.
func (p *plan) end(partition int32) int64 {
	if p.ends == nil {
		return noEnd
	}
	return p.ends[partition] // 0, nothing, for one that is not to be read
}
