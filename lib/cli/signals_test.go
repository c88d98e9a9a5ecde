package cli

import (
	"syscall"
	"testing"
	"time"
)

func TestSignalThatComesTwiceCountsOnce(t *testing.T) {
	const soon, late = sameSignal - 1, sameSignal
	type event struct {
		after  time.Duration // the signal before
		signal syscall.Signal
		want   int
	}
	for name, events := range map[string][]event{
		"to a process and its group": {{0, syscall.SIGTERM, 1}, {0, syscall.SIGTERM, 0}, {soon, syscall.SIGTERM, 0}},
		"again later":                {{0, syscall.SIGTERM, 1}, {late, syscall.SIGTERM, 2}},
		"twice, later a third":       {{0, syscall.SIGINT, 1}, {soon, syscall.SIGINT, 0}, {1, syscall.SIGINT, 2}},
		"another one":                {{0, syscall.SIGTERM, 1}, {0, syscall.SIGINT, 2}},
	} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		c := signalCounter{now: func() time.Time { return now }}
		for i, e := range events {
			now = now.Add(e.after)
			if got := c.count(e.signal); got != e.want {
				t.Errorf("%s: signal %d counts as %d, want %d", name, i+1, got, e.want)
			}
		}
	}
}
