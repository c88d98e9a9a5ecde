package record

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/pierrec/lz4/v4"

	"github.com/seaweedmq/smq/lib/smq"
)

// An lz4 frame, little-endian: magic (4 bytes), flags (1), block size (1),
// content size (8, if flagged), dictionary id (4, if flagged), checksum of the
// header (1); blocks, each a length (4, whose top bit tells that it is stored as
// it is), data and a checksum (4, if flagged); a length of 0; a checksum of the
// content (4, if flagged).
const (
	lz4Magic = 0x184d2204

	lz4VersionMask        = 0xc0
	lz4Version            = 0x40
	lz4IndependentBlocks  = 0x20
	lz4BlockChecksums     = 0x10
	lz4ContentSize        = 0x08
	lz4ContentChecksum    = 0x04
	lz4DictionaryID       = 0x01
	lz4StoredBlock        = 1 << 31
	lz4FixedHeader        = 6
	lz4MaxBlockExpansion  = 255 // no sequence in a block is denser
	lz4SmallestBlockClass = 4   // 64 KiB; each class up to 7 is four times larger
)

var errLZ4 = errors.New("malformed lz4 frame")

// unlz4 appends src, decompressed, to dst. src is one frame of independent
// blocks with nothing behind it: what Java's clients read, and all that any
// producer makes. The frame's checksums are passed over, since the batch's own
// covers every byte of it. dst may grow by up to one block beyond the limit.
func unlz4(dst, src []byte, limit int) ([]byte, error) {
	src, blockSize, flags, err := lz4Header(src)
	if err != nil {
		return nil, err
	}
	trailer := checksumSize(flags, lz4BlockChecksums)
	for {
		if len(src) < 4 {
			return nil, errLZ4
		}
		n := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if n == 0 {
			break
		}
		size := int(n &^ lz4StoredBlock)
		if size > blockSize || size+trailer > len(src) {
			return nil, errLZ4
		}
		if dst, err = appendLZ4Block(dst, src[:size], n&lz4StoredBlock != 0, blockSize); err != nil {
			return nil, err
		}
		if len(dst) > limit {
			return nil, smq.ErrTooLarge
		}
		src = src[size+trailer:]
	}
	if len(src) != checksumSize(flags, lz4ContentChecksum) {
		return nil, errLZ4
	}
	return dst, nil
}

// checksumSize is the length of a checksum that is there if flags has flag.
func checksumSize(flags, flag byte) int {
	if flags&flag == 0 {
		return 0
	}
	return 4
}

// lz4Header gives what follows the frame's header, the largest size of a block
// and the flags.
func lz4Header(src []byte) (rest []byte, blockSize int, flags byte, err error) {
	if len(src) < lz4FixedHeader || binary.LittleEndian.Uint32(src) != lz4Magic {
		return nil, 0, 0, errLZ4
	}
	flags = src[4]
	class := int(src[5]>>4) - lz4SmallestBlockClass
	if flags&lz4VersionMask != lz4Version || class < 0 || class > 3 {
		return nil, 0, 0, errLZ4
	}
	if flags&lz4IndependentBlocks == 0 || flags&lz4DictionaryID != 0 {
		return nil, 0, 0, errors.New("lz4 blocks that depend on others")
	}
	size := lz4FixedHeader + 1
	if flags&lz4ContentSize != 0 {
		size += 8
	}
	if len(src) < size {
		return nil, 0, 0, errLZ4
	}
	return src[size:], 64 << 10 << (2 * class), flags, nil
}

func appendLZ4Block(dst, block []byte, stored bool, blockSize int) ([]byte, error) {
	if stored {
		return append(dst, block...), nil
	}
	room := min(blockSize, lz4MaxBlockExpansion*len(block))
	start := len(dst)
	dst = slices.Grow(dst, room)
	n, err := lz4.UncompressBlock(block, dst[start:start+room])
	if err != nil {
		return nil, err
	}
	return dst[:start+n], nil
}
