package check

import "slices"

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

// spared is the first of some parts to which nothing was done at any time from
// from to to, nor to the masters; empty when there is none.
func (f *faults) spared(parts []string, from, to int64) string {
	i := slices.IndexFunc(parts, func(part string) bool {
		return !slices.ContainsFunc(f.all, func(s faultSpan) bool {
			return s.overlaps(from, to) && (slices.Contains(s.parts, part) || slices.Contains(s.parts, Masters))
		})
	})
	if i < 0 {
		return ""
	}
	return parts[i]
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
