package record_test

import (
	"math"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
)

func TestSequences(t *testing.T) {
	const last = math.MaxInt32
	for _, tt := range []struct{ from, steps, to int32 }{
		{0, 0, 0}, {0, 1, 1}, {last - 1, 1, last}, {last, 0, last}, {last, 1, 0}, {last, last, last - 1},
		{10, last, 9}, {2147483000, 2999, 2351},
	} {
		if got := record.NextSequence(tt.from, tt.steps); got != tt.to {
			t.Errorf("NextSequence(%d, %d) = %d, want %d", tt.from, tt.steps, got, tt.to)
		}
		if got := record.SequenceDistance(tt.from, tt.to); got != tt.steps {
			t.Errorf("SequenceDistance(%d, %d) = %d, want %d", tt.from, tt.to, got, tt.steps)
		}
	}
	for _, tt := range []struct {
		a, b int32
		want bool
	}{
		{1, 0, true}, {0, 1, false}, {5, 5, false}, {0, last, true}, {last, 0, false},
		{3, last - 3, true}, {last - 3, 3, false}, {last / 2, 0, true}, {last/2 + 1, 0, false},
	} {
		if got := record.SequenceAfter(tt.a, tt.b); got != tt.want {
			t.Errorf("SequenceAfter(%d, %d) = %v", tt.a, tt.b, got)
		}
	}
}

func TestLastSequence(t *testing.T) {
	for _, tt := range []struct{ base, delta, want int32 }{
		{record.NoSequence, 5, record.NoSequence}, {0, 0, 0}, {7, 3, 10}, {math.MaxInt32, 2, 1},
	} {
		if got := (record.Header{BaseSequence: tt.base, LastOffsetDelta: tt.delta}).LastSequence(); got != tt.want {
			t.Errorf("base %d, delta %d: %d, want %d", tt.base, tt.delta, got, tt.want)
		}
	}
}
