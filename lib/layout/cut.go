package layout

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// weights are the measured loads of a range's partitions as one number each,
// for dividing it.
type weights struct {
	span   smq.Range
	at     []smq.Partition // the partitions that weigh anything, rising
	weight []float64
	sum    float64
	// top is the heaviest partition, topAt where it is in at.
	top   float64
	topAt int
}

func weigh(span smq.Range, parts []PartitionLoad, weight func(Load) float64) weights {
	parts = within(parts, span)
	w := weights{span: span, at: make([]smq.Partition, 0, len(parts)), weight: make([]float64, 0, len(parts))}
	for _, p := range parts {
		x := weight(p.Load)
		last := span.Lo - 1
		if n := len(w.at); n > 0 {
			last = w.at[n-1]
		}
		if x == 0 || !p.sane() || p.Partition <= last || p.Partition >= span.Hi {
			continue
		}
		if x > w.top {
			w.top, w.topAt = x, len(w.at)
		}
		w.at, w.weight, w.sum = append(w.at, p.Partition), append(w.weight, x), w.sum+x
	}
	return w
}

// pieces is the least number of pieces of which none weighs more than limit; a
// partition that does by itself is one.
func (w *weights) pieces(limit float64) int {
	n, sum := 1, 0.0
	for i, x := range w.weight {
		if sum+x > limit && i > 0 {
			n, sum = n+1, 0
		}
		sum += x
	}
	return n
}

// cut divides the range into n pieces, or fewer if it has fewer partitions, so
// that the heaviest weighs as little as can be. What weighs nothing is shared
// by the pieces beside it. Without weights, or when too few partitions have any,
// the pieces are of the same size.
func (w *weights) cut(n int) []smq.Range {
	n = min(n, w.span.Len())
	if len(w.at) < n {
		return even(w.span, n)
	}
	limit := w.evenest(n)
	out := make([]smq.Range, 0, n)
	piece, sum := w.span, 0.0
	for i, x := range w.weight {
		// The last pieces need a partition each.
		if i > 0 && (sum+x > limit || len(w.at)-i < n-len(out)) && len(out) < n-1 {
			gap := w.at[i] - w.at[i-1] - 1
			piece.Hi = w.at[i-1] + 1 + gap/2
			out = append(out, piece)
			piece, sum = smq.Range{Lo: piece.Hi, Hi: w.span.Hi}, 0
		}
		sum += x
	}
	return append(out, piece)
}

// evenest is the least limit at which n pieces are enough.
func (w *weights) evenest(n int) float64 {
	lo, hi := max(w.top, w.sum/float64(n)), w.sum
	if w.pieces(lo) <= n {
		return lo
	}
	const steps = 40 // to a trillionth
	for range steps {
		mid := lo + (hi-lo)/2
		if w.pieces(mid) <= n {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// heaviest is the weight of the heaviest of the pieces.
func (w *weights) heaviest(pieces []smq.Range) float64 {
	most, i := 0.0, 0
	for _, r := range pieces {
		sum := 0.0
		for ; i < len(w.at) && w.at[i] < r.Hi; i++ {
			sum += w.weight[i]
		}
		most = max(most, sum)
	}
	return most
}

// even divides the range into n pieces of the same size.
func even(r smq.Range, n int) []smq.Range {
	out := make([]smq.Range, n)
	lo := r.Lo
	for i := range out {
		hi := r.Lo + smq.Partition(r.Len()*(i+1)/n)
		out[i], lo = smq.Range{Lo: lo, Hi: hi}, hi
	}
	return out
}

// SplitPoint is the first partition of the second half of a segment that is
// split by hand: where the measured load halves, or the middle of the range
// when nothing is measured. A segment of one partition is an smq.ErrInvalid.
func SplitPoint(s Segment, load SegmentLoad) (smq.Partition, error) {
	if s.Range.Len() < 2 {
		return 0, fmt.Errorf("%w split of segment %d: it has one partition only, %d", smq.ErrInvalid, s.ID, s.Range.Lo)
	}
	w := weigh(s.Range, load.Partitions, Load.Cost)
	return w.cut(2)[1].Lo, nil
}
