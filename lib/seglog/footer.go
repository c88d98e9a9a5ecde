package seglog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// format is the version of the chunk format that this package writes, and the
// only one that it reads.
const format = 1

// magic ends every chunk.
const magic = "smqchnk1"

// trailerSize is the length of the frame behind the footer message: its
// length, its CRC-32C, and the magic.
const trailerSize = 4 + 4 + len(magic)

// snapshotEvery is the number of chunks from one snapshot to the next: those
// whose number it divides carry one, and seals do. It is part of the format.
const snapshotEvery = 64

// footerGuess is how much of a chunk's end is read to get at its footer. Only
// footers of very many partitions or producers are larger.
const footerGuess = 64 << 10

// maxFooter bounds a footer message, in bytes: a snapshot of the largest topic
// with all its partitions in use fits many times over.
const maxFooter = 512 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// footer is a parsed footer with what the file system cannot tell of it.
type footer struct {
	*smqpb.ChunkFooter
	hash [sha256.Size]byte // of the message's bytes
	size int               // of the message and its trailer, in bytes
}

// encodeFooter returns the footer's bytes as they end a chunk.
func encodeFooter(m *smqpb.ChunkFooter) ([]byte, footer, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, footer{}, fmt.Errorf("encode the footer of chunk %d: %w", m.Chunk, err)
	}
	f := footer{ChunkFooter: m, hash: sha256.Sum256(b), size: len(b) + trailerSize}
	n, crc := uint32(len(b)), crc32.Checksum(b, castagnoli)
	b = binary.BigEndian.AppendUint32(b, n)
	b = binary.BigEndian.AppendUint32(b, crc)
	return append(b, magic...), f, nil
}

// trailer reads the frame at the end of tail and returns the length of the
// footer message and its checksum.
func trailer(tail []byte) (length int, crc uint32, err error) {
	if len(tail) < trailerSize {
		return 0, 0, fmt.Errorf("%w chunk: %d bytes are too few", smq.ErrCorrupt, len(tail))
	}
	t := tail[len(tail)-trailerSize:]
	if string(t[8:]) != magic {
		return 0, 0, fmt.Errorf("%w chunk: it does not end in the format's mark", smq.ErrCorrupt)
	}
	n := binary.BigEndian.Uint32(t)
	if n > maxFooter {
		return 0, 0, fmt.Errorf("%w chunk: a footer of %d bytes", smq.ErrCorrupt, n)
	}
	return int(n), binary.BigEndian.Uint32(t[4:]), nil
}

// decodeFooter reads the footer at the end of tail. When tail is too short to
// hold all of it, it returns how many bytes are needed.
func decodeFooter(tail []byte) (f footer, need int, err error) {
	n, crc, err := trailer(tail)
	if err != nil {
		return footer{}, 0, err
	}
	if need = n + trailerSize; need > len(tail) {
		return footer{}, need, nil
	}
	b := tail[len(tail)-need : len(tail)-trailerSize]
	if crc32.Checksum(b, castagnoli) != crc {
		return footer{}, 0, fmt.Errorf("%w chunk: the footer's checksum does not match", smq.ErrCorrupt)
	}
	m := new(smqpb.ChunkFooter)
	if err := proto.Unmarshal(b, m); err != nil {
		return footer{}, 0, fmt.Errorf("%w chunk: its footer cannot be read: %v", smq.ErrCorrupt, err)
	}
	if m.Format != format {
		return footer{}, 0, fmt.Errorf("%w chunk: format %d, this program reads %d", smq.ErrCorrupt, m.Format, format)
	}
	return footer{ChunkFooter: m, hash: sha256.Sum256(b), size: need}, need, nil
}

