package record

import (
	"encoding/binary"
	"math"
)

// Partition maps a key to one of n partitions as Kafka's default partitioner
// does, so that clients of both agree. A nil key counts as an empty one; where
// messages without a key go is the caller's choice. It panics if n is 0.
func Partition(key []byte, n int32) int32 {
	return int32(Murmur2(key)&math.MaxInt32) % n
}

// Murmur2 is the 32-bit hash of that name, with Kafka's seed.
func Murmur2(b []byte) uint32 {
	const (
		seed  = 0x9747b28c
		mul   = 0x5bd1e995
		shift = 24
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * mul
		k ^= k >> shift
		h = h*mul ^ k*mul
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * mul
	}
	h = (h ^ h>>13) * mul
	return h ^ h>>15
}
