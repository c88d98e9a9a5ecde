package seglog

import (
	"context"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// Source is a segment that can be read: a *Log (what is committed) or a
// *Sealed.
type Source interface {
	Ident() Ident
	// Offsets returns the partition's first offset in this segment and the
	// one behind its last committed message.
	Offsets(ctx context.Context, p smq.Partition) (start, end smq.Offset, err error)
	// Changed returns a channel that is closed when there is more to read
	// than at the time of the call, or the segment has ended.
	Changed() <-chan struct{}

	extent() extent
	size(n uint64) int64
	// recent returns committed batches that are in no chunk, from a position
	// on: of maxBytes together or one larger batch; none: there are none. ok is
	// false when there are not n chunks any more.
	recent(n uint64, from smq.Position, maxBytes int) (entries []entry, ok bool)
	reader() *segment
}

// extent is how far a segment reaches at some moment.
type extent struct {
	chunks uint64
	sealed bool // no chunk will follow
}

func (s *segment) reader() *segment { return s }

// Changed returns a channel that is closed when the log has more to read, or
// has stopped.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Offsets returns the partition's first offset in this segment and the one
// behind its last committed message.
func (l *Log) Offsets(ctx context.Context, p smq.Partition) (start, end smq.Offset, err error) {
	if !l.id.Range.Contains(p) {
		return 0, 0, fmt.Errorf("%w partition %d: %v has %v", smq.ErrInvalid, p, l.id, l.id.Range)
	}
	opening, err := l.footer(ctx, 0, l.size(0))
	if err != nil {
		return 0, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return endOf(opening.Snapshot, p), l.ends[p-l.id.Range.Lo], nil
}

func (l *Log) extent() extent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return extent{chunks: uint64(len(l.chunks)), sealed: l.stopped != nil && l.stopped.seal != nil}
}

func (l *Log) size(n uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chunks[n].size
}

// Sealed is a sealed segment.
type Sealed struct {
	segment
	chunks []chunkInfo
	seal   Seal
}

// OpenSealed opens a sealed segment for reading. smq.ErrConflict when it is
// not sealed, smq.ErrNotFound when it has no chunks.
func OpenSealed(ctx context.Context, st store.Store, id Ident, shared *Shared) (*Sealed, error) {
	chunks, err := listChunks(ctx, st, id, 0)
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 {
		return nil, fmt.Errorf("open %v: %w", id, smq.ErrNotFound)
	}
	s := &Sealed{segment: segment{st: st, id: id, cache: shared.cache}, chunks: chunks}
	last := uint64(len(chunks) - 1)
	f, err := s.footer(ctx, last, s.size(last))
	if err != nil {
		return nil, err
	}
	if !f.Sealed {
		return nil, fmt.Errorf("open %v: %w: it is not sealed", id, smq.ErrConflict)
	}
	opening, err := s.footer(ctx, 0, s.size(0))
	if err != nil {
		return nil, err
	}
	s.seal = sealOf(f, messagesBetween(opening, f, id), totalSize(chunks))
	return s, nil
}

// Seal describes how the segment ended.
func (s *Sealed) Seal() Seal { return s.seal }

// Changed returns a channel that is closed: all there will ever be is there.
func (s *Sealed) Changed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Offsets returns the partition's first offset in this segment and the one
// behind its last message.
func (s *Sealed) Offsets(ctx context.Context, p smq.Partition) (start, end smq.Offset, err error) {
	if !s.id.Range.Contains(p) {
		return 0, 0, fmt.Errorf("%w partition %d: %v has %v", smq.ErrInvalid, p, s.id, s.id.Range)
	}
	last := uint64(len(s.chunks) - 1)
	f, err := s.footer(ctx, last, s.size(last))
	if err != nil {
		return 0, 0, err
	}
	end = endOf(f.Snapshot, p)
	if last == 0 { // sealed before it was opened
		return end, end, nil
	}
	opening, err := s.footer(ctx, 0, s.size(0))
	if err != nil {
		return 0, 0, err
	}
	return endOf(opening.Snapshot, p), end, nil
}

func (s *Sealed) extent() extent { return extent{chunks: uint64(len(s.chunks)), sealed: true} }

func (s *Sealed) recent(uint64, smq.Position, int) ([]entry, bool) { return nil, true }

func (s *Sealed) size(n uint64) int64 { return s.chunks[n].size }

// endOf is the partition's end offset in the snapshot.
func endOf(s *smqpb.Snapshot, p smq.Partition) smq.Offset {
	if i, ok := slices.BinarySearch(s.Partitions, p); ok {
		return s.EndOffsets[i]
	}
	return 0
}
