package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/seaweedmq/smq/lib/smq"
)

// MaxDecompressedSize bounds what a batch's records may be, in bytes, when
// decompressed: eight messages of the largest size. Builders stay below
// smq.MaxBatchSize even before compression; producers of other makes fill a
// batch by what its compressed size will be, and so get further.
const MaxDecompressedSize = 8 * smq.MaxMessageSize

var (
	gzipReaders = sync.Pool{New: func() any { return &gzipReader{} }}
	lz4Readers  = sync.Pool{New: func() any {
		r := &lz4Reader{r: lz4.NewReader(nil)}
		must(r.r.Apply(lz4.ConcurrencyOption(1)))
		return r
	}}
	// The decoder refuses a frame whose content size exceeds its limit, and
	// never reserves more than what the rest of its input can decode to.
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDecompressedSize))
		must(err)
		return d
	}}
)

type gzipReader struct {
	src bytes.Reader
	r   gzip.Reader
}

type lz4Reader struct {
	src bytes.Reader
	r   *lz4.Reader
}

// decompress writes src, decompressed, to dst[:0] or to a larger slice, at
// most limit bytes (which is not above MaxDecompressedSize). The error is
// smq.ErrTooLarge or smq.ErrCorrupt.
func (c Codec) decompress(dst, src []byte, limit int) ([]byte, error) {
	var out []byte
	var err error
	switch c {
	case Gzip:
		out, err = ungzip(dst[:0], src, limit)
	case Snappy:
		out, err = unsnappy(dst[:0], src, limit)
	case LZ4:
		out, err = unlz4(dst[:0], src, limit)
	case Zstd:
		out, err = unzstd(dst[:0], src, limit)
	default:
		err = errors.New("unknown codec")
	}
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, smq.ErrTooLarge):
		return nil, fmt.Errorf("decompress %v records: %w, the limit is %d bytes", c, smq.ErrTooLarge, limit)
	}
	return nil, fmt.Errorf("decompress %v records: %w: %w", c, smq.ErrCorrupt, err)
}

func ungzip(dst, src []byte, limit int) ([]byte, error) {
	g := gzipReaders.Get().(*gzipReader)
	defer gzipReaders.Put(g)
	g.src.Reset(src)
	defer g.src.Reset(nil)
	if err := g.r.Reset(&g.src); err != nil {
		return nil, err
	}
	return readAll(dst, &g.r, len(src), limit)
}

// The start of an lz4 frame: its magic number, little-endian, then flags, of
// which bits 6-7 are the version and bit 5 tells that blocks are independent.
const (
	lz4Magic    = 0x184d2204
	lz4FlagMask = 0xe0
	lz4Flags    = 0x60
)

// unlz4 reads one frame of independent blocks and nothing behind it, as Java's
// clients do. Dependent blocks would let a batch refer to what the pooled
// reader decompressed before.
func unlz4(dst, src []byte, limit int) ([]byte, error) {
	if len(src) < 5 || binary.LittleEndian.Uint32(src) != lz4Magic || src[4]&lz4FlagMask != lz4Flags {
		return nil, errors.New("not an lz4 frame of independent blocks")
	}
	l := lz4Readers.Get().(*lz4Reader)
	defer lz4Readers.Put(l)
	l.src.Reset(src)
	defer l.src.Reset(nil)
	l.r.Reset(&l.src)
	out, err := readAll(dst, l.r, len(src), limit)
	if err == nil && l.src.Len() > 0 {
		return nil, fmt.Errorf("%d bytes behind the frame", l.src.Len())
	}
	return out, err
}

func unzstd(dst, src []byte, limit int) ([]byte, error) {
	if len(src) == 0 { // which the decoder takes for a stream of no frames
		return nil, io.ErrUnexpectedEOF
	}
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(d)
	out, err := d.DecodeAll(src, dst)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(out) > limit {
		return nil, smq.ErrTooLarge
	}
	return out, err
}

// readAll appends what r gives to dst, growing step by step: first for hint
// bytes of input, then by doubling, and to no more than the limit and one byte.
func readAll(dst []byte, r io.Reader, hint, limit int) ([]byte, error) {
	step := max(4*hint, 512)
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(max(step, len(dst)), limit+1-len(dst)))
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > limit:
			return nil, smq.ErrTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, err
		}
	}
}
