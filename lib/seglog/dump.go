package seglog

import (
	"iter"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// Chunk is a chunk's file taken apart, for tools.
type Chunk struct {
	Footer *smqpb.ChunkFooter
	Hash   []byte // SHA-256 of the footer message
	Size   int64
	blocks [][][]byte
}

// ParseChunk reads a chunk's file with nothing but its bytes, and checks the
// footer and every batch's checksum. What fails is an smq.ErrCorrupt.
func ParseChunk(data []byte) (*Chunk, error) {
	c, err := parseChunk(data, nil, 0)
	if err != nil {
		return nil, err
	}
	return &Chunk{Footer: c.footer.ChunkFooter, Hash: c.footer.hash[:], Size: c.size, blocks: c.blocks}, nil
}

// Batches goes over the chunk's batches with the partitions that they belong
// to, partition by partition.
func (c *Chunk) Batches() iter.Seq2[int32, []byte] {
	return func(yield func(int32, []byte) bool) {
		for i, b := range c.Footer.Blocks {
			for _, batch := range c.blocks[i] {
				if !yield(b.Partition, batch) {
					return
				}
			}
		}
	}
}
