package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// separator stands between the choices of a run when it is written down.
const separator = "; "

// String tells how a run failed and how to repeat it.
func (f *failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nafter\n", f.err)
	for _, l := range f.labels {
		fmt.Fprintf(&b, "\t%s\n", l)
	}
	fmt.Fprintf(&b, "again: -replay %q", strings.Join(f.labels, separator))
	return b.String()
}

// replay makes the run that takes the labelled choices, in order; one that is
// not there is passed over. Behind the last, the first choice is taken
// everywhere.
func (s *search) replay(t *testing.T, labels []string) *failure {
	path, err := s.execute(t, 0, func(_ *world, _ int, there []string, _ budget) (int, error) {
		for len(labels) > 0 {
			i := slices.Index(there, labels[0])
			labels = labels[1:]
			if i >= 0 {
				return i, nil
			}
		}
		return 0, nil
	})
	if err == nil {
		return nil
	}
	return &failure{err, labelsOf(path)}
}

// shrink looks for a shorter run that breaks the same promise: it leaves out
// every choice that can be spared.
func (s *search) shrink(t *testing.T, f *failure) *failure {
	for again := true; again; {
		again = false
		for i := len(f.labels) - 1; i >= 0; i-- {
			if i >= len(f.labels) {
				continue
			}
			g := s.replay(t, slices.Delete(slices.Clone(f.labels), i, i+1))
			if g != nil && g.promise() == f.promise() && g.simpler(f) {
				f, again = g, true
			}
		}
	}
	return f
}

// simpler prefers runs in which less goes wrong, then shorter ones.
func (f *failure) simpler(than *failure) bool {
	return cmp.Or(cmp.Compare(f.mishaps(), than.mishaps()), cmp.Compare(len(f.labels), len(than.labels))) < 0
}

// mishaps counts what went wrong in the run.
func (f *failure) mishaps() int {
	n := 0
	for _, l := range f.labels {
		if strings.Contains(l, " = ") || strings.HasPrefix(l, "late ") || strings.HasSuffix(l, ": crash") || strings.Contains(l, ": resend ") {
			n++
		}
	}
	return n
}

// promise is the one that was broken.
func (f *failure) promise() string {
	var v *Violation
	if errors.As(f.err, &v) {
		return v.Promise
	}
	return ""
}
