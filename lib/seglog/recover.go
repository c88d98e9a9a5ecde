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
	return numbered(id, from, infos)
}

// numbered are the chunks among the files listed, which are numbered from from
// on.
func numbered(id Ident, from uint64, infos []store.Info) ([]chunkInfo, error) {
	chunks := make([]chunkInfo, 0, len(infos))
	for _, info := range infos {
		n, ok := parseChunkName(info.Name)
		if !ok {
			continue
		}
		if want := from + uint64(len(chunks)); n != want {
			return nil, missingChunk(id, want, n)
		}
		chunks = append(chunks, chunkInfo{size: info.Size})
	}
	return chunks, nil
}

// lastChunks returns the segment's chunks from the last one on whose number
// calls for a snapshot, which is number from. A listing of a long segment costs
// a SeaweedFS filer tens of milliseconds, as its entries carry the content of
// small chunks; so the end is searched for. Nothing is said of chunks that are
// missing before it: whoever reads there, or verifies, meets the gap.
func lastChunks(ctx context.Context, st store.Store, id Ident) (from uint64, chunks []chunkInfo, err error) {
	begin, err := st.List(ctx, id.Dir(), "", snapshotEvery)
	if err != nil {
		return 0, nil, fmt.Errorf("list the chunks of %v: %w", id, err)
	}
	if len(begin) < snapshotEvery { // these are all
		chunks, err = numbered(id, 0, begin)
		return 0, chunks, err
	}
	if from, err = lastSnapshot(ctx, st, id); err != nil {
		return 0, nil, err
	}
	chunks, err = listChunks(ctx, st, id, from)
	return from, chunks, err
}

// lastSnapshot finds the number of the last chunk which is there and whose number
// calls for a snapshot: by doubled steps ahead, and then by halved ones.
func lastSnapshot(ctx context.Context, st store.Store, id Ident) (n uint64, err error) {
	step := uint64(snapshotEvery)
	for ahead := true; step >= snapshotEvery; {
		there, err := isStored(ctx, st, id, n+step)
		if err != nil {
			return 0, err
		}
		if there {
			n += step
		} else {
			ahead = false
		}
		if ahead {
			step *= 2
		} else {
			step /= 2
		}
	}
	return n, nil
}

// isStored reports whether the segment reaches to chunk n. Files that are no
// chunks count for nothing, wherever their names put them.
func isStored(ctx context.Context, st store.Store, id Ident, n uint64) (bool, error) {
	const page = 16 // the first file is a chunk, as a rule
	limit := 1
	for after := chunkName(n - 1); ; limit = page {
		next, err := st.List(ctx, id.Dir(), after, limit)
		if err != nil {
			return false, fmt.Errorf("list the chunks of %v: %w", id, err)
		}
		for _, info := range next {
			if got, ok := parseChunkName(info.Name); ok && got != n {
				return false, missingChunk(id, n, got)
			} else if ok {
				return true, nil
			}
			after = info.Name
		}
		if len(next) < limit {
			return false, nil
		}
	}
}

func missingChunk(id Ident, n, there uint64) error {
	return fmt.Errorf("%w %v: chunk %d is missing, %d is there", smq.ErrCorrupt, id, n, there)
}

// recovered is what the store says of a segment.
type recovered struct {
	chunks   uint64 // how many there are
	state    *state // after the last chunk; nil without chunks
	last     footer // of the last chunk
	lastSize int64  // of the last chunk
	preds    []*smqpb.Predecessor
	sealed   bool
}

// recoverSegment rebuilds a segment's state from its chunks: the last
// snapshot, and the footers behind it. Whatever cannot be read or does not fit
// fails it; nothing is assumed.
func recoverSegment(ctx context.Context, st store.Store, id Ident, limits Limits) (recovered, error) {
	from, chunks, err := lastChunks(ctx, st, id)
	if err != nil || len(chunks) == 0 {
		return recovered{}, err
	}
	footers, err := footersFromSnapshot(ctx, st, id, from, chunks)
	if err != nil {
		return recovered{}, err
	}
	sizes := chunks[len(chunks)-len(footers):]
	s := newState(id.Range, limits)
	s.load(footers[0].Snapshot)
	s.position, s.bytes = footers[0].EndPosition, footers[0].Snapshot.Bytes+uint64(sizes[0].size)
	r := recovered{chunks: from + uint64(len(chunks)) - uint64(len(footers)) + 1, state: s, last: footers[0], lastSize: sizes[0].size, preds: footers[0].Snapshot.Predecessors}
	for i, f := range footers[1:] {
		if err := r.take(id, f, sizes[i+1].size); err != nil {
			return recovered{}, err
		}
	}
	r.sealed = r.last.Sealed
	return r, nil
}

// extend takes in the chunks that have come since.
func (r *recovered) extend(ctx context.Context, st store.Store, id Ident) error {
	chunks, err := listChunks(ctx, st, id, r.chunks)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		f, err := readFooter(ctx, st, id, r.chunks, c.size)
		if err != nil {
			return err
		}
		if err := r.take(id, f, c.size); err != nil {
			return err
		}
	}
	return nil
}

// take moves on over the next chunk.
func (r *recovered) take(id Ident, f footer, size int64) error {
	if err := checkChain(id, r.last.hash, f); err != nil {
		return err
	}
	if err := r.state.apply(f, size); err != nil {
		return fmt.Errorf("recover %v: %w", id, err)
	}
	r.chunks, r.last, r.lastSize, r.sealed = r.chunks+1, f, size, f.Sealed
	return nil
}

// footersFromSnapshot reads the footers from the last one that carries a
// snapshot to the end; the chunks are those from number from on, and among them.
func footersFromSnapshot(ctx context.Context, st store.Store, id Ident, from uint64, chunks []chunkInfo) ([]footer, error) {
	var footers []footer // last first
	for i := len(chunks) - 1; ; i-- {
		if i < 0 {
			return nil, fmt.Errorf("%w %v: no chunk from %d on carries a snapshot", smq.ErrCorrupt, id, from)
		}
		n := from + uint64(i)
		f, err := readFooter(ctx, st, id, n, chunks[i].size)
		if err != nil {
			return nil, err
		}
		if f.Sealed && i != len(chunks)-1 {
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
	from, chunks, err := lastChunks(ctx, st, id)
	if err != nil || len(chunks) == 0 {
		return Seal{}, false, err
	}
	i := len(chunks) - 1
	f, err := readFooter(ctx, st, id, from+uint64(i), chunks[i].size)
	if err != nil || !f.Sealed {
		return Seal{}, false, err
	}
	seal, err := describeSeal(ctx, st, id, f, chunks[i].size)
	return seal, err == nil, err
}

// describeSeal adds up what the segment holds, whose seal has footer f and the
// given size.
func describeSeal(ctx context.Context, st store.Store, id Ident, f footer, size int64) (Seal, error) {
	opening := f
	if f.Chunk > 0 {
		info, err := st.Stat(ctx, id.ChunkPath(0))
		if err != nil {
			return Seal{}, fmt.Errorf("read the opening of %v: %w", id, err)
		}
		if opening, err = readFooter(ctx, st, id, 0, info.Size); err != nil {
			return Seal{}, err
		}
	}
	return sealOf(f, messagesBetween(opening, f, id), f.Snapshot.Bytes+uint64(size)), nil
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
