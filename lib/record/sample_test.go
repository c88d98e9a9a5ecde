package record_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
)

var allCodecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}

// sampleMessage is the message i that testdata/java/Generate.java makes too:
// null, empty and filled keys and values, headers with null values, timestamps
// that go back.
func sampleMessage(i int) record.Record {
	m := record.Record{Timestamp: 1_700_000_000_000 + int64(i*37%101) - 50}
	switch i % 5 {
	case 0:
	case 1:
		m.Key = []byte{}
	default:
		m.Key = fmt.Appendf(nil, "key-%d", i)
	}
	switch i % 7 {
	case 0:
	case 1:
		m.Value = []byte{}
	default:
		m.Value = []byte(strings.Repeat(fmt.Sprintf("message %d ", i), i%50))
	}
	for j := range i % 3 {
		h := record.RecordHeader{Key: fmt.Appendf(nil, "hé%d", j)}
		if j != 1 {
			h.Value = fmt.Appendf(nil, "v%d", i)
		}
		m.Headers = append(m.Headers, h)
	}
	return m
}

// sampleBatch builds the first n sample messages into a batch with the
// producer fields of the fixtures.
func sampleBatch(t testing.TB, codec record.Codec, n int) []byte {
	t.Helper()
	b := record.NewBuilder(codec)
	for i := range n {
		m := sampleMessage(i)
		if err := b.Append(m.Timestamp, m.Key, m.Value, m.Headers); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Finish(nil, 42, 3, 11)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// checkSample reads a batch and compares it with the first n sample messages,
// numbered from offset base.
func checkSample(t *testing.T, batch []byte, base int64, n int) {
	t.Helper()
	var r record.Reader
	if err := r.Reset(batch); err != nil {
		t.Fatal(err)
	}
	i := 0
	for m, ok := r.Next(); ok; m, ok = r.Next() {
		want := sampleMessage(i)
		want.Offset = base + int64(i)
		if diff := compare(m, want); diff != "" {
			t.Fatalf("message %d: %s", i, diff)
		}
		i++
	}
	if err := r.Err(); err != nil || i != n {
		t.Fatalf("%d messages, then %v; want %d and no error", i, err, n)
	}
}

// compare tells how two messages differ; null and empty are different.
func compare(got, want record.Record) string {
	switch {
	case got.Offset != want.Offset:
		return fmt.Sprintf("offset %d, want %d", got.Offset, want.Offset)
	case got.Timestamp != want.Timestamp:
		return fmt.Sprintf("timestamp %d, want %d", got.Timestamp, want.Timestamp)
	case !same(got.Key, want.Key):
		return fmt.Sprintf("key %#v, want %#v", got.Key, want.Key)
	case !same(got.Value, want.Value):
		return fmt.Sprintf("value %#v, want %#v", got.Value, want.Value)
	case len(got.Headers) != len(want.Headers):
		return fmt.Sprintf("%d headers, want %d", len(got.Headers), len(want.Headers))
	}
	for i, h := range got.Headers {
		w := want.Headers[i]
		if !bytes.Equal(h.Key, w.Key) || !same(h.Value, w.Value) {
			return fmt.Sprintf("header %d %q=%#v, want %q=%#v", i, h.Key, h.Value, w.Key, w.Value)
		}
	}
	return ""
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// rawBatch makes a batch around encoded records, which may be anything, with a
// length and a CRC that match.
func rawBatch(attributes int16, count int32, records []byte) []byte {
	h := record.Header{
		Length: int32(record.HeaderSize - 12 + len(records)), LeaderEpoch: -1, Magic: 2, Attributes: attributes,
		LastOffsetDelta: count - 1, BaseTimestamp: 1000, MaxTimestamp: 1000,
		ProducerID: record.NoProducerID, ProducerEpoch: record.NoProducerEpoch, BaseSequence: record.NoSequence, Count: count,
	}
	return sign(append(h.AppendTo(nil), records...))
}

// sign sets the CRC, computed apart from the package's own way.
func sign(batch []byte) []byte {
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

// message encodes one record from its fields, its length aside.
func message(fields ...any) []byte {
	var body []byte
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			body = binary.AppendVarint(body, int64(f))
		case string:
			body = append(body, f...)
		}
	}
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}
