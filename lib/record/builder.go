package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
)

// MaxHeaders is the largest number of headers in one message. Kafka knows no
// such limit, but a header of two bytes costs a reader forty-eight.
const MaxHeaders = 1 << 16

// ErrFull is Builder.Append's answer when the batch has no room for another
// message: finish it and append the message to the next.
var ErrFull = errors.New("batch is full")

// RecordHeader is a name and a value that travel beside a message. Names may
// repeat.
type RecordHeader struct {
	Key   []byte
	Value []byte // nil: null, which is not the same as empty
}

// Record is a message as a Reader gives it.
type Record struct {
	Offset    int64
	Timestamp int64  // ms since 1970
	Key       []byte // nil: null, which is not the same as empty
	Value     []byte // nil: null
	Headers   []RecordHeader
}

// Builder encodes messages into batches, one after the other. Messages are
// encoded as they come, into a pooled buffer, and compressed when the batch is
// finished.
type Builder struct {
	codec   Codec
	records *buffer // nil while the batch is empty
	count   int32
	base    int64 // timestamp of the first message
	latest  int64 // greatest timestamp
}

// NewBuilder makes a Builder of batches compressed by codec.
func NewBuilder(codec Codec) *Builder { return &Builder{codec: codec} }

// Len is the number of messages in the batch.
func (b *Builder) Len() int { return int(b.count) }

// Size is the length in bytes of the batch as it is, uncompressed and with its
// header.
func (b *Builder) Size() int {
	if b.records == nil {
		return HeaderSize
	}
	return HeaderSize + len(b.records.b)
}

// SizeWith is what Size would be with one more message: how a caller keeps
// batches to a size of its own. (Append keeps to smq.MaxBatchSize.)
func (b *Builder) SizeWith(timestamp int64, key, value []byte, headers []RecordHeader) int {
	body := b.bodySize(timestamp, key, value, headers)
	return b.Size() + varintSize(int64(body)) + body
}

// Append adds a message; timestamp is in ms since 1970. Nothing passed is kept.
// It fails, changing nothing, with smq.ErrTooLarge if the message exceeds
// smq.MaxMessageSize or MaxHeaders, or could not be encoded into a batch by
// itself, and with ErrFull if only this batch has no room for it.
func (b *Builder) Append(timestamp int64, key, value []byte, headers []RecordHeader) error {
	if err := checkMessage(key, value, headers); err != nil {
		return err
	}
	body := b.bodySize(timestamp, key, value, headers)
	size := varintSize(int64(body)) + body
	if b.Size()+size > smq.MaxBatchSize {
		if b.count > 0 {
			return ErrFull
		}
		return fmt.Errorf("message of %d bytes when encoded: %w", size, smq.ErrTooLarge)
	}
	if b.count == 0 {
		b.records, b.base, b.latest = getBuffer(), timestamp, timestamp
	}
	dst := slices.Grow(b.records.b, size)
	dst = binary.AppendVarint(dst, int64(body))
	dst = append(dst, 0) // attributes
	dst = binary.AppendVarint(dst, timestamp-b.base)
	dst = binary.AppendVarint(dst, int64(b.count))
	dst = appendBytes(dst, key)
	dst = appendBytes(dst, value)
	dst = binary.AppendVarint(dst, int64(len(headers)))
	for i := range headers {
		dst = binary.AppendVarint(dst, int64(len(headers[i].Key)))
		dst = append(dst, headers[i].Key...)
		dst = appendBytes(dst, headers[i].Value)
	}
	b.records.b = dst
	b.count++
	b.latest = max(b.latest, timestamp)
	return nil
}

// Finish appends the whole batch to dst and empties the Builder. Base offset
// (0) and leader epoch (-1) are left for Patch. A producer that is not
// idempotent passes NoProducerID, NoProducerEpoch and NoSequence. Records that
// do not shrink are left uncompressed. On failure dst and the Builder are as
// they were; the error is an smq.ErrInvalid if the batch is empty or the codec
// is none of them.
func (b *Builder) Finish(dst []byte, producerID int64, epoch int16, baseSequence int32) ([]byte, error) {
	if b.count == 0 {
		return dst, fmt.Errorf("%w batch: no message in it", smq.ErrInvalid)
	}
	codec, records := None, b.records.b
	if b.codec != None {
		// Through a pooled buffer, so that dst, which the caller keeps until
		// the batch is acked, grows by no more than the result.
		scratch := getBuffer()
		defer putBuffer(scratch)
		packed, err := b.codec.compress(scratch.b, records)
		if err != nil {
			return dst, err
		}
		scratch.b = packed
		if len(packed) < len(records) {
			codec, records = b.codec, packed
		}
	}
	h := Header{
		Length:          int32(HeaderSize - lengthOverhead + len(records)),
		LeaderEpoch:     -1,
		Magic:           magic,
		Attributes:      int16(codec),
		LastOffsetDelta: b.count - 1,
		BaseTimestamp:   b.base,
		MaxTimestamp:    b.latest,
		ProducerID:      producerID,
		ProducerEpoch:   epoch,
		BaseSequence:    baseSequence,
		Count:           b.count,
	}
	start := len(dst)
	dst = slices.Grow(dst, h.Size())
	dst = append(h.AppendTo(dst), records...)
	putCRC(dst[start:])
	b.Reset()
	return dst, nil
}

// Reset drops what was appended.
func (b *Builder) Reset() {
	if b.records != nil {
		putBuffer(b.records)
	}
	*b = Builder{codec: b.codec}
}

// checkMessage holds a message against the limits that do not depend on the
// batch.
func checkMessage(key, value []byte, headers []RecordHeader) error {
	if len(headers) > MaxHeaders {
		return fmt.Errorf("message with %d headers: %w, the limit is %d", len(headers), smq.ErrTooLarge, MaxHeaders)
	}
	size := len(key) + len(value)
	for i := range headers {
		size += len(headers[i].Key) + len(headers[i].Value)
	}
	if size > smq.MaxMessageSize {
		return fmt.Errorf("message of %d bytes: %w, the limit is %d", size, smq.ErrTooLarge, smq.MaxMessageSize)
	}
	return nil
}

// bodySize is the encoded length of the message as the batch's next record,
// without the length in front of it.
func (b *Builder) bodySize(timestamp int64, key, value []byte, headers []RecordHeader) int {
	var delta int64
	if b.count > 0 {
		delta = timestamp - b.base
	}
	size := 1 + varintSize(delta) + varintSize(int64(b.count)) +
		bytesSize(key) + bytesSize(value) + varintSize(int64(len(headers)))
	for i := range headers {
		size += varintSize(int64(len(headers[i].Key))) + len(headers[i].Key) + bytesSize(headers[i].Value)
	}
	return size
}

func varintSize(v int64) int {
	zigzag := uint64(v<<1) ^ uint64(v>>63)
	return (bits.Len64(zigzag|1) + 6) / 7
}

func bytesSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 1) // the varint of -1
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}
