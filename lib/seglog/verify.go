package seglog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// Report is what Verify found in a segment.
type Report struct {
	Ident    Ident
	Chunks   uint64
	Batches  uint64
	Messages uint64
	Bytes    uint64
	Sealed   bool
	Seal     Seal
	Problems []string // empty: nothing is wrong
	// Opening and Ending are the partitions' end offsets before the segment's
	// first message and after its last, by partition less the range's Lo; nil
	// when there is no chunk that tells.
	Opening, Ending []smq.Offset
}

// Verify reads a segment whole and checks that every byte of it is what the
// protocol lets it be: the hash chain from the predecessors' seals on, the
// footers, the checksums, dense offsets and positions, the producers'
// sequences without repeats or gaps, and that every snapshot says what the
// chunks before it add up to.
//
// What is wrong is in the report; the error tells what could not be read.
func Verify(ctx context.Context, st store.Store, id Ident) (Report, error) {
	chunks, err := listChunks(ctx, st, id, 0)
	if err != nil {
		return Report{}, err
	}
	v := verifier{st: st, id: id, report: Report{Ident: id, Chunks: uint64(len(chunks)), Bytes: totalSize(chunks)}}
	for n, c := range chunks {
		if err := v.chunk(ctx, uint64(n), c.size); err != nil {
			return v.report, err
		}
		if v.lost {
			break
		}
	}
	if v.state != nil {
		v.report.Messages = v.state.messages
		v.report.Ending = v.state.ends()
	}
	if v.last.ChunkFooter != nil && v.last.Sealed {
		v.report.Sealed = true
		v.report.Seal = sealOf(v.last, v.report.Messages, v.report.Bytes)
	}
	return v.report, nil
}

// verifier carries what is known from one chunk to the next.
type verifier struct {
	st     store.Store
	id     Ident
	state  *state
	last   footer
	lost   bool // what follows cannot be judged
	report Report
}

func (v *verifier) problem(n uint64, format string, args ...any) {
	v.report.Problems = append(v.report.Problems, fmt.Sprintf("%s: %s", v.id.ChunkPath(n), fmt.Sprintf(format, args...)))
}

func (v *verifier) chunk(ctx context.Context, n uint64, size int64) error {
	data := make([]byte, size)
	got, err := v.st.ReadAt(ctx, v.id.ChunkPath(n), data, 0)
	if got != len(data) {
		return fmt.Errorf("read %s: %w", v.id.ChunkPath(n), short(got, len(data), err))
	}
	c, err := parseChunk(data, &v.id, n)
	if err != nil {
		v.problem(n, "%v", err)
		v.lost = true
		return nil
	}
	if n == 0 {
		if err := v.opening(ctx, c.footer); err != nil {
			return err
		}
	} else {
		v.follows(c.footer)
	}
	if !v.lost {
		v.batches(c)
		v.snapshot(c.footer)
		v.state.bytes += uint64(size)
	}
	v.last = c.footer
	return nil
}

// opening checks chunk 0 against the predecessors that it names.
func (v *verifier) opening(ctx context.Context, f footer) error {
	if f.Snapshot == nil || len(f.Blocks) > 0 || len(f.Previous) > 0 {
		v.problem(0, "it is not an opening")
		v.lost = true
		return nil
	}
	preds := make([]Seal, len(f.Snapshot.Predecessors))
	for i, p := range f.Snapshot.Predecessors {
		preds[i] = Seal{Segment: smq.SegmentID(p.Segment), Range: smq.Range{Lo: p.Lo, Hi: p.Hi}, Chunk: p.SealChunk, Hash: p.SealHash}
	}
	s, _, err := openingState(ctx, v.st, v.id, preds, Limits{}.withDefaults())
	if err != nil {
		return err
	}
	v.state = s
	v.report.Opening = s.ends()
	return nil
}

// follows checks the chain.
func (v *verifier) follows(f footer) {
	if v.last.Sealed {
		v.problem(f.Chunk, "it follows a seal")
	}
	if string(f.Previous) != string(v.last.hash[:sha256.Size]) {
		v.problem(f.Chunk, "the hash chain is broken: it does not continue chunk %d", f.Chunk-1)
	}
	if !f.Sealed && string(f.Writer) != string(v.last.Writer) {
		v.problem(f.Chunk, "an unsealed chunk by another writer than the one before")
	}
	if f.FirstPosition != v.state.position {
		v.problem(f.Chunk, "it starts at position %d, the one before ends at %d", f.FirstPosition, v.state.position)
		v.lost = true
	}
}

