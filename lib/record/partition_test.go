package record_test

import (
	"testing"

	"github.com/seaweedmq/smq/lib/record"
)

// The vectors of Kafka's own tests of its hash.
func TestMurmur2Vectors(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(record.Murmur2([]byte(key))); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

func TestPartitionOfNilIsThatOfEmpty(t *testing.T) {
	if a, b := record.Partition(nil, 64), record.Partition([]byte{}, 64); a != b || a < 0 {
		t.Errorf("nil %d, empty %d", a, b)
	}
}
