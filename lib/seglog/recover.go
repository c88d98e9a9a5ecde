package seglog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// chunkInfo is what is kept in memory of every stored chunk of a segment.
type chunkInfo struct {
	size int64
}

// listChunks returns the segment's chunks from number from on. That they are
// numbered without a gap is checked: chunk k+1 is only ever created after
// chunk k.
func listChunks(ctx context.Context, st store.Store, id Ident, from uint64) ([]chunkInfo, error) {
	after := ""
	if from > 0 {
		after = chunkName(from - 1)
	}
	infos, err := st.List(ctx, id.Dir(), after, 0)
	if err != nil {
		return nil, fmt.Errorf("list the chunks of %v: %w", id, err)
	}
	chunks := make([]chunkInfo, 0, len(infos))
	for _, info := range infos {
		n, ok := parseChunkName(info.Name)
		if !ok {
			continue
		}
		if want := from + uint64(len(chunks)); n != want {
			return nil, fmt.Errorf("%w %v: chunk %d is missing, %d is there", smq.ErrCorrupt, id, want, n)
		}
		chunks = append(chunks, chunkInfo{size: info.Size})
	}
	return chunks, nil
}

// recovered is what the store says of a segment.
type recovered struct {
	chunks []chunkInfo
	state  *state // after the last chunk; nil without chunks
	last   footer // of the last chunk
	preds  []*smqpb.Predecessor
	sealed bool
}

// recoverSegment rebuilds a segment's state from its chunks: the last
// snapshot, and the footers behind it. Whatever cannot be read or does not fit
// fails it; nothing is assumed.
func recoverSegment(ctx context.Context, st store.Store, id Ident, limits Limits) (recovered, error) {
	chunks, err := listChunks(ctx, st, id, 0)
	if err != nil || len(chunks) == 0 {
		return recovered{}, err
	}
	footers, err := footersFromSnapshot(ctx, st, id, chunks)
	if err != nil {
		return recovered{}, err
	}
	first, last := footers[0], footers[len(footers)-1]
	s := newState(id.Range, limits)
	s.load(first.Snapshot)
	s.position = first.EndPosition
	for i, f := range footers[1:] {
		if err := checkChain(id, footers[i].hash, f); err != nil {
			return recovered{}, err
		}
		if err := s.apply(f); err != nil {
			return recovered{}, fmt.Errorf("recover %v: %w", id, err)
		}
	}
	return recovered{chunks: chunks, state: s, last: last, preds: first.Snapshot.Predecessors, sealed: last.Sealed}, nil
}

// extend takes in the chunks that have come since.
func (r *recovered) extend(ctx context.Context, st store.Store, id Ident) error {
	chunks, err := listChunks(ctx, st, id, uint64(len(r.chunks)))
	if err != nil {
		return err
	}
	for _, c := range chunks {
		f, err := readFooter(ctx, st, id, uint64(len(r.chunks)), c.size)
		if err != nil {
			return err
		}
		if err := checkChain(id, r.last.hash, f); err != nil {
			return err
		}
		if err := r.state.apply(f); err != nil {
			return fmt.Errorf("recover %v: %w", id, err)
		}
		r.chunks, r.last, r.sealed = append(r.chunks, c), f, f.Sealed
	}
	return nil
}

// footersFromSnapshot reads the footers from the last one that carries a
// snapshot to the end.
func footersFromSnapshot(ctx context.Context, st store.Store, id Ident, chunks []chunkInfo) ([]footer, error) {
	var footers []footer // last first
	for n := len(chunks) - 1; ; n-- {
		if n < 0 {
			return nil, fmt.Errorf("%w %v: no chunk carries a snapshot", smq.ErrCorrupt, id)
		}
		f, err := readFooter(ctx, st, id, uint64(n), chunks[n].size)
		if err != nil {
			return nil, err
		}
		if f.Sealed && n != len(chunks)-1 {
			return nil, fmt.Errorf("%w %v: chunk %d is a seal, but chunks follow it", smq.ErrCorrupt, id, n)
		}
		footers = append(footers, f)
		if f.Snapshot != nil {
			slices.Reverse(footers)
			return footers, nil
		}
	}
}

