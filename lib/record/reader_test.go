package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// readAll gives how many messages r reads from batch, and its error.
func readAll(r *record.Reader, batch []byte) (int, error) {
	if err := r.Reset(batch); err != nil {
		return 0, err
	}
	n := 0
	for _, ok := r.Next(); ok; _, ok = r.Next() {
		n++
	}
	return n, r.Err()
}

func TestReaderErrors(t *testing.T) {
	varint := func(v int64) string { return string(binary.AppendVarint(nil, v)) }
	plain := message("\x00", 0, 0, -1, -1, 0)
	second := message("\x00", 0, 1, -1, -1, 0)
	tests := []struct {
		name    string
		records []byte
		count   int32
		want    int // messages before the error
	}{
		{"missing record", append(message("\x00", 0, 0, -1, 10, "0123456789", 0), 0), 2, 1},
		{"trailing byte", append(bytes.Clone(plain), 0), 1, 1},
		{"record longer than the batch", []byte(varint(100) + "\x00\x00\x00\x01\x01\x00"), 1, 0},
		{"huge record length", []byte(varint(math.MaxInt64) + "\x00\x00\x00\x01\x01\x00"), 1, 0},
		{"negative record length", []byte(varint(-7) + "\x00\x00\x00\x01\x01\x00"), 1, 0},
		{"endless varint", bytes.Repeat([]byte{0xff}, 20), 1, 0},
		{"empty record", append([]byte{0}, make([]byte, 6)...), 1, 0},
		{"byte behind the headers", message("\x00", 0, 0, -1, -1, 0, "x"), 1, 0},
		{"offset delta that repeats", bytes.Repeat(plain, 2), 2, 1},
		{"offset delta that skips", append(bytes.Clone(plain), message("\x00", 0, 2, -1, -1, 0)...), 2, 1},
		{"negative offset delta", message("\x00", 0, -1, -1, -1, 0), 1, 0},
		{"key longer than the record", message("\x00", 0, 0, 5, "key", -1, 0), 1, 0},
		{"key length -2", message("\x00", 0, 0, -2, -1, 0), 1, 0},
		{"huge value length", message("\x00", 0, 0, -1, math.MaxInt, 0), 1, 0},
		{"value that eats the next record", append(message("\x00", 0, 0, -1, 3, ""), second...), 2, 0},
		{"negative header count", message("\x00", 0, 0, -1, -1, -1), 1, 0},
		{"huge header count", message("\x00", 0, 0, -1, -1, math.MaxInt), 1, 0},
		{"more headers than bytes for them", message("\x00", 0, 0, -1, -1, 3, "\x00\x01\x00\x01\x00"), 1, 0},
		{"null header key", message("\x00", 0, 0, -1, -1, 1, -1, -1), 1, 0},
		{"header key longer than the record", message("\x00", 0, 0, -1, -1, 1, 9, -1), 1, 0},
		{"no header count", message("\x00", 0, 0, -1, 0), 1, 0},
	}
	var r record.Reader
	for _, tt := range tests {
		n, err := readAll(&r, rawBatch(0, tt.count, tt.records))
		if n != tt.want || !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("%s: %d messages, %v; want %d and a corrupt batch", tt.name, n, err, tt.want)
		}
		if _, ok := r.Next(); ok {
			t.Errorf("%s: a message after the failure", tt.name)
		}
	}
	if n, err := readAll(&r, rawBatch(0, 2, append(plain, second...))); n != 2 || err != nil {
		t.Errorf("after failures: %d messages, %v", n, err)
	}
}

func TestReaderRefusesTooManyHeaders(t *testing.T) {
	for n, want := range map[int]error{record.MaxHeaders: nil, record.MaxHeaders + 1: smq.ErrTooLarge} {
		records := message("\x00", 0, 0, -1, -1, n, strings.Repeat("\x00\x01", n))
		var r record.Reader
		if _, err := readAll(&r, rawBatch(0, 1, records)); !errors.Is(err, want) {
			t.Errorf("%d headers: %v", n, err)
		}
	}
}

