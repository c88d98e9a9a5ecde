package seglog

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// loadTimeout bounds a read that several readers may be waiting for.
const loadTimeout = 30 * time.Second

// segment reads the stored chunks of a segment, through the cache.
type segment struct {
	st    store.Store
	id    Ident
	cache *chunkCache
}

// Ident says which segment it is.
func (s *segment) Ident() Ident { return s.id }

// footer returns the footer of chunk n.
func (s *segment) footer(ctx context.Context, n uint64, size int64) (footer, error) {
	if c := s.cache.get(s.id.key(n)); c != nil {
		return c.footer, nil
	}
	c, err := s.shared(ctx, "f", n, func(ctx context.Context) (*chunk, error) {
		f, err := readFooter(ctx, s.st, s.id, n, size)
		if err != nil {
			return nil, err
		}
		return &chunk{footer: f, size: size}, nil
	})
	if err != nil {
		return footer{}, err
	}
	return c.footer, nil
}

// whole returns chunk n with all its batches.
func (s *segment) whole(ctx context.Context, n uint64, size int64) (*chunk, error) {
	if c := s.cache.get(s.id.key(n)); c != nil && c.blocks != nil {
		return c, nil
	}
	return s.shared(ctx, "w", n, func(ctx context.Context) (*chunk, error) {
		data := make([]byte, size)
		path := s.id.ChunkPath(n)
		got, err := s.st.ReadAt(ctx, path, data, 0)
		if err := short(got, len(data), err); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		c, err := parseChunk(data, &s.id, n)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		return c, nil
	})
}

// shared loads a chunk once for all who ask for it at the same time, and
// caches it. The load does not end with the context of any one of them.
func (s *segment) shared(ctx context.Context, what string, n uint64, load func(context.Context) (*chunk, error)) (*chunk, error) {
	key := what + string(s.id.TopicID) + "/" + s.id.Segment.String() + "/" + strconv.FormatUint(n, 10)
	result := s.cache.loads.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		c, err := load(ctx)
		if err != nil {
			return nil, err
		}
		s.cache.put(s.id, c)
		return c, nil
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*chunk), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("read %v: %w: %w", s.id, smq.ErrTimeout, ctx.Err())
	}
}

// block reads the batches of one block of chunk n.
func (s *segment) block(ctx context.Context, n uint64, b *smqpb.PartitionBlock) ([][]byte, error) {
	data := make([]byte, b.Length)
	path := s.id.ChunkPath(n)
	got, err := s.st.ReadAt(ctx, path, data, int64(b.Start))
	if err := short(got, len(data), err); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	batches, err := cut(data, b, s.id.Segment.LeaderEpoch())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return batches, nil
}

// parseChunk takes a chunk's file apart. id may be nil: any chunk will do.
func parseChunk(data []byte, id *Ident, n uint64) (*chunk, error) {
	f, need, err := decodeFooter(data)
	if err != nil {
		return nil, err
	}
	if need > len(data) {
		return nil, fmt.Errorf("%w chunk: a footer of %d bytes in %d", smq.ErrCorrupt, need, len(data))
	}
	if err := checkFooter(f, id, n, int64(len(data))); err != nil {
		return nil, err
	}
	c := &chunk{footer: f, size: int64(len(data)), blocks: make([][][]byte, len(f.Blocks))}
	for i, b := range f.Blocks {
		if c.blocks[i], err = cut(data[b.Start:b.Start+b.Length], b, smq.SegmentID(f.Segment).LeaderEpoch()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// DamageError says where in a partition the stored bytes are not what they
// were. What else is in the chunk may be well. It is an smq.ErrCorrupt.
type DamageError struct {
	Partition smq.Partition
	Offset    smq.Offset // of the first message that cannot be read
	Err       error
}

// Error says where and what.
func (e *DamageError) Error() string {
	return fmt.Sprintf("partition %d, offset %d: %v", e.Partition, e.Offset, e.Err)
}

// Unwrap gives the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// cut divides a block's bytes into its batches, and checks that they are what
// the index says: headers, offsets, checksums. A *DamageError when they are not.
func cut(data []byte, b *smqpb.PartitionBlock, epoch int32) ([][]byte, error) {
	batches := make([][]byte, len(b.Lengths))
	offset := b.FirstOffset
	for i, n := range b.Lengths {
		batches[i], data = data[:n:n], data[n:]
		h, err := record.Validate(batches[i])
		if err == nil && (h.BaseOffset != offset || h.CRC != b.Crcs[i] || h.LeaderEpoch != epoch || h.Count != int32(b.Counts[i])) {
			err = fmt.Errorf("%w batch: its header is not what the index says", smq.ErrCorrupt)
		}
		if err != nil {
			return nil, &DamageError{Partition: b.Partition, Offset: offset, Err: err}
		}
		offset += int64(b.Counts[i])
	}
	return batches, nil
}
