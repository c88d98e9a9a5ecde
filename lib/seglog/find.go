package seglog

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// findChunk returns the first chunk that can hold something which the state
// after chunk n does not have yet as long as reached says false for it. It
// searches the snapshots, so at most 64 chunks lie between the answer and what
// is looked for. reached must not become false again in later snapshots.
func findChunk(ctx context.Context, src Source, reached func(*smqpb.Snapshot) bool) (uint64, error) {
	n := src.extent().chunks
	snapshots := int((n + snapshotEvery - 1) / snapshotEvery)
	var failed error
	first := sort.Search(snapshots, func(i int) bool {
		if failed != nil {
			return true
		}
		at := uint64(i) * snapshotEvery
		f, err := src.reader().footer(ctx, at, src.size(at))
		if err == nil && f.Snapshot == nil {
			err = fmt.Errorf("%w %v: chunk %d has no snapshot", smq.ErrCorrupt, src.Ident(), at)
		}
		if err != nil {
			failed = err
			return true
		}
		return reached(f.Snapshot)
	})
	if failed != nil {
		return 0, failed
	}
	if first == 0 {
		return 1, nil // chunk 0 holds no messages
	}
	return uint64(first-1)*snapshotEvery + 1, nil
}

// TimeKind says which time of a message a search goes by.
type TimeKind int

// The times of a message.
const (
	RecordTime TimeKind = iota // its timestamp, as its producer gave it
	AppendTime                 // when it came to the owner; exact to the batch
)

// Found is a message found by its time.
type Found struct {
	Offset    smq.Offset
	Timestamp int64 // its own, ms
}

// reached reports whether the partition has had a message whose time is at or
// after ms, in all its history up to the snapshot. Times of messages need not
// rise, but this never becomes false again.
func (kind TimeKind) reached(s *smqpb.Snapshot, p smq.Partition, ms int64) bool {
	i, ok := slices.BinarySearch(s.Partitions, p)
	if !ok {
		return false
	}
	if kind == AppendTime {
		return s.AppendMs[i] >= ms
	}
	return s.MaxTimestamps[i] >= ms
}

// ReachedBefore reports whether the partition had a message whose time is at or
// after ms before this segment, in any of those that it continues from. While it
// is false none of them need be searched for such a message; that it is true says
// nothing of this one.
func ReachedBefore(ctx context.Context, src Source, p smq.Partition, ms int64, kind TimeKind) (bool, error) {
	opening, err := src.reader().footer(ctx, 0, src.size(0))
	if err == nil && opening.Snapshot == nil {
		err = fmt.Errorf("%w %v: its opening has no snapshot", smq.ErrCorrupt, src.Ident())
	}
	return err == nil && kind.reached(opening.Snapshot, p, ms), err
}

// OffsetForTime finds the first message of the partition in this segment whose
// time is at or after ms. Record timestamps need not rise.
func OffsetForTime(ctx context.Context, src Source, p smq.Partition, ms int64, kind TimeKind) (found Found, ok bool, err error) {
	n, err := findChunk(ctx, src, func(s *smqpb.Snapshot) bool { return kind.reached(s, p, ms) })
	if err != nil {
		return Found{}, false, err
	}
	for end := src.extent().chunks; n < end; n++ {
		f, err := src.reader().footer(ctx, n, src.size(n))
		if err != nil {
			return Found{}, false, err
		}
		b := blockOf(f, p)
		if b == nil || kind == RecordTime && b.MaxTimestamp < ms || kind == AppendTime && b.AppendMs < ms {
			continue
		}
		found, ok, err := findInBlock(ctx, src, n, b, ms, kind)
		if ok || err != nil {
			return found, ok, err
		}
	}
	return Found{}, false, nil
}

// blockOf returns the partition's block in the chunk, or nil.
func blockOf(f footer, p smq.Partition) *smqpb.PartitionBlock {
	i := sort.Search(len(f.Blocks), func(i int) bool { return f.Blocks[i].Partition >= p })
	if i < len(f.Blocks) && f.Blocks[i].Partition == p {
		return f.Blocks[i]
	}
	return nil
}

// findInBlock opens the batches that may hold the message. A seek is the one
// thing for which a broker looks into batches.
func findInBlock(ctx context.Context, src Source, n uint64, b *smqpb.PartitionBlock, ms int64, kind TimeKind) (Found, bool, error) {
	batches, err := src.reader().block(ctx, n, b)
	if err != nil {
		return Found{}, false, err
	}
	var r record.Reader
	for i, batch := range batches {
		if kind == RecordTime && b.MaxTimestamp+b.MaxTimestamps[i] < ms {
			continue
		}
		if err := r.Reset(batch); err != nil {
			return Found{}, false, err
		}
		for {
			rec, ok := r.Next()
			if !ok {
				break
			}
			if kind == AppendTime || rec.Timestamp >= ms {
				return Found{Offset: rec.Offset, Timestamp: rec.Timestamp}, true, nil
			}
		}
		if err := r.Err(); err != nil {
			return Found{}, false, err
		}
	}
	return Found{}, false, nil
}