// placed is a batch with its place in the chunk's order of arrival.
type placed struct {
	position uint64
	offset   int64 // that the index gives it
	block    *smqpb.PartitionBlock
	bytes    []byte
}

// batches goes over the chunk's batches in the order in which they came.
func (v *verifier) batches(c *chunk) {
	var list []placed
	for i, b := range c.footer.Blocks {
		offset := b.FirstOffset
		for j, bytes := range c.blocks[i] {
			list = append(list, placed{c.footer.FirstPosition + uint64(b.Positions[j]), offset, b, bytes})
			offset += int64(b.Counts[j])
		}
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.position, b.position) })
	for _, p := range list {
		v.report.Batches++
		v.batch(c.footer.Chunk, p)
	}
}

func (v *verifier) batch(n uint64, p placed) {
	partition := p.block.Partition
	h, err := record.Validate(p.bytes)
	switch {
	case err != nil:
		v.problem(n, "partition %d, offset %d: %v", partition, p.offset, err)
		v.lost = true
		return
	case h.BaseOffset != p.offset:
		v.problem(n, "partition %d: the batch indexed at offset %d says that it is at %d", partition, p.offset, h.BaseOffset)
	case h.LeaderEpoch != v.id.Segment.LeaderEpoch():
		v.problem(n, "partition %d, offset %d: leader epoch %d in segment %v", partition, p.offset, h.LeaderEpoch, v.id.Segment)
	}
	if p.position != v.state.position {
		v.problem(n, "partition %d, offset %d: position %d where %d was due", partition, p.offset, p.position, v.state.position)
	}
	if j := v.state.check(partition, &h); j.duplicate {
		v.problem(n, "partition %d, offset %d: sequence %d of producer %d is stored twice", partition, p.offset, h.BaseSequence, h.ProducerID)
	} else if j.err != nil {
		v.problem(n, "partition %d, offset %d, producer %d, sequence %d: %v", partition, p.offset, h.ProducerID, h.BaseSequence, j.err)
	}
	if offset, _ := v.state.append(partition, &h, p.block.AppendMs); offset != p.offset {
		v.problem(n, "partition %d: offset %d where %d was due", partition, p.offset, offset)
		v.state.partition(partition).end = p.offset + int64(h.Count)
	}
}

// snapshot compares what the chunk's snapshot says with what was added up.
func (v *verifier) snapshot(f footer) {
	if f.Snapshot == nil {
		if f.Chunk%snapshotEvery == 0 {
			v.problem(f.Chunk, "it should carry a snapshot and does not")
		}
		return
	}
	want := v.state.snapshot(f.Snapshot.Predecessors, 0)
	same := slices.Equal(want.Partitions, f.Snapshot.Partitions) && slices.Equal(want.EndOffsets, f.Snapshot.EndOffsets) &&
		slices.Equal(want.MaxTimestamps, f.Snapshot.MaxTimestamps)
	if f.Snapshot.Bytes != want.Bytes {
		v.problem(f.Chunk, "the snapshot says that %d bytes come before, there are %d", f.Snapshot.Bytes, want.Bytes)
	}
	if !same {
		v.problem(f.Chunk, "the snapshot's end offsets are not what the chunks add up to")
	}
	v.snapshotProducers(f, want)
}

// snapshotProducers checks that the snapshot remembers no producer otherwise
// than the chunks say. It may have forgotten some.
func (v *verifier) snapshotProducers(f footer, want *smqpb.Snapshot) {
	known := make(map[producerKey]*smqpb.ProducerState, len(want.Producers))
	for _, p := range want.Producers {
		known[producerKey{p.ProducerId, p.Partition}] = p
	}
	for _, p := range f.Snapshot.Producers {
		w := known[producerKey{p.ProducerId, p.Partition}]
		if w == nil {
			v.problem(f.Chunk, "the snapshot remembers producer %d in partition %d, which no chunk shows", p.ProducerId, p.Partition)
			continue
		}
		a := proto.CloneOf(p)
		a.AppendMs = w.AppendMs // indexed to the block, not to the batch
		if !proto.Equal(a, w) {
			v.problem(f.Chunk, "the snapshot remembers producer %d in partition %d otherwise than the chunks show", p.ProducerId, p.Partition)
		}
	}
}