// checkFooter says whether the footer fits the file that holds it: a segment's
// chunk of the given number and size, or any chunk when id is nil.
func checkFooter(f footer, id *Ident, n uint64, size int64) error {
	if id != nil && (f.Segment != uint64(id.Segment) || f.TopicId != string(id.TopicID) || f.Chunk != n) {
		return fmt.Errorf("%w: it says that it is chunk %d of segment %d of topic id %s", smq.ErrCorrupt, f.Chunk, f.Segment, f.TopicId)
	}
	if id != nil && (f.Lo != id.Range.Lo || f.Hi != id.Range.Hi) {
		return fmt.Errorf("%w: it says that its segment has the partitions %v, the layout %v", smq.ErrCorrupt, smq.Range{Lo: f.Lo, Hi: f.Hi}, id.Range)
	}
	data := uint64(size) - uint64(f.size)
	if f.EndPosition < f.FirstPosition {
		return fmt.Errorf("%w: positions from %d to %d", smq.ErrCorrupt, f.FirstPosition, f.EndPosition)
	}
	last, end := int32(-1), uint64(0)
	var batches uint64
	for _, b := range f.Blocks {
		if b.Partition <= last || b.Partition < f.Lo || b.Partition >= f.Hi || b.Start != end || b.Length > data-end {
			return fmt.Errorf("%w: the block of partition %d is out of place", smq.ErrCorrupt, b.Partition)
		}
		if err := checkBlock(b); err != nil {
			return err
		}
		last, end = b.Partition, end+b.Length
		batches += uint64(len(b.Lengths))
	}
	if end != data {
		return fmt.Errorf("%w: the footer accounts for %d of %d bytes", smq.ErrCorrupt, end, data)
	}
	if batches != f.EndPosition-f.FirstPosition {
		return fmt.Errorf("%w: %d batches in %d positions", smq.ErrCorrupt, batches, f.EndPosition-f.FirstPosition)
	}
	if s := f.Snapshot; s != nil {
		n := len(s.Partitions)
		if len(s.EndOffsets) != n || len(s.MaxTimestamps) != n || len(s.AppendMs) != n {
			return fmt.Errorf("%w: the snapshot's columns differ in length", smq.ErrCorrupt)
		}
	}
	if f.Sealed && f.Snapshot == nil {
		return fmt.Errorf("%w: a seal without a snapshot", smq.ErrCorrupt)
	}
	return checkProducers(f)
}

func checkBlock(b *smqpb.PartitionBlock) error {
	n := len(b.Lengths)
	if n == 0 || len(b.Counts) != n || len(b.Crcs) != n || len(b.Positions) != n || len(b.MaxTimestamps) != n {
		return fmt.Errorf("%w: the index columns of partition %d differ in length", smq.ErrCorrupt, b.Partition)
	}
	length, offset := uint64(0), b.FirstOffset
	for i := range b.Lengths {
		length += uint64(b.Lengths[i])
		offset += int64(b.Counts[i])
	}
	if length != b.Length || offset != b.EndOffset || b.FirstOffset < 0 {
		return fmt.Errorf("%w: the index of partition %d does not add up", smq.ErrCorrupt, b.Partition)
	}
	return nil
}

func checkProducers(f footer) error {
	lists := [][]*smqpb.ProducerState{f.Producers}
	if f.Snapshot != nil {
		lists = append(lists, f.Snapshot.Producers)
	}
	for _, list := range lists {
		for _, p := range list {
			n := len(p.FirstSequences)
			if n == 0 || n > rememberedBatches || len(p.Counts) != n || len(p.BaseOffsets) != n {
				return fmt.Errorf("%w: state of producer %d in partition %d", smq.ErrCorrupt, p.ProducerId, p.Partition)
			}
		}
	}
	return nil
}

// readFooter reads and checks the footer of chunk n, whose file has the given
// size.
func readFooter(ctx context.Context, st store.Store, id Ident, n uint64, size int64) (footer, error) {
	path := id.ChunkPath(n)
	f, err := readFooterAt(size, func(p []byte, off int64) error {
		got, err := st.ReadAt(ctx, path, p, off)
		return short(got, len(p), err)
	})
	if err == nil {
		err = checkFooter(f, &id, n, size)
	}
	if err != nil {
		return footer{}, fmt.Errorf("read the footer of %s: %w", path, err)
	}
	return f, nil
}

// readFooterAt reads a footer through read, which fills p or fails.
func readFooterAt(size int64, read func(p []byte, off int64) error) (footer, error) {
	tail := make([]byte, min(size, footerGuess))
	if err := read(tail, size-int64(len(tail))); err != nil {
		return footer{}, err
	}
	f, need, err := decodeFooter(tail)
	if err != nil || need <= len(tail) {
		return f, err
	}
	if int64(need) > size {
		return footer{}, fmt.Errorf("%w chunk: a footer of %d bytes in %d", smq.ErrCorrupt, need, size)
	}
	tail = make([]byte, need)
	if err := read(tail, size-int64(need)); err != nil {
		return footer{}, err
	}
	f, _, err = decodeFooter(tail)
	return f, err
}

// short makes an error of a read that ended early: a chunk never shrinks.
func short(got, want int, err error) error {
	switch {
	case got == want:
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("%w chunk: its file ends early", smq.ErrCorrupt)
	}
	return err
}

// sealOf describes the seal whose footer is f.
func sealOf(f footer, messages, size uint64) Seal {
	return Seal{
		Segment:  smq.SegmentID(f.Segment),
		Range:    smq.Range{Lo: f.Lo, Hi: f.Hi},
		Chunk:    f.Chunk,
		Hash:     bytes.Clone(f.hash[:]),
		Unclean:  f.Unclean,
		Messages: messages,
		Bytes:    size,
	}
}
