package smq_test

import (
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 live segments", 1: "1 live segment", 2: "2 live segments", -1: "-1 live segments"} {
		if got := smq.Count(n, "live segment"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
