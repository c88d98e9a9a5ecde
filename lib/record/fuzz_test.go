package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// known reports whether err is one that the package promises.
func known(err error) bool {
	return errors.Is(err, smq.ErrCorrupt) || errors.Is(err, smq.ErrTooLarge) || errors.Is(err, smq.ErrInvalid)
}

// repair makes length and CRC of b match, so that a fuzzer gets past them.
func repair(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < record.HeaderSize {
		return b
	}
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	return sign(b)
}

// FuzzValidate: whatever is let through has a header that reads and writes
// back as the same bytes, and stays valid when patched.
func FuzzValidate(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{bytes.Clone(b), repair(b)} {
			h, err := record.Validate(b)
			if err != nil {
				if !known(err) {
					t.Fatalf("unknown kind of error: %v", err)
				}
				continue
			}
			if h.Size() != len(b) || !bytes.Equal(h.AppendTo(nil), b[:record.HeaderSize]) || h.Check() != nil {
				t.Fatalf("%+v of %d bytes, %v", h, len(b), h.Check())
			}
			record.Patch(b, 1, 2)
			record.Resequence(b, 3, 4)
			h.BaseOffset, h.LeaderEpoch, h.ProducerEpoch, h.BaseSequence = 1, 2, 3, 4
			got, err := record.Validate(b)
			h.CRC = got.CRC
			if err != nil || got != h {
				t.Fatalf("patched %+v, %v; want %+v", got, err, h)
			}
		}
	})
}

// FuzzReader: whatever the records, they are either read, all of them, or
// refused with a known error.
func FuzzReader(f *testing.F) {
	var r record.Reader
	f.Fuzz(func(t *testing.T, codec byte, count int32, records []byte) {
		batch := rawBatch(int16(codec&7), count, records)
		if err := r.Reset(batch); err != nil {
			if !known(err) {
				t.Fatalf("unknown kind of error: %v", err)
			}
			return
		}
		var n int32
		size := 0
		for m, ok := r.Next(); ok; m, ok = r.Next() {
			if m.Offset != int64(n) {
				t.Fatalf("message %d has offset %d", n, m.Offset)
			}
			n++
			size += len(m.Key) + len(m.Value)
		}
		if r.Err() == nil && n != count || r.Err() != nil && !known(r.Err()) {
			t.Fatalf("%d messages of %d, %v", n, count, r.Err())
		}
		if size > record.MaxDecompressedSize {
			t.Fatalf("%d bytes were decompressed", size)
		}
	})
}

// FuzzRoundTrip: what can be read can be built again, by each codec, and reads
// the same.
func FuzzRoundTrip(f *testing.F) {
	f.Fuzz(func(t *testing.T, batch []byte) {
		var r record.Reader
		if r.Reset(repair(batch)) != nil {
			return
		}
		var messages []record.Record
		for m, ok := r.Next(); ok; m, ok = r.Next() {
			m.Headers = slices.Clone(m.Headers)
			messages = append(messages, m)
		}
		if len(messages) == 0 {
			return
		}
		for _, codec := range allCodecs {
			again := rebuild(t, codec, messages)
			if again == nil {
				return
			}
			for i, want := range messages {
				want.Offset = int64(i)
				m, ok := again.Next()
				if diff := compare(m, want); !ok || diff != "" {
					t.Fatalf("%v, message %d: %s (%v)", codec, i, diff, again.Err())
				}
			}
			if _, ok := again.Next(); ok || again.Err() != nil {
				t.Fatalf("%v: more messages, or %v", codec, again.Err())
			}
		}
	})
}

// rebuild gives nil for messages that only another producer can have put into
// one batch, where they are compressed to less than its limit.
func rebuild(t *testing.T, codec record.Codec, messages []record.Record) *record.Reader {
	t.Helper()
	b := record.NewBuilder(codec)
	for i, m := range messages {
		err := b.Append(m.Timestamp, m.Key, m.Value, m.Headers)
		if errors.Is(err, record.ErrFull) || errors.Is(err, smq.ErrTooLarge) {
			return nil
		}
		if err != nil {
			t.Fatalf("%v, message %d: %v", codec, i, err)
		}
	}
	batch, err := b.Finish(nil, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	r := new(record.Reader)
	if err := r.Reset(batch); err != nil {
		t.Fatalf("%v: %v", codec, err)
	}
	return r
}
