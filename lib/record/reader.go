package record

import (
	"encoding/binary"
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// Reader goes through the messages of batches, one batch after the other. Its
// zero value is ready for Reset.
//
// What a Record points to is either the batch itself (codec None) or the
// Reader's buffer: keys, values and what headers hold stay until the next
// Reset, as long as the batch's bytes are left alone; the slice of headers
// itself only until the next Next or Reset.
type Reader struct {
	header  Header
	rest    []byte // encoded records ahead
	next    int32  // index of the next record
	err     error
	buf     []byte // decompressed records
	headers []RecordHeader
}

// Reset makes the Reader start on a batch, which it validates (Validate, with
// its errors) and decompresses. A failure is smq.ErrTooLarge if the records are
// more than MaxDecompressedSize, smq.ErrCorrupt if they cannot be decompressed;
// Next then gives nothing.
func (r *Reader) Reset(batch []byte) error {
	if cap(r.buf) > maxPooled {
		r.buf = nil
	}
	*r = Reader{buf: r.buf, headers: r.headers}
	r.header, r.err = Validate(batch)
	if r.err != nil {
		return r.err
	}
	r.rest = batch[HeaderSize:]
	if codec := r.header.Codec(); codec != None {
		out, err := codec.decompress(r.buf, r.rest, MaxDecompressedSize)
		if err != nil {
			r.err = err
			return err
		}
		r.buf, r.rest = out, out
	}
	return nil
}

// Header is the header of the batch at hand.
func (r *Reader) Header() Header { return r.header }

// Err is what ended the iteration before the batch's end, or nil. It is an
// smq.ErrCorrupt for records that contradict themselves, an smq.ErrTooLarge
// for one with more than MaxHeaders headers.
func (r *Reader) Err() error { return r.err }

// Next gives the next message, or false at the end and after a failure (Err).
// Its size is bounded by the batch's only: a message of another producer may
// exceed smq.MaxMessageSize.
func (r *Reader) Next() (Record, bool) {
	if r.err != nil {
		return Record{}, false
	}
	if r.next >= r.header.Count {
		if len(r.rest) > 0 {
			r.fail("bytes behind the last")
		}
		return Record{}, false
	}
	c := cursor{p: r.rest}
	body := c.take(c.varint())
	if c.failed {
		return r.fail("cut short")
	}
	r.rest = c.p
	return r.decode(cursor{p: body})
}

// decode reads one record, all of whose bytes c holds.
func (r *Reader) decode(c cursor) (Record, bool) {
	c.take(1) // attributes, unused
	rec := Record{Timestamp: r.header.BaseTimestamp + c.varint()}
	delta := c.varint()
	rec.Key = c.bytes()
	rec.Value = c.bytes()
	n := c.varint()
	switch {
	case c.failed || n < 0 || n > int64(len(c.p))/2: // a header is at least two bytes
		return r.fail("malformed")
	case delta != int64(r.next):
		return r.fail("out of order")
	case n > MaxHeaders:
		r.err = fmt.Errorf("record %d of %d: %d headers: %w, the limit is %d", r.next, r.header.Count, n, smq.ErrTooLarge, MaxHeaders)
		return Record{}, false
	}
	if n > 0 {
		rec.Headers = r.decodeHeaders(&c, int(n))
	}
	if c.failed || len(c.p) > 0 {
		return r.fail("malformed")
	}
	rec.Offset = r.header.BaseOffset + delta
	r.next++
	return rec, true
}

func (r *Reader) decodeHeaders(c *cursor, n int) []RecordHeader {
	r.headers = r.headers[:0]
	for range n {
		key := c.take(c.varint()) // never null
		r.headers = append(r.headers, RecordHeader{Key: key, Value: c.bytes()})
	}
	return r.headers
}

func (r *Reader) fail(what string) (Record, bool) {
	r.err = fmt.Errorf("%w record %d of %d: %s", smq.ErrCorrupt, r.next, r.header.Count, what)
	return Record{}, false
}

// cursor reads from the front of p. After a failure all that it gives is empty.
type cursor struct {
	p      []byte
	failed bool
}

func (c *cursor) varint() int64 {
	if len(c.p) > 0 && c.p[0] < 0x80 { // the common case, made to be inlined
		v := int64(c.p[0]>>1) ^ -int64(c.p[0]&1)
		c.p = c.p[1:]
		return v
	}
	return c.longVarint()
}

func (c *cursor) longVarint() int64 {
	v, n := binary.Varint(c.p)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.p = c.p[n:]
	return v
}

// bytes reads a length and that many bytes; nil for the length -1.
func (c *cursor) bytes() []byte {
	n := c.varint()
	if n == -1 {
		return nil
	}
	return c.take(n)
}

// take gives the next n bytes, with no room behind them to append into.
func (c *cursor) take(n int64) []byte {
	if n < 0 || n > int64(len(c.p)) {
		c.fail()
		return nil
	}
	b := c.p[:n:n]
	c.p = c.p[n:]
	return b
}

func (c *cursor) fail() { c.p, c.failed = nil, true }
