package check

import (
	"slices"
	"time"
)

// How long before and after a message a fault may have hit a broker that held
// it. Before: a broker that was silent for its lease counts as lost. After: the
// message must have been stored by then, with time for a slow store.
const (
	excuseBefore = int64(6 * time.Second / time.Microsecond)
	excuseAfter  = int64(6 * time.Second / time.Microsecond)
)

// faults are what was done to the system, and when.
type faults struct{ all []faultSpan }

type faultSpan struct {
	number   int
	name     string
	parts    []string
	from, to int64
	lasts    bool
}

func (f *faults) add(e Event) {
	if e.Kind == Fault {
		f.all = append(f.all, faultSpan{number: e.Fault, name: e.Text, parts: e.Parts, from: e.At, lasts: true})
		return
	}
	for i := range f.all {
		if f.all[i].number == e.Fault {
			f.all[i].to, f.all[i].lasts = e.At, false
		}
	}
}

func (s faultSpan) overlaps(from, to int64) bool { return s.from <= to && (s.lasts || s.to >= from) }

// hit is how many parts were hit at some time from from to to.
func (f *faults) hit(from, to int64) int {
	parts := make(map[string]bool)
	for _, s := range f.all {
		if s.overlaps(from, to) {
			for _, p := range s.parts {
				parts[p] = true
			}
		}
	}
	return len(parts)
}

// during are the names of the faults at some time from from to to.
func (f *faults) during(from, to int64) []string {
	var names []string
	for _, s := range f.all {
		if s.overlaps(from, to) && !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}
