package tui

import "strings"

// historyLength is how many samples, one a second, are kept of a rate.
const historyLength = 120

// history is the latest samples of a rate. One that was never anything but 0
// takes no memory.
type history struct {
	samples []float32 // a ring
	next    int
	silent  int // samples that are 0, at the end
}

// add takes the sample of a second.
func (h *history) add(rate float64) {
	if rate <= 0 {
		if h.samples == nil {
			return
		}
		if h.silent++; h.silent > historyLength {
			*h = history{}
			return
		}
	} else {
		h.silent = 0
	}
	if h.samples == nil {
		h.samples = make([]float32, historyLength)
	}
	h.samples[h.next] = float32(rate)
	h.next = (h.next + 1) % historyLength
}

// copied is a copy that further samples do not change.
func (h *history) copied() history {
	c := *h
	c.samples = append([]float32(nil), h.samples...)
	return c
}

// at is the sample of i seconds ago.
func (h *history) at(i int) float32 {
	if i >= len(h.samples) {
		return 0
	}
	return h.samples[(h.next-1-i+2*historyLength)%historyLength]
}

// sparkline draws the latest w samples, the last one at the right; the largest
// of them is the full height, but no less than least is.
func (h *history) sparkline(t *theme, w int, least float64) string {
	top := least
	for i := range w {
		top = max(top, float64(h.at(i)))
	}
	var s strings.Builder
	for i := w - 1; i >= 0; i-- {
		v := float64(h.at(i))
		if v > 0 && v < top {
			v = max(v, top/100)
		}
		s.WriteString(t.bar(v / max(top, 1e-9)))
	}
	return s.String()
}