// What follows a failure may well look like messages.
func TestReaderStaysFailed(t *testing.T) {
	plain := message("\x00", 0, 0, -1, -1, 0)
	var r record.Reader
	if n, err := readAll(&r, rawBatch(0, 2, append(message("\x00", 0, 0, -9, -1, 0), plain...))); n != 0 || !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("malformed first record: %d messages, %v", n, err)
	}
	if _, ok := r.Next(); ok {
		t.Error("malformed first record: the second is read")
	}
	if err := r.Reset(rawBatch(int16(record.Gzip), 1, plain)); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("not gzip: %v", err)
	}
	if _, ok := r.Next(); ok || !errors.Is(r.Err(), smq.ErrCorrupt) {
		t.Errorf("not gzip: read all the same, %v", r.Err())
	}
}

func TestReaderValidates(t *testing.T) {
	batch := sampleBatch(t, record.None, 10)
	var r record.Reader
	if _, err := readAll(&r, edit(batch, len(batch)-5, ^batch[len(batch)-5])); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("a flipped byte in a value: %v", err)
	}
	if _, ok := r.Next(); ok || !errors.Is(r.Err(), smq.ErrCorrupt) {
		t.Errorf("Next after a failed Reset: %v, %v", ok, r.Err())
	}
	if _, ok := new(record.Reader).Next(); ok {
		t.Error("the zero value has a message")
	}
}

// One Reader for batches of all codecs, before and after broken ones: nothing
// of a batch may be seen in the next.
func TestReaderIsReusable(t *testing.T) {
	var r record.Reader
	for range 2 {
		for _, codec := range allCodecs {
			batch := sampleBatch(t, codec, 500)
			cut := sign(edit(batch[:len(batch)-20], 8, binary.BigEndian.AppendUint32(nil, uint32(len(batch)-32))...))
			if n, err := readAll(&r, cut); n >= 500 || !errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("%v, cut short: %d messages, %v", codec, n, err)
			}
			if n, err := readAll(&r, batch); n != 500 || err != nil {
				t.Errorf("%v: %d messages, %v", codec, n, err)
			}
			if n, err := readAll(&r, sampleBatch(t, codec, 3)); n != 3 || err != nil {
				t.Errorf("%v, small: %d messages, %v", codec, n, err)
			}
		}
	}
}

// Appending to what a Record holds must not write into its neighbours.
func TestRecordsHaveNoRoomBehindThem(t *testing.T) {
	batch := sampleBatch(t, record.None, 30)
	before := bytes.Clone(batch)
	var r record.Reader
	if err := r.Reset(batch); err != nil {
		t.Fatal(err)
	}
	for m, ok := r.Next(); ok; m, ok = r.Next() {
		_, _ = append(m.Key, 'x'), append(m.Value, 'x')
		for _, h := range m.Headers {
			_, _ = append(h.Key, 'x'), append(h.Value, 'x')
		}
	}
	if r.Err() != nil || !bytes.Equal(batch, before) {
		t.Errorf("the batch was written to (%v)", r.Err())
	}
}

func TestKeysAndValuesStayUntilReset(t *testing.T) {
	for _, codec := range allCodecs {
		var r record.Reader
		if err := r.Reset(sampleBatch(t, codec, 200)); err != nil {
			t.Fatal(err)
		}
		var all []record.Record
		for m, ok := r.Next(); ok; m, ok = r.Next() {
			m.Headers = nil
			all = append(all, m)
		}
		for i, m := range all {
			want := sampleMessage(i)
			want.Headers, want.Offset = nil, int64(i)
			if diff := compare(m, want); diff != "" {
				t.Fatalf("%v, message %d: %s", codec, i, diff)
			}
		}
	}
}
