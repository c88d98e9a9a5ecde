package sim

import (
	"fmt"
	"sync"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// Key names a batch as its producer knows it, which no retry changes.
type Key struct {
	Producer  int64
	Epoch     int16
	Partition smq.Partition
	Sequence  int32 // of the batch's first message
}

// String is for failure reports: producer.epoch, partition, sequence.
func (k Key) String() string {
	return fmt.Sprintf("%d.%d/p%d/s%d", k.Producer, k.Epoch, k.Partition, k.Sequence)
}

// keyOf reads a batch's name out of its header.
func keyOf(p smq.Partition, h record.Header) Key {
	return Key{Producer: h.ProducerID, Epoch: h.ProducerEpoch, Partition: p, Sequence: h.BaseSequence}
}

// NewBatch builds the batch k of count messages. Every message's value says
// which one it is, so no two batches hold the same.
func NewBatch(k Key, count int) []byte {
	b := record.NewBuilder(record.None)
	for i := range count {
		value := fmt.Appendf(nil, "%d.%d/p%d/s%d", k.Producer, k.Epoch, k.Partition, k.Sequence+int32(i))
		if err := b.Append(1_000_000+int64(k.Sequence)+int64(i), nil, value, nil); err != nil {
			panic(err) // a few bytes are never too many
		}
	}
	batch, err := b.Finish(nil, k.Producer, k.Epoch, k.Sequence)
	if err != nil {
		panic(err) // the batch is not empty, and needs no codec
	}
	return batch
}

// crcFrom is where the part of a batch begins that nobody changes on its way:
// what lies before is for the owner to fill in.
const crcFrom = 21

// same says whether two batches are the same but for their place in the log.
func same(a, b []byte) bool {
	return len(a) == len(b) && len(a) >= crcFrom && string(a[crcFrom:]) == string(b[crcFrom:])
}

// batchOf is NewBatch for those who build the same batches again and again;
// the result is shared.
func batchOf(k Key, count int) []byte {
	type built struct {
		Key
		count int
	}
	if b, ok := batches.Load(built{k, count}); ok {
		return b.([]byte)
	}
	b, _ := batches.LoadOrStore(built{k, count}, NewBatch(k, count))
	return b.([]byte)
}

// batches remembers what batchOf has built: content only, no state.
var batches sync.Map
