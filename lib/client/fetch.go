package client

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// Fetch is what Poll gives: messages of one partition, one after the other, or
// the news that it has been read to its end. It belongs to the subscriber and
// is valid until the next Poll.
type Fetch struct {
	Partition int32
	// NextOffset is one past the last message, or the partition's end.
	NextOffset int64
	// CaughtUp: there are no messages here, and there were none at NextOffset
	// when the broker looked. It comes once for each time that a subscription
	// reaches the end, and again after a change of broker.
	CaughtUp bool

	reader *record.Reader
	begun  bool   // the reader is at a batch of this fetch
	data   []byte // the batches ahead
	size   int
	from   int64 // messages before it are not wanted
	next   int64 // offset behind the last message given
	err    error
}

// Next gives the next message, or false at the end and after a failure. What the
// message points to is valid until the next call.
func (f *Fetch) Next() (record.Record, bool) {
	for f.err == nil {
		var rec record.Record
		var ok bool
		if f.begun {
			rec, ok = f.reader.Next()
		}
		switch {
		case ok && rec.Offset >= f.from:
			f.next = rec.Offset + 1
			return rec, true
		case ok:
		case f.begun && f.reader.Err() != nil:
			f.fail(f.reader.Err())
		case len(f.data) == 0:
			return record.Record{}, false
		default:
			f.open()
		}
	}
	return record.Record{}, false
}

// Err is what ended the messages early, a PartitionError with an smq.ErrCorrupt,
// or nil. The subscriber goes on behind them unless told to seek.
func (f *Fetch) Err() error { return f.err }

// Size is the length in bytes of the batches that hold the messages.
func (f *Fetch) Size() int { return f.size }

// open goes on to the next batch.
func (f *Fetch) open() {
	batch, _, err := cutBatch(f.data)
	if err != nil {
		f.fail(err)
		return
	}
	f.data = f.data[len(batch):]
	f.begun = true
	if err := f.reader.Reset(batch); err != nil {
		f.fail(err)
	}
}

// cutBatch is the batch at the front of data.
func cutBatch(data []byte) ([]byte, record.Header, error) {
	h, err := record.ParseHeader(data)
	if err == nil && h.Size() > len(data) {
		err = fmt.Errorf("%w batch: it says %d bytes, there are %d", smq.ErrCorrupt, h.Size(), len(data))
	}
	if err != nil {
		return nil, h, err
	}
	return data[:h.Size():h.Size()], h, nil
}

func (f *Fetch) fail(err error) {
	f.err = &PartitionError{Partition: f.Partition, Offset: f.next, Err: err}
}
