package record

import "math"

// Sequences count from 0 to math.MaxInt32 and go on at 0, as in Kafka. Of two,
// the later one is that which lies less than half of this circle ahead.

// NextSequence is the sequence n (at least 0) steps after seq.
func NextSequence(seq, n int32) int32 {
	return int32((int64(seq) + int64(n)) & math.MaxInt32)
}

// SequenceDistance is how many steps lead from one sequence to the other,
// going only up: 0 to math.MaxInt32.
func SequenceDistance(from, to int32) int32 {
	return int32((int64(to) - int64(from)) & math.MaxInt32)
}

// SequenceAfter reports whether sequence a is later than b.
func SequenceAfter(a, b int32) bool {
	d := SequenceDistance(b, a)
	return d > 0 && d <= math.MaxInt32/2
}
