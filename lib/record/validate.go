package record

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// minRecordSize is the encoded length of a record with nothing in it: its
// length, its attributes, two deltas, two lengths of -1 and a count of 0.
const minRecordSize = 7

// Validate checks that b is exactly one whole batch, sound as far as that can
// be told without opening its records, and returns its header. It allocates
// nothing unless it fails. The error is
//
//   - smq.ErrTooLarge for a batch of more than smq.MaxBatchSize bytes;
//   - smq.ErrCorrupt where the bytes contradict themselves: cut short, trailing
//     bytes, another magic, a CRC or a count that does not match;
//   - smq.ErrInvalid for an intact batch of a kind that is not taken:
//     transactional, control, an unknown codec or attribute, a producer id
//     without epoch or sequence.
func Validate(b []byte) (Header, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return Header{}, err
	}
	if h.Size() > smq.MaxBatchSize {
		return Header{}, fmt.Errorf("batch of %d bytes: %w, the limit is %d", h.Size(), smq.ErrTooLarge, smq.MaxBatchSize)
	}
	if h.Size() != len(b) {
		return Header{}, fmt.Errorf("%w batch: it says %d bytes, there are %d", smq.ErrCorrupt, h.Size(), len(b))
	}
	// Before the fields that it covers are believed, or a flipped bit would
	// be reported as something that the producer did.
	if sum := checksum(b); sum != h.CRC {
		return Header{}, fmt.Errorf("%w batch: CRC %08x, computed %08x", smq.ErrCorrupt, h.CRC, sum)
	}
	if err := h.Check(); err != nil {
		return Header{}, err
	}
	return h, nil
}

// Check is the part of Validate that needs only the header: its size, count,
// attributes and producer fields, with the same errors.
func (h Header) Check() error {
	switch {
	case h.Magic != magic || h.Size() < HeaderSize:
		return fmt.Errorf("%w batch: magic %d, length %d", smq.ErrCorrupt, h.Magic, h.Length)
	case h.Size() > smq.MaxBatchSize:
		return fmt.Errorf("batch of %d bytes: %w, the limit is %d", h.Size(), smq.ErrTooLarge, smq.MaxBatchSize)
	case h.Count < 1 || h.LastOffsetDelta != h.Count-1:
		return fmt.Errorf("%w batch: %d records, last offset delta %d", smq.ErrCorrupt, h.Count, h.LastOffsetDelta)
	case h.Attributes&^codecMask != 0:
		return fmt.Errorf("%w batch: attributes %#x; only a codec may be set, transactions are not supported", smq.ErrInvalid, uint16(h.Attributes))
	case !h.Codec().Valid():
		return fmt.Errorf("%w batch: unknown %v", smq.ErrInvalid, h.Codec())
	case int64(h.Count) > h.maxCount():
		return fmt.Errorf("%w batch: %d records do not fit into it", smq.ErrCorrupt, h.Count)
	}
	return h.checkProducer()
}

func (h Header) checkProducer() error {
	if h.ProducerID == NoProducerID {
		return nil
	}
	if h.ProducerID < 0 || h.ProducerEpoch < 0 || h.BaseSequence < 0 {
		return fmt.Errorf("%w batch: producer id %d, epoch %d, sequence %d", smq.ErrInvalid, h.ProducerID, h.ProducerEpoch, h.BaseSequence)
	}
	return nil
}

// maxCount bounds the records by the bytes that can hold them, so that a
// compressed batch, which brokers do not open, cannot take up offsets by the
// billion.
func (h Header) maxCount() int64 {
	if h.Codec() == None {
		return int64(h.Size()-HeaderSize) / minRecordSize
	}
	return MaxDecompressedSize / minRecordSize
}
