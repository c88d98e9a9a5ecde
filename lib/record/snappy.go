package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/seaweedmq/smq/lib/smq"
)

// Java's clients cut snappy into blocks: this header, then for each block its
// length (4 bytes, big-endian) and a raw block of its own.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

// xerialHeaderSize is the magic, a version and the oldest compatible version,
// 4 bytes each. Neither has ever been other than 1.
const xerialHeaderSize = 16

// maxSnappyRatio is what a raw block can expand to: its densest element makes
// 64 bytes of 3.
const maxSnappyRatio = 22

var errSnappy = errors.New("malformed snappy data")

// unsnappy appends src, decompressed, to dst; src is one raw block or framed
// as Java's clients do. A raw block cannot be mistaken: the magic would be its
// length followed by a copy of what is not there yet.
func unsnappy(dst, src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerialMagic) {
		return appendSnappyBlock(dst, src, limit)
	}
	if len(src) < xerialHeaderSize {
		return nil, errSnappy
	}
	src = src[xerialHeaderSize:]
	var err error
	for len(src) > 0 {
		if len(src) < 4 {
			return nil, errSnappy
		}
		n := binary.BigEndian.Uint32(src)
		src = src[4:]
		if uint64(n) > uint64(len(src)) {
			return nil, errSnappy
		}
		if dst, err = appendSnappyBlock(dst, src[:n], limit); err != nil {
			return nil, err
		}
		src = src[n:]
	}
	return dst, nil
}

func appendSnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	switch {
	case err != nil:
		return nil, err
	case n > maxSnappyRatio*len(block):
		return nil, errSnappy
	case n > limit-len(dst):
		return nil, smq.ErrTooLarge
	}
	start := len(dst)
	dst = slices.Grow(dst, n)[:start+n]
	if _, err := s2.Decode(dst[start:start+n:start+n], block); err != nil {
		return nil, err
	}
	return dst, nil
}
