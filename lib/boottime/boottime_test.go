package boottime_test

import (
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/boottime"
)

// The clocks keep pace with the process's own, and never go back.
func TestClocks(t *testing.T) {
	for name, clock := range map[string]func() time.Duration{"system": boottime.Clock(), "steady": boottime.Steady()} {
		at, begin := clock(), time.Now()
		for last := at; time.Since(begin) < time.Millisecond; {
			now := clock()
			if now < last {
				t.Fatalf("%s: %v after %v", name, now, last)
			}
			last = now
		}
		took := time.Since(begin)
		if passed := clock() - at; passed < took {
			t.Errorf("%s: %v have passed, it says %v", name, took, passed)
		}
	}
}
