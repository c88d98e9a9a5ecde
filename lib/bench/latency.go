package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept in microseconds, to three digits, up to an hour; what took
// longer counts as an hour.
const (
	longest = time.Hour
	digits  = 3
)

// latencies gathers how long messages took. It is safe for concurrent use.
type latencies struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
}

func newLatencies() *latencies { return &latencies{hist: newHistogram(digits)} }

func newHistogram(digits int) *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), digits)
}

// add takes in that a message took d.
func (l *latencies) add(d time.Duration) { record(l.hist, d) }

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// Rounded up, so that nothing seems faster than it was. A value within the
	// bounds is always taken.
	_ = h.RecordValue(min(max((d+time.Microsecond-1).Microseconds(), 1), longest.Microseconds()))
}

// Latency tells how long messages took: the share that a percentile names took
// that long or less.
type Latency struct {
	Count                                 int64
	Mean, P50, P90, P99, P999, Max, Least time.Duration
}

// summary is what has been gathered in all of several.
func summary(all []*latencies) Latency {
	whole := newHistogram(digits)
	for _, l := range all {
		l.mu.Lock()
		whole.Merge(l.hist)
		l.mu.Unlock()
	}
	return summarize(whole)
}

func summarize(h *hdrhistogram.Histogram) Latency {
	at := func(percentile float64) time.Duration {
		return time.Duration(h.ValueAtQuantile(percentile)) * time.Microsecond
	}
	if h.TotalCount() == 0 {
		return Latency{}
	}
	return Latency{
		Count: h.TotalCount(), Mean: time.Duration(h.Mean() * float64(time.Microsecond)),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9),
		Max: time.Duration(h.Max()) * time.Microsecond, Least: time.Duration(h.Min()) * time.Microsecond,
	}
}
