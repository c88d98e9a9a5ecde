package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/seaweedmq/smq/lib/smq"
)

// MaxDecompressedSize bounds what a batch's records may be, in bytes, when
// decompressed: eight messages of the largest size. Builders stay below
// smq.MaxBatchSize even before compression; producers of other makes fill a
// batch by what its compressed size will be, and so get further.
const MaxDecompressedSize = 8 * smq.MaxMessageSize

var (
	gzipReaders = sync.Pool{New: func() any { return &gzipReader{} }}
	// The zstd decoder refuses a frame whose content size exceeds its limit, and
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