// checkChain says whether f continues the chunk whose footer has the given
// hash.
func checkChain(id Ident, previous [sha256.Size]byte, f footer) error {
	if string(f.Previous) != string(previous[:]) {
		return fmt.Errorf("%w %v: chunk %d does not continue the chunk before it: the hash chain is broken", smq.ErrCorrupt, id, f.Chunk)
	}
	return nil
}

// openingState is the state in which a segment starts: what its predecessors'
// seals say of its range.
func openingState(ctx context.Context, st store.Store, id Ident, preds []Seal, limits Limits) (*state, []*smqpb.Predecessor, error) {
	s := newState(id.Range, limits)
	messages := make([]*smqpb.Predecessor, 0, len(preds))
	for _, pred := range preds {
		pid := Ident{Topic: id.Topic, TopicID: id.TopicID, Segment: pred.Segment, Range: pred.Range}
		f, err := readSeal(ctx, st, pid, pred)
		if err != nil {
			return nil, nil, fmt.Errorf("open %v: %w", id, err)
		}
		s.load(f.Snapshot)
		messages = append(messages, &smqpb.Predecessor{
			Segment: uint64(pred.Segment), Lo: pred.Range.Lo, Hi: pred.Range.Hi, SealChunk: pred.Chunk, SealHash: f.hash[:],
		})
	}
	return s, messages, nil
}

// readSeal reads the footer of a known seal and checks that it is the one.
func readSeal(ctx context.Context, st store.Store, id Ident, seal Seal) (footer, error) {
	info, err := st.Stat(ctx, id.ChunkPath(seal.Chunk))
	if err != nil {
		return footer{}, fmt.Errorf("read the seal of %v: %w", id, err)
	}
	f, err := readFooter(ctx, st, id, seal.Chunk, info.Size)
	switch {
	case err != nil:
		return footer{}, err
	case !f.Sealed:
		return footer{}, fmt.Errorf("%w %v: chunk %d should be its seal and is not", smq.ErrCorrupt, id, seal.Chunk)
	case len(seal.Hash) > 0 && string(seal.Hash) != string(f.hash[:]):
		return footer{}, fmt.Errorf("%w %v: its seal is not the one that was recorded", smq.ErrCorrupt, id)
	}
	return f, nil
}

// FindSeal looks whether the segment is sealed in the store.
func FindSeal(ctx context.Context, st store.Store, id Ident) (Seal, bool, error) {
	chunks, err := listChunks(ctx, st, id, 0)
	if err != nil || len(chunks) == 0 {
		return Seal{}, false, err
	}
	n := len(chunks) - 1
	f, err := readFooter(ctx, st, id, uint64(n), chunks[n].size)
	if err != nil || !f.Sealed {
		return Seal{}, false, err
	}
	seal, err := describeSeal(ctx, st, id, chunks, f)
	return seal, err == nil, err
}

// describeSeal adds up what the segment holds.
func describeSeal(ctx context.Context, st store.Store, id Ident, chunks []chunkInfo, f footer) (Seal, error) {
	opening, err := readFooter(ctx, st, id, 0, chunks[0].size)
	if err != nil {
		return Seal{}, err
	}
	return sealOf(f, messagesBetween(opening, f, id), totalSize(chunks)), nil
}

// messagesBetween counts the messages of a sealed segment by its first and
// last snapshots.
func messagesBetween(opening, seal footer, id Ident) uint64 {
	var n int64
	for _, end := range seal.Snapshot.EndOffsets {
		n += end
	}
	if opening.Chunk == seal.Chunk {
		return 0 // sealed before it was ever opened
	}
	for i, p := range opening.Snapshot.Partitions {
		if id.Range.Contains(p) {
			n -= opening.Snapshot.EndOffsets[i]
		}
	}
	return uint64(max(n, 0))
}

func totalSize(chunks []chunkInfo) uint64 {
	var n uint64
	for _, c := range chunks {
		n += uint64(c.size)
	}
	return n
}
