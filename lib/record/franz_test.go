package record_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/seaweedmq/smq/lib/record"
)

var franzCodecs = map[record.Codec]kgo.CompressionCodec{
	record.Gzip:   kgo.GzipCompression(),
	record.Snappy: kgo.SnappyCompression(),
	record.LZ4:    kgo.Lz4Compression(),
	record.Zstd:   kgo.ZstdCompression(),
}

func toFranz(m record.Record, i int) kmsg.Record {
	k := kmsg.Record{TimestampDelta64: m.Timestamp - sampleMessage(0).Timestamp, OffsetDelta: int32(i), Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		k.Headers = append(k.Headers, kmsg.Header{Key: string(h.Key), Value: h.Value})
	}
	// The length is what the encoding takes without it; encoded as 0 it is
	// one byte.
	k.Length = int32(len(k.AppendTo(nil)) - 1)
	return k
}

// franzBatch is sampleBatch with franz-go's encoder and compressors.
func franzBatch(t testing.TB, codec record.Codec, n int) []byte {
	t.Helper()
	var records []byte
	for i := range n {
		k := toFranz(sampleMessage(i), i)
		records = k.AppendTo(records)
	}
	if codec != record.None {
		c, err := kgo.DefaultCompressor(franzCodecs[codec])
		if err != nil {
			t.Fatal(err)
		}
		packed, used := c.Compress(new(bytes.Buffer), records)
		if record.Codec(used) != codec {
			t.Fatalf("codec %v was used", used)
		}
		records = packed
	}
	b := kmsg.RecordBatch{
		FirstOffset: 1000, Length: int32(49 + len(records)), PartitionLeaderEpoch: 7, Magic: 2, Attributes: int16(codec),
		LastOffsetDelta: int32(n - 1), FirstTimestamp: sampleMessage(0).Timestamp, MaxTimestamp: 1_700_000_000_050,
		ProducerID: 42, ProducerEpoch: 3, FirstSequence: 11, NumRecords: int32(n), Records: records,
	}
	return sign(b.AppendTo(nil))
}

func TestReadsBatchesOfFranz(t *testing.T) {
	for _, codec := range allCodecs {
		t.Run(codec.String(), func(t *testing.T) { checkSample(t, franzBatch(t, codec, 600), 1000, 600) })
	}
}

func TestFranzReadsBatches(t *testing.T) {
	for _, codec := range allCodecs {
		t.Run(codec.String(), func(t *testing.T) {
			const n = 600
			batch := sampleBatch(t, codec, n)
			record.Patch(batch, 1000, 7)
			var b kmsg.RecordBatch
			if err := b.ReadFrom(batch); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(sign(bytes.Clone(batch)), batch) {
				t.Error("the CRC does not match")
			}
			if record.Codec(b.Attributes) != codec {
				t.Fatalf("attributes %x", b.Attributes)
			}
			checkFranzHeader(t, b, n)
			records, err := kgo.DefaultDecompressor().Decompress(b.Records, kgo.CompressionCodecType(codec))
			if err != nil {
				t.Fatal(err)
			}
			checkFranzRecords(t, records, n)
		})
	}
}

func checkFranzHeader(t *testing.T, b kmsg.RecordBatch, n int) {
	t.Helper()
	got := fmt.Sprint(b.FirstOffset, b.PartitionLeaderEpoch, b.Magic, b.LastOffsetDelta, b.FirstTimestamp, b.MaxTimestamp,
		b.ProducerID, b.ProducerEpoch, b.FirstSequence, b.NumRecords)
	want := fmt.Sprint(1000, 7, 2, n-1, sampleMessage(0).Timestamp, int64(1_700_000_000_050), 42, 3, 11, n)
	if got != want {
		t.Errorf("header %s, want %s", got, want)
	}
}

func checkFranzRecords(t *testing.T, records []byte, n int) {
	t.Helper()
	for i := range n {
		var k kmsg.Record
		if err := k.ReadFrom(records); err != nil {
			t.Fatal(err)
		}
		want := toFranz(sampleMessage(i), i)
		encoded := want.AppendTo(nil)
		if !bytes.HasPrefix(records, encoded) {
			t.Fatalf("record %d is %+v, want %+v", i, k, want)
		}
		records = records[len(encoded):]
	}
	if len(records) > 0 {
		t.Errorf("%d bytes behind the last record", len(records))
	}
}

func TestPartitionOfFranz(t *testing.T) {
	p := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		key := make([]byte, i%67)
		for j := range key {
			key[j] = byte(random.Uint32())
		}
		n := 1 + random.IntN(1_000_000)
		if got, want := record.Partition(key, int32(n)), p.Partition(&kgo.Record{Key: key}, n); int(got) != want {
			t.Fatalf("key %x of %d: partition %d, want %d", key, n, got, want)
		}
	}
}
