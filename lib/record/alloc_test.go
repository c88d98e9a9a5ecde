//go:build !race

// Under the race detector sync.Pool drops at random what is put into it.

package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestBuildAllocatesNothing(t *testing.T) {
	m := sampleMessage(23)
	for _, codec := range allCodecs {
		b := record.NewBuilder(codec)
		var dst []byte
		allocs := testing.AllocsPerRun(100, func() {
			for range 200 {
				if err := b.Append(m.Timestamp, m.Key, m.Value, m.Headers); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if dst, err = b.Finish(dst[:0], 1, 2, 3); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v: %v allocations for each batch of 200 messages", codec, allocs)
		}
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	for _, codec := range allCodecs {
		for name, batch := range map[string][]byte{"own": sampleBatch(t, codec, 200), "java": readFixture(t, codec.String()+".batch")} {
			var r record.Reader
			allocs := testing.AllocsPerRun(100, func() {
				if n, err := readAll(&r, batch); n == 0 || err != nil {
					t.Fatal(n, err)
				}
			})
			if allocs != 0 {
				t.Errorf("%v of %s: %v allocations for each batch", codec, name, allocs)
			}
		}
	}
}

func TestValidateAllocatesNothing(t *testing.T) {
	batch := sampleBatch(t, record.Zstd, 200)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := record.Validate(batch); err != nil {
			t.Fatal(err)
		}
		record.Patch(batch, 7, 8)
		record.Resequence(batch, 9, 10)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestPartitioningAllocatesNothing(t *testing.T) {
	m := sampleMessage(23)
	for _, source := range []string{"key", "header:hé1"} {
		s, err := record.ParseKeySource(source)
		if err != nil {
			t.Fatal(err)
		}
		allocs := testing.AllocsPerRun(100, func() {
			key, _ := s.Key(m.Key, m.Value, m.Headers)
			record.Partition(key, 64)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", source, allocs)
		}
	}
}

// A few bytes that promise much must not make the Reader reserve it.
func TestLiesAllocateLittle(t *testing.T) {
	const huge = 100 << 20
	lies := map[string][]byte{
		"snappy":        rawBatch(2, 1, append(binary.AppendUvarint(nil, huge), 0, 0)),
		"framed snappy": rawBatch(2, 1, append([]byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x06"), append(binary.AppendUvarint(nil, huge), 0, 0)...)),
		// Magic, single segment with a content size of 4 bytes, an empty last block.
		"zstd": rawBatch(4, 1, append(binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, huge), 1, 0, 0)),
		// The same behind a frame with nothing in it.
		"zstd, second frame": rawBatch(4, 1, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0},
			append(binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, huge), 1, 0, 0)...)),
		"key length":    rawBatch(0, 1, message("\x00", 0, 0, huge, -1, 0)),
		"header count":  rawBatch(0, 1, message("\x00", 0, 0, -1, -1, huge, "\x00\x01")),
		"record length": rawBatch(0, 1, append(binary.AppendVarint(nil, huge), make([]byte, 7)...)),
		"length":        edit(rawBatch(0, 1, make([]byte, 7)), 8, binary.BigEndian.AppendUint32(nil, huge)...),
		"count":         rawBatch(1, huge/8, bytes.Repeat([]byte{0}, 10)),
	}
	// No lie: blocks of one repeated byte that make more than is allowed.
	bomb := binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, record.MaxDecompressedSize+128<<10)
	for range record.MaxDecompressedSize>>17 + 1 {
		bomb = append(bomb, 0x02, 0x00, 0x10, 'x')
	}
	bomb[len(bomb)-4] |= 1 // the last
	lies["zstd bomb"] = rawBatch(4, 1, bomb)
	for name, batch := range lies {
		var before, after runtime.MemStats
		var r record.Reader
		runtime.ReadMemStats(&before)
		_, err := readAll(&r, batch)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, smq.ErrCorrupt) && !errors.Is(err, smq.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 2<<20 {
			t.Errorf("%s: %d bytes were allocated", name, got)
		}
	}
}
