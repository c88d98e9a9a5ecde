package seglog

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// state is what a segment knows after some batch: where each partition ends,
// and what is remembered of producers. It is a pure value: an owner has one
// that runs ahead with every batch accepted and one that follows with every
// chunk frozen, and recovery builds the latter from footers.
type state struct {
	rng        smq.Range
	partitions []partitionState // by partition less rng.Lo
	producers  producers
	position   smq.Position // of the next batch
	messages   uint64       // in this segment
	bytes      uint64       // sizes of this segment's chunks
}

// partitionState costs 24 bytes for every partition, idle ones included.
type partitionState struct {
	end          int64 // the next message's offset
	maxTimestamp int64 // largest so far, ms
	appendMs     int64 // latest time of arrival, ms
}

func newState(rng smq.Range, limits Limits) *state {
	return &state{
		rng:        rng,
		partitions: make([]partitionState, rng.Len()),
		producers:  producers{m: make(map[producerKey]*producer), max: limits.MaxProducers},
	}
}

func (s *state) partition(p smq.Partition) *partitionState { return &s.partitions[p-s.rng.Lo] }

// check judges a batch before it is appended.
func (s *state) check(p smq.Partition, h *record.Header) verdict {
	if h.ProducerID < 0 {
		return verdict{}
	}
	return s.producers.m[producerKey{h.ProducerID, p}].check(h)
}

// append gives the batch the next offset of its partition and the next
// position, and remembers its producer.
func (s *state) append(p smq.Partition, h *record.Header, nowMs int64) (offset int64, position smq.Position) {
	ps := s.partition(p)
	offset, position = ps.end, s.position
	ps.end += int64(h.Count)
	ps.maxTimestamp = max(ps.maxTimestamp, h.MaxTimestamp)
	ps.appendMs = max(ps.appendMs, nowMs)
	s.position++
	s.messages += uint64(h.Count)
	if h.ProducerID >= 0 {
		s.producers.noted(p, h, offset, position, nowMs)
	}
	return offset, position
}

// load takes over what a snapshot says of this state's range, but for the bytes,
// which are of the snapshot's own segment.
func (s *state) load(snap *smqpb.Snapshot) {
	for i, p := range snap.Partitions {
		if s.rng.Contains(p) {
			*s.partition(p) = partitionState{snap.EndOffsets[i], snap.MaxTimestamps[i], snap.AppendMs[i]}
		}
	}
	for _, m := range snap.Producers {
		if s.rng.Contains(m.Partition) {
			s.producers.set(m)
		}
	}
}

// apply moves the state over a chunk of a size, or says why the chunk does not
// continue what came before.
func (s *state) apply(f footer, size int64) error {
	if f.FirstPosition != s.position {
		return fmt.Errorf("%w chunk %d: it starts at position %d, the one before ends at %d", smq.ErrCorrupt, f.Chunk, f.FirstPosition, s.position)
	}
	for _, b := range f.Blocks {
		ps := s.partition(b.Partition)
		if b.FirstOffset != ps.end {
			return fmt.Errorf("%w chunk %d: partition %d goes on at offset %d, it ended at %d", smq.ErrCorrupt, f.Chunk, b.Partition, b.FirstOffset, ps.end)
		}
		ps.end = b.EndOffset
		ps.maxTimestamp = max(ps.maxTimestamp, b.MaxTimestamp)
		ps.appendMs = max(ps.appendMs, b.AppendMs)
		s.messages += uint64(b.EndOffset - b.FirstOffset)
	}
	for _, m := range f.Producers {
		s.producers.set(m)
	}
	s.position = f.EndPosition
	s.bytes += uint64(size)
	return nil
}

// snapshot is the stored form of the state. Producers idle since before
// idleMs are left out, and forgotten.
func (s *state) snapshot(preds []*smqpb.Predecessor, idleMs int64) *smqpb.Snapshot {
	s.producers.forgetUntil(idleMs)
	snap := &smqpb.Snapshot{Predecessors: preds, Producers: s.producers.all(), Bytes: s.bytes}
	used := 0
	for i := range s.partitions {
		if s.partitions[i].end > 0 {
			used++
		}
	}
	snap.Partitions = make([]int32, 0, used)
	snap.EndOffsets = make([]int64, 0, used)
	snap.MaxTimestamps = make([]int64, 0, used)
	snap.AppendMs = make([]int64, 0, used)
	for i, p := range s.partitions {
		if p.end > 0 {
			snap.Partitions = append(snap.Partitions, s.rng.Lo+int32(i))
			snap.EndOffsets = append(snap.EndOffsets, p.end)
			snap.MaxTimestamps = append(snap.MaxTimestamps, p.maxTimestamp)
			snap.AppendMs = append(snap.AppendMs, p.appendMs)
		}
	}
	return snap
}

// ends lists the partitions' end offsets.
func (s *state) ends() []smq.Offset {
	ends := make([]smq.Offset, len(s.partitions))
	for i := range s.partitions {
		ends[i] = s.partitions[i].end
	}
	return ends
}

// clone copies the state. What it remembers of producers counts as stored.
func (s *state) clone() *state {
	c := *s
	c.partitions = append([]partitionState(nil), s.partitions...)
	c.producers.m = make(map[producerKey]*producer, len(s.producers.m))
	for k, p := range s.producers.m {
		q := *p
		for i := range q.last {
			q.last[i].position = 0
		}
		c.producers.m[k] = &q
	}
	return &c
}
