package record_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
)

func readFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "java", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Batches of Kafka's own client, in its framing of each codec.
func TestReadsBatchesOfJavaClient(t *testing.T) {
	for _, codec := range allCodecs {
		t.Run(codec.String(), func(t *testing.T) {
			batch := readFixture(t, codec.String()+".batch")
			h, err := record.Validate(batch)
			if err != nil {
				t.Fatal(err)
			}
			n := 600
			if codec == record.None {
				n = 40
			}
			want := record.Header{
				BaseOffset: 1000, Length: int32(len(batch) - 12), LeaderEpoch: 7, Magic: 2, CRC: h.CRC,
				Attributes: int16(codec), LastOffsetDelta: int32(n - 1),
				BaseTimestamp: 1_700_000_000_000 - 50, MaxTimestamp: 1_700_000_000_000 + 50,
				ProducerID: 42, ProducerEpoch: 3, BaseSequence: 11, Count: int32(n),
			}
			if h != want {
				t.Errorf("header %+v\nwant   %+v", h, want)
			}
			if h.LastSequence() != int32(11+n-1) || h.LastOffset() != int64(1000+n-1) || h.Codec() != codec {
				t.Errorf("last sequence %d, last offset %d, codec %v", h.LastSequence(), h.LastOffset(), h.Codec())
			}
			checkSample(t, batch, 1000, n)
		})
	}
}

// Uncompressed there is only one way to write a batch.
func TestBuildsTheBytesOfJavaClient(t *testing.T) {
	batch := sampleBatch(t, record.None, 40)
	record.Patch(batch, 1000, 7)
	if want := readFixture(t, "none.batch"); !bytes.Equal(batch, want) {
		t.Errorf("built\n%x\nwant\n%x", batch, want)
	}
}

func TestMurmur2OfJavaClient(t *testing.T) {
	lines := bufio.NewScanner(bytes.NewReader(readFixture(t, "murmur2.txt")))
	n := 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		text, numbers, _ := strings.Cut(lines.Text(), " ")
		key, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(record.Murmur2(key), record.Partition(key, 64), record.Partition(key, 1_000_000))
		if got != numbers {
			t.Errorf("key %x: %s, want %s", key, got, numbers)
		}
		n++
	}
	if lines.Err() != nil || n != 200 {
		t.Errorf("%d vectors, %v", n, lines.Err())
	}
}
