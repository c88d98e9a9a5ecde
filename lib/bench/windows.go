package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Windows are kept to two digits, some 25 KB each, and no more of them than this.
const (
	windowDigits = 2
	mostWindows  = 600
)

// windows keeps the latencies of each stretch of time by itself. It is safe for
// concurrent use, and takes bounded memory: when there are too many stretches,
// two make one.
type windows struct {
	mu     sync.Mutex
	length time.Duration
	hists  []*hdrhistogram.Histogram // nil: nothing was due then
}

func newWindows() *windows { return &windows{length: time.Second} }

// add takes in that what was due at a time took d.
func (w *windows) add(at, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := int(at / w.length)
	for ; i >= mostWindows; i = int(at / w.length) {
		w.halve()
	}
	for i >= len(w.hists) {
		w.hists = append(w.hists, nil)
	}
	if w.hists[i] == nil {
		w.hists[i] = newHistogram(windowDigits)
	}
	record(w.hists[i], d)
}

// halve makes one window of each two.
func (w *windows) halve() {
	half := w.hists[:0]
	for i := 0; i < len(w.hists); i += 2 {
		h := w.hists[i]
		if i+1 < len(w.hists) {
			if next := w.hists[i+1]; h == nil {
				h = next
			} else if next != nil {
				h.Merge(next)
			}
		}
		half = append(half, h)
	}
	w.hists, w.length = half, 2*w.length
}

// during sums up the windows that have a part in a stretch of time, its ends
// included.
func (w *windows) during(from, to time.Duration) Latency {
	return w.sum(func(begin, end time.Duration) bool { return begin <= to && end > from })
}

// beginning sums up the windows that begin from one time on and before another.
func (w *windows) beginning(from, to time.Duration) Latency {
	return w.sum(func(begin, _ time.Duration) bool { return begin >= from && begin < to })
}

func (w *windows) sum(taken func(begin, end time.Duration) bool) Latency {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := newHistogram(windowDigits)
	for i, h := range w.hists {
		begin := time.Duration(i) * w.length
		if h != nil && taken(begin, begin+w.length) {
			all.Merge(h)
		}
	}
	return summarize(all)
}
