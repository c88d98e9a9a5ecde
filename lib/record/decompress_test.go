package record

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/seaweedmq/smq/lib/smq"
)

var compressing = []Codec{Gzip, Snappy, LZ4, Zstd}

func compressed(t *testing.T, c Codec, src []byte) []byte {
	t.Helper()
	out, err := c.compress(nil, src)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// text is n bytes that shrink a little.
func text(n int) []byte {
	random := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefgh"[random.IntN(8)]
	}
	return b
}

func TestDecompressUpToTheLimit(t *testing.T) {
	for _, c := range compressing {
		for _, n := range []int{0, 1, 511, 512, 70_000, 1 << 20, 3<<20 + 1} {
			src := text(n)
			packed := compressed(t, c, src)
			for _, dst := range [][]byte{nil, make([]byte, 7, 4096), make([]byte, 5<<20)} {
				out, err := c.decompress(dst, packed, n)
				if err != nil || !bytes.Equal(out, src) {
					t.Errorf("%v, %d bytes: %d bytes, %v", c, n, len(out), err)
				}
			}
			if n == 0 {
				continue
			}
			if _, err := c.decompress(nil, packed, n-1); !errors.Is(err, smq.ErrTooLarge) {
				t.Errorf("%v, %d bytes, limit one less: %v", c, n, err)
			}
		}
	}
}

func TestDecompressCorrupt(t *testing.T) {
	src := text(100_000)
	for _, c := range compressing {
		packed := compressed(t, c, src)
		for name, b := range map[string][]byte{
			"empty":             nil,
			"one byte":          packed[:1],
			"half":              packed[:len(packed)/2],
			"last byte missing": packed[:len(packed)-1],
			"trailing byte":     append(bytes.Clone(packed), 0x55),
			"noise":             []byte("this is not what it should be, whatever the codec"),
		} {
			if out, err := c.decompress(nil, b, 1<<20); !errors.Is(err, smq.ErrCorrupt) || out != nil {
				t.Errorf("%v, %s: %d bytes, %v", c, name, len(out), err)
			}
		}
		if out, err := c.decompress(nil, packed, 1<<20); err != nil || !bytes.Equal(out, src) {
			t.Errorf("%v, after failures: %v", c, err)
		}
	}
	if _, err := Codec(6).decompress(nil, []byte("x"), 1); !errors.Is(err, smq.ErrCorrupt) {
		t.Errorf("codec 6: %v", err)
	}
}

func TestBombs(t *testing.T) {
	const limit = 1 << 20
	zeros := make([]byte, 8*limit)
	for _, c := range compressing {
		packed := compressed(t, c, zeros)
		if _, err := c.decompress(nil, packed, limit); !errors.Is(err, smq.ErrTooLarge) {
			t.Errorf("%v: %v", c, err)
		}
	}
	packed := compressed(t, Zstd, make([]byte, MaxDecompressedSize+1))
	if _, err := Zstd.decompress(nil, packed, MaxDecompressedSize); !errors.Is(err, smq.ErrTooLarge) {
		t.Errorf("%d bytes of zeros: %v", MaxDecompressedSize+1, err)
	}
}

// Several gzip members or zstd frames are one stream; empty gzip members in
// any number must not pile up on the stack.
func TestConcatenatedStreams(t *testing.T) {
	src := text(5000)
	for _, c := range []Codec{Gzip, Zstd} {
		two := slices.Concat(compressed(t, c, src[:3000]), compressed(t, c, src[3000:]))
		if out, err := c.decompress(nil, two, 5000); err != nil || !bytes.Equal(out, src) {
			t.Errorf("%v: %d bytes, %v", c, len(out), err)
		}
		if _, err := c.decompress(nil, two, 4999); !errors.Is(err, smq.ErrTooLarge) {
			t.Errorf("%v, limit one less: %v", c, err)
		}
	}
	empty := bytes.Repeat(compressed(t, Gzip, nil), 100_000)
	if out, err := Gzip.decompress(nil, empty, 10); err != nil || len(out) > 0 {
		t.Errorf("empty members: %d bytes, %v", len(out), err)
	}
}

// What other producers may send: other levels, block sizes, checksums, sizes
// that are not told.
func TestOtherEncoders(t *testing.T) {
	src := text(600_000)
	var lz, gz, zs bytes.Buffer
	w := lz4.NewWriter(&lz)
	must(w.Apply(lz4.BlockSizeOption(lz4.Block4Mb), lz4.BlockChecksumOption(true), lz4.ChecksumOption(true), lz4.SizeOption(uint64(len(src)))))
	z, err := zstd.NewWriter(&zs, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	must(err)
	g, err := gzip.NewWriterLevel(&gz, gzip.BestSpeed)
	must(err)
	for _, enc := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{w, z, g} {
		for part := range slices.Chunk(src, 100_000) { // a stream, whose size is not known at its start
			if _, err := enc.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		must(enc.Close())
	}
	for c, packed := range map[Codec][]byte{LZ4: lz.Bytes(), Zstd: zs.Bytes(), Gzip: gz.Bytes()} {
		if out, err := c.decompress(nil, packed, 1<<20); err != nil || !bytes.Equal(out, src) {
			t.Errorf("%v: %d bytes, %v", c, len(out), err)
		}
	}
}

func TestLZ4TakesOnlyIndependentBlocks(t *testing.T) {
	packed := compressed(t, LZ4, text(1000))
	for name, flags := range map[string]byte{"dependent blocks": packed[4] &^ 0x20, "version 0": packed[4] &^ 0x40} {
		b := bytes.Clone(packed)
		b[4] = flags
		if _, err := LZ4.decompress(nil, b, 1000); !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// xerial frames blocks as Java's clients do.
func xerial(blocks ...[]byte) []byte {
	out := append(bytes.Clone(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	for _, b := range blocks {
		out = binary.BigEndian.AppendUint32(out, uint32(len(b)))
		out = append(out, b...)
	}
	return out
}

func TestJavaSnappyFraming(t *testing.T) {
	src := text(100_000)
	a, b := s2.EncodeSnappy(nil, src[:60_000]), s2.EncodeSnappy(nil, src[60_000:])
	out, err := Snappy.decompress(nil, xerial(a, s2.EncodeSnappy(nil, nil), b), len(src))
	if err != nil || !bytes.Equal(out, src) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if out, err := Snappy.decompress(nil, xerial(), 10); err != nil || len(out) > 0 {
		t.Errorf("no block: %d bytes, %v", len(out), err)
	}
	if _, err := Snappy.decompress(nil, xerial(a, b), len(src)-1); !errors.Is(err, smq.ErrTooLarge) {
		t.Errorf("limit one less: %v", err)
	}
	whole := xerial(a, b)
	for name, broken := range map[string][]byte{
		"header cut short": whole[:12],
		"length cut short": append(bytes.Clone(whole), 0, 0, 0),
		"block cut short":  whole[:len(whole)-1],
		"negative length":  append(bytes.Clone(whole), 0xff, 0xff, 0xff, 0xff),
		"empty block":      append(bytes.Clone(whole), 0, 0, 0, 0),
	} {
		if _, err := Snappy.decompress(nil, broken, len(src)); !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// maxSnappyRatio must let the densest block through.
func TestDensestSnappyBlock(t *testing.T) {
	zeros := make([]byte, 10<<20)
	packed := compressed(t, Snappy, zeros)
	if out, err := Snappy.decompress(nil, packed, len(zeros)); err != nil || len(out) != len(zeros) {
		t.Errorf("%d bytes from %d, %v", len(out), len(packed), err)
	}
}
