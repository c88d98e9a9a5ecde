package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/seaweedmq/smq/lib/smq"
)

// HeaderSize is the length of a batch's header in bytes.
const HeaderSize = 61

// What a batch carries when its producer is not an idempotent one.
const (
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
)

// Where the fields are that are written or read by themselves, and what the
// length does not count.
const (
	lengthAt       = 8
	leaderEpochAt  = 12
	lengthOverhead = leaderEpochAt
	magicAt        = 16
	crcAt          = 17
	attributesAt   = 21 // the CRC's range begins here
	epochAt        = 51
	sequenceAt     = 53
)

const (
	magic     = 2
	codecMask = 0x07
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the part of a batch that is never compressed.
type Header struct {
	BaseOffset      int64  // offset of the first record
	Length          int32  // as on the wire: the batch's bytes less the first 12
	LeaderEpoch     int32  // see smq.SegmentID.LeaderEpoch
	Magic           int8   // 2
	CRC             uint32 // CRC-32C of everything behind it
	Attributes      int16  // bits 0-2: codec
	LastOffsetDelta int32  // Count - 1
	BaseTimestamp   int64  // ms since 1970, of the first record
	MaxTimestamp    int64  // ms since 1970
	ProducerID      int64  // NoProducerID: none
	ProducerEpoch   int16
	BaseSequence    int32 // sequence of the first record
	Count           int32 // records
}

// Size is the length of the whole batch in bytes.
func (h Header) Size() int { return lengthOverhead + int(h.Length) }

// Codec is the codec of the batch's records, which may be an unknown one
// (Codec.Valid) if the header was not validated.
func (h Header) Codec() Codec { return Codec(h.Attributes & codecMask) }

// LastSequence is the sequence of the last record, or NoSequence.
func (h Header) LastSequence() int32 {
	if h.BaseSequence < 0 {
		return NoSequence
	}
	return NextSequence(h.BaseSequence, h.LastOffsetDelta)
}

// LastOffset is the offset of the last record.
func (h Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// AppendTo appends the header's 61 bytes to dst, as its fields are.
func (h Header) AppendTo(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(h.BaseOffset))
	dst = be.AppendUint32(dst, uint32(h.Length))
	dst = be.AppendUint32(dst, uint32(h.LeaderEpoch))
	dst = append(dst, byte(h.Magic))
	dst = be.AppendUint32(dst, h.CRC)
	dst = be.AppendUint16(dst, uint16(h.Attributes))
	dst = be.AppendUint32(dst, uint32(h.LastOffsetDelta))
	dst = be.AppendUint64(dst, uint64(h.BaseTimestamp))
	dst = be.AppendUint64(dst, uint64(h.MaxTimestamp))
	dst = be.AppendUint64(dst, uint64(h.ProducerID))
	dst = be.AppendUint16(dst, uint16(h.ProducerEpoch))
	dst = be.AppendUint32(dst, uint32(h.BaseSequence))
	return be.AppendUint32(dst, uint32(h.Count))
}

// ParseHeader reads the header at the start of b, of which it needs HeaderSize
// bytes. It checks only what tells where the batch ends: the magic, and that
// the length is not below that of a header. A caller that reserves memory by
// Header.Size bounds it first. The error is an smq.ErrCorrupt.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w batch header: %d bytes of %d", smq.ErrCorrupt, len(b), HeaderSize)
	}
	be := binary.BigEndian
	h := Header{
		BaseOffset:      int64(be.Uint64(b)),
		Length:          int32(be.Uint32(b[lengthAt:])),
		LeaderEpoch:     int32(be.Uint32(b[leaderEpochAt:])),
		Magic:           int8(b[magicAt]),
		CRC:             be.Uint32(b[crcAt:]),
		Attributes:      int16(be.Uint16(b[attributesAt:])),
		LastOffsetDelta: int32(be.Uint32(b[23:])),
		BaseTimestamp:   int64(be.Uint64(b[27:])),
		MaxTimestamp:    int64(be.Uint64(b[35:])),
		ProducerID:      int64(be.Uint64(b[43:])),
		ProducerEpoch:   int16(be.Uint16(b[epochAt:])),
		BaseSequence:    int32(be.Uint32(b[sequenceAt:])),
		Count:           int32(be.Uint32(b[57:])),
	}
	if h.Magic != magic {
		return Header{}, fmt.Errorf("%w batch header: magic %d, expected %d", smq.ErrCorrupt, h.Magic, magic)
	}
	if h.Size() < HeaderSize {
		return Header{}, fmt.Errorf("%w batch header: length %d is below that of a header", smq.ErrCorrupt, h.Length)
	}
	return h, nil
}

// Patch sets, in place, what the owner of a segment assigns. Both fields lie
// before the CRC's range, so the batch stays valid. It panics if batch is
// shorter than a header.
func Patch(batch []byte, baseOffset int64, leaderEpoch int32) {
	_ = batch[HeaderSize-1]
	binary.BigEndian.PutUint64(batch, uint64(baseOffset))
	binary.BigEndian.PutUint32(batch[leaderEpochAt:], uint32(leaderEpoch))
}

// Resequence rewrites, in place, the producer's epoch and base sequence of a
// whole batch and computes its CRC anew: what a publisher does to the batches
// that it still holds when it has raised its epoch. It panics if batch is
// shorter than a header.
func Resequence(batch []byte, epoch int16, seq int32) {
	_ = batch[HeaderSize-1]
	binary.BigEndian.PutUint16(batch[epochAt:], uint16(epoch))
	binary.BigEndian.PutUint32(batch[sequenceAt:], uint32(seq))
	putCRC(batch)
}

func checksum(batch []byte) uint32 { return crc32.Checksum(batch[attributesAt:], castagnoli) }

func putCRC(batch []byte) { binary.BigEndian.PutUint32(batch[crcAt:], checksum(batch)) }
