package seglog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Delivered is a batch on its way to a reader. Its bytes are shared: they must
// not be changed.
type Delivered struct {
	Partition  smq.Partition
	Bytes      []byte
	BaseOffset smq.Offset
	EndOffset  smq.Offset // one behind its last message
}

// Delivery is what a step of a cursor yields.
type Delivery struct {
	Batches []Delivered
	AtTail  bool // all that is committed has been delivered; wait for Source.Changed
	AtEnd   bool // the segment is sealed and all of it has been delivered
}

// Cursor reads some partitions of one segment, each from an offset of its own
// on, in one pass over the segment's chunks. It belongs to one goroutine.
type Cursor struct {
	src  Source
	next map[smq.Partition]smq.Offset
	// added are partitions whose place in the chunks is not looked up yet.
	added map[smq.Partition]smq.Offset
	n     uint64             // chunk to read next
	block int                // of it, to go on at; within it by next
	hash  *[sha256.Size]byte // of the footer before chunk n, when known
	fresh smq.Position       // where to go on among what is in no chunk
}

// NewCursor returns a cursor that reads nothing yet.
func NewCursor(src Source) *Cursor {
	return &Cursor{src: src, next: make(map[smq.Partition]smq.Offset), added: make(map[smq.Partition]smq.Offset)}
}

// Add has the cursor read a partition from offset on.
func (c *Cursor) Add(p smq.Partition, offset smq.Offset) {
	c.next[p] = offset
	c.added[p] = offset
}

// Remove has the cursor read the partition no more.
func (c *Cursor) Remove(p smq.Partition) {
	delete(c.next, p)
	delete(c.added, p)
}

// Position returns the offset that the partition is read from next.
func (c *Cursor) Position(p smq.Partition) (smq.Offset, bool) {
	o, ok := c.next[p]
	return o, ok
}

// Len is the number of partitions read.
func (c *Cursor) Len() int { return len(c.next) }

// Next returns the next batches, of maxBytes together or one larger batch. It
// does not wait for more to be committed; it does wait for the store. The first
// batch of a partition may begin before the offset asked for. An error comes
// once everything before it has been delivered; after a *DamageError the cursor
// goes on when the partition is removed.
func (c *Cursor) Next(ctx context.Context, maxBytes int) (Delivery, error) {
	if len(c.next) == 0 {
		return Delivery{AtTail: true}, nil
	}
	if err := c.place(ctx); err != nil {
		return Delivery{}, err
	}
	var d Delivery
	budget := maxBytes
	for budget > 0 {
		e := c.src.extent()
		if c.n >= e.chunks {
			if e.sealed {
				d.AtEnd = true
				return d, nil
			}
			if done := c.recent(&d, &budget); done {
				d.AtTail = budget > 0
				return d, nil
			}
			continue
		}
		done, err := c.chunk(ctx, &d, &budget)
		if err != nil && len(d.Batches) > 0 {
			return d, nil // the next call meets it again
		}
		if err != nil {
			return Delivery{}, err
		}
		if done {
			c.n, c.block = c.n+1, 0
		}
	}
	return d, nil
}

// place moves the cursor back to where the partitions added since need it.
// What others have been served already is passed over on the way.
func (c *Cursor) place(ctx context.Context) error {
	if len(c.added) == 0 {
		return nil
	}
	n, err := findChunk(ctx, c.src, func(s *smqpb.Snapshot) bool {
		for i, p := range s.Partitions {
			if want, ok := c.added[p]; ok && s.EndOffsets[i] > want {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	if first := len(c.added) == len(c.next); first || n <= c.n {
		c.n, c.block, c.hash = n, 0, nil
	}
	c.fresh = 0 // what has been served of it is passed over
	clear(c.added)
	return nil
}

// recent delivers what is committed and in no chunk. It reports false when
// there are more chunks by now.
func (c *Cursor) recent(d *Delivery, budget *int) bool {
	for *budget > 0 {
		entries, ok := c.src.recent(c.n, c.fresh, *budget)
		if !ok {
			return false
		}
		if len(entries) == 0 {
			return true
		}
		for i := range entries {
			e := &entries[i]
			end := e.offset + int64(e.header.Count)
			if next, wanted := c.next[e.partition]; wanted && end > next {
				d.Batches = append(d.Batches, Delivered{Partition: e.partition, Bytes: e.bytes, BaseOffset: e.offset, EndOffset: end})
				c.next[e.partition] = end
				*budget -= len(e.bytes)
			}
			c.fresh = e.position + 1
		}
	}
	return true
}

// chunk delivers from the present chunk until it is done or the budget spent.
func (c *Cursor) chunk(ctx context.Context, d *Delivery, budget *int) (done bool, err error) {
	size := c.src.size(c.n)
	f, err := c.src.reader().footer(ctx, c.n, size)
	if err != nil {
		return false, err
	}
	if c.hash != nil {
		if err := checkChain(c.src.Ident(), *c.hash, f); err != nil {
			return false, err
		}
	}
	wanted := c.wanted(f)
	for ; c.block < len(f.Blocks); c.block++ {
		b := f.Blocks[c.block]
		next, ok := c.next[b.Partition]
		if !ok || b.EndOffset <= next {
			continue
		}
		if *budget <= 0 {
			return false, nil
		}
		if b.FirstOffset > next {
			return false, fmt.Errorf("%w %v: partition %d has nothing between offsets %d and %d", smq.ErrCorrupt, c.src.Ident(), b.Partition, next, b.FirstOffset)
		}
		batches, err := c.batches(ctx, size, b, wanted)
		if err != nil {
			return false, err
		}
		if full := c.deliver(d, budget, b, batches); full {
			return false, nil
		}
	}
	hash := f.hash
	c.hash = &hash
	return true, nil
}

// wanted is how many of the chunk's bytes this cursor delivers.
func (c *Cursor) wanted(f footer) uint64 {
	var n uint64
	for _, b := range f.Blocks {
		if next, ok := c.next[b.Partition]; ok && b.EndOffset > next {
			n += b.Length
		}
	}
	return n
}

// batches gets a block's batches: from the cache, with the whole chunk when a
// good part of it is wanted, else by themselves.
func (c *Cursor) batches(ctx context.Context, size int64, b *smqpb.PartitionBlock, wanted uint64) ([][]byte, error) {
	const goodPart = 4
	seg := c.src.reader()
	ch := seg.cache.content(seg.id.key(c.n))
	if ch == nil {
		if wanted < uint64(size)/goodPart {
			return seg.block(ctx, c.n, b)
		}
		var err error
		ch, err = seg.whole(ctx, c.n, size)
		if damage := (*DamageError)(nil); errors.As(err, &damage) && damage.Partition != b.Partition {
			return seg.block(ctx, c.n, b)
		}
		if err != nil {
			return nil, err
		}
	}
	return ch.blocks[c.block], nil
}

// deliver adds the block's batches to the delivery, from where the cursor
// stands, and reports whether the budget ended first.
func (c *Cursor) deliver(d *Delivery, budget *int, b *smqpb.PartitionBlock, batches [][]byte) (full bool) {
	offset := b.FirstOffset
	for i := range batches {
		end := offset + int64(b.Counts[i])
		if end > c.next[b.Partition] {
			if *budget <= 0 {
				return true
			}
			d.Batches = append(d.Batches, Delivered{Partition: b.Partition, Bytes: batches[i], BaseOffset: offset, EndOffset: end})
			c.next[b.Partition] = end
			*budget -= len(batches[i])
		}
		offset = end
	}
	return false
}
