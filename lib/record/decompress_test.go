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
	out, err := c.compress(make([]byte, 3, 100), src)
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

// frameLZ4 makes a frame with the given flags and block size byte around what
// follows its header.
func frameLZ4(flags, blockSize byte, rest ...byte) []byte {
	return append([]byte{0x04, 0x22, 0x4d, 0x18, flags, blockSize, 0}, rest...)
}

func TestLZ4Frames(t *testing.T) {
	stored := []byte{3, 0, 0, 0x80, 'a', 'b', 'c'}
	end := []byte{0, 0, 0, 0}
	sum := []byte{1, 2, 3, 4}
	size := make([]byte, 8)
	// A literal, then a copy of it, 255 bytes for each byte of length.
	dense := append([]byte{0x1f, 'x', 1, 0}, bytes.Repeat([]byte{255}, 1000)...)
	dense = append(dense, 0, 0x50, 'e', 'n', 'd', '.', '.')
	for name, tt := range map[string]struct {
		frame []byte
		want  int // bytes, or -1 for a corrupt frame
	}{
		"stored block":                {frameLZ4(0x60, 0x40, slices.Concat(stored, stored, end)...), 6},
		"no block":                    {frameLZ4(0x60, 0x40, end...), 0},
		"block checksums":             {frameLZ4(0x70, 0x40, slices.Concat(stored, sum, stored, sum, end)...), 6},
		"content checksum":            {frameLZ4(0x64, 0x40, slices.Concat(stored, end, sum)...), 3},
		"content size":                {frameLZ4(0x68, 0x40, slices.Concat(size, stored, end)...), 3},
		"densest block":               {frameLZ4(0x60, 0x70, slices.Concat(binary.LittleEndian.AppendUint32(nil, uint32(len(dense))), dense, end)...), 1 + 19 + 255*1000 + 5},
		"block larger than its class": {frameLZ4(0x60, 0x40, slices.Concat(binary.LittleEndian.AppendUint32(nil, uint32(len(dense))), dense, end)...), -1},
		"dependent blocks":            {frameLZ4(0x40, 0x40, slices.Concat(stored, end)...), -1},
		"dictionary":                  {frameLZ4(0x61, 0x40, slices.Concat(stored, end)...), -1},
		"version 0":                   {frameLZ4(0x20, 0x40, slices.Concat(stored, end)...), -1},
		"block class 3":               {frameLZ4(0x60, 0x30, slices.Concat(stored, end)...), -1},
		"block class 8":               {frameLZ4(0x60, 0x80, slices.Concat(stored, end)...), -1},
		"no end":                      {frameLZ4(0x60, 0x40, stored...), -1},
		"no block checksum":           {frameLZ4(0x70, 0x40, stored...), -1},
		"no content checksum":         {frameLZ4(0x64, 0x40, slices.Concat(stored, end)...), -1},
		"content size cut short":      {frameLZ4(0x68, 0x40, end...), -1},
		"block cut short":             {frameLZ4(0x60, 0x40, 9, 0, 0, 0x80, 'a'), -1},
		"stored block of 64 KiB + 1":  {frameLZ4(0x60, 0x40, slices.Concat([]byte{1, 0, 1, 0x80}, make([]byte, 1<<16+1), end)...), -1},
		"copy from before the block":  {frameLZ4(0x60, 0x40, slices.Concat(stored, []byte{9, 0, 0, 0, 0x00, 1, 0, 0x50, 'e', 'n', 'd', '.', '.'}, end)...), -1},
		"second frame":                {slices.Concat(frameLZ4(0x60, 0x40, end...), frameLZ4(0x60, 0x40, end...)), -1},
		"skippable frame":             {[]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, -1},
		"legacy frame":                {[]byte{0x02, 0x21, 0x4c, 0x18, 0, 0, 0, 0}, -1},
	} {
		out, err := LZ4.decompress(nil, tt.frame, 1<<20)
		if tt.want < 0 && !errors.Is(err, smq.ErrCorrupt) || tt.want >= 0 && (err != nil || len(out) != tt.want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(out), err, tt.want)
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
	const copies = 10_000
	block := binary.AppendUvarint(nil, 1+64*copies)
	block = append(block, 0, 'x')                                           // one literal byte
	block = append(block, bytes.Repeat([]byte{63<<2 | 2, 1, 0}, copies)...) // 64 bytes, from one back
	if out, err := Snappy.decompress(nil, block, 1<<20); err != nil || len(out) != 1+64*copies {
		t.Errorf("%d bytes from %d, %v", len(out), len(block), err)
	}
}

func TestHugeBuffersAreNotPooled(t *testing.T) {
	huge := &buffer{make([]byte, 0, maxPooled+1)}
	putBuffer(huge)
	for range 10 {
		if getBuffer() == huge {
			t.Fatal("it came back")
		}
	}
}

func TestReaderLetsGoOfHugeBuffers(t *testing.T) {
	b := NewBuilder(Snappy)
	var r Reader
	for _, size := range []int{maxPooled + 1, 10_000} {
		if err := b.Append(0, nil, make([]byte, size), nil); err != nil {
			t.Fatal(err)
		}
		batch, err := b.Finish(nil, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Reset(batch); err != nil {
			t.Fatal(err)
		}
		if m, ok := r.Next(); !ok || len(m.Value) != size {
			t.Fatalf("%d bytes, %v; want %d", len(m.Value), r.Err(), size)
		}
	}
	if cap(r.buf) > maxPooled {
		t.Errorf("a buffer of %d bytes is kept after a small batch", cap(r.buf))
	}
}
