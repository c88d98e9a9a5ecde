package record

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/seaweedmq/smq/lib/smq"
)

// zstdWindow is how far back zstd looks. More costs memory in every encoder
// and finds little more among messages of one batch.
const zstdWindow = 1 << 20

// The compressors are large (gzip 1 MB, zstd 7 MB) and are needed for the
// moment of closing a batch, so all Builders share a few.
var (
	gzipWriters = sync.Pool{New: func() any {
		return &streamWriter{w: gzip.NewWriter(io.Discard)}
	}}
	lz4Writers = sync.Pool{New: func() any {
		w := lz4.NewWriter(io.Discard)
		// Java's clients read independent blocks only, which is the default.
		// The batch's CRC makes a checksum of the content needless.
		must(w.Apply(lz4.ConcurrencyOption(1), lz4.BlockSizeOption(lz4.Block256Kb), lz4.ChecksumOption(false)))
		return &streamWriter{w: w}
	}}
	zstdEncoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(zstdWindow), zstd.WithZeroFrames(true))
		must(err)
		return e
	}}
)

// must is for options that are constants of this package.
func must(err error) {
	if err != nil {
		panic("record: codec options: " + err.Error())
	}
}

// compress appends src, compressed, to dst[:0] or to a larger slice.
func (c Codec) compress(dst, src []byte) ([]byte, error) {
	switch c {
	case Gzip:
		return compressStream(&gzipWriters, dst, src)
	case Snappy:
		return s2.EncodeSnappy(dst[:cap(dst)], src), nil
	case LZ4:
		return compressStream(&lz4Writers, dst, src)
	case Zstd:
		e := zstdEncoders.Get().(*zstd.Encoder)
		defer zstdEncoders.Put(e)
		return e.EncodeAll(src, dst[:0]), nil
	}
	return nil, fmt.Errorf("compress records: %w %v", smq.ErrInvalid, c)
}

// streamWriter is a compressor that writes to a stream, and the stream's end:
// bytes in memory.
type streamWriter struct {
	w interface {
		io.WriteCloser
		Reset(io.Writer)
	}
	out []byte
}

// Write takes what the compressor gives.
func (s *streamWriter) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	return len(p), nil
}

func compressStream(pool *sync.Pool, dst, src []byte) ([]byte, error) {
	s := pool.Get().(*streamWriter)
	defer pool.Put(s)
	s.out = dst[:0]
	defer func() { s.out = nil }()
	s.w.Reset(s)
	if _, err := s.w.Write(src); err != nil {
		return nil, fmt.Errorf("compress records: %w", err)
	}
	if err := s.w.Close(); err != nil {
		return nil, fmt.Errorf("compress records: %w", err)
	}
	return s.out, nil
}

// maxPooled is the capacity up to which buffers are kept for later: an
// occasional huge batch does not stay in memory.
const maxPooled = 4 << 20

// buffer is a pooled byte slice.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func getBuffer() *buffer { return buffers.Get().(*buffer) }

func putBuffer(x *buffer) {
	if cap(x.b) > maxPooled {
		return
	}
	x.b = x.b[:0]
	buffers.Put(x)
}
