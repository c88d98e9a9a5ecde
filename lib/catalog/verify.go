package catalog

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Verification is what Verify found in a topic.
type Verification struct {
	Config   Config
	Versions uint64 // of the layout
	Segments int    // with chunks
	Chunks   uint64
	Batches  uint64
	Messages uint64
	Bytes    uint64
	Problems []string // empty: nothing is wrong

	ends []smq.Offset // by partition, of the segments so far
}

// Verify reads a topic whole, with nothing but the store: every layout version,
// and every segment as seglog.Verify does, from the first to the live ones. It
// calls visit after each segment. What is wrong is in the result, by file; the
// error tells what could not be read, which is damage (see IsDamage) only where
// the configuration is damaged.
//
// It may run beside brokers; what they write meanwhile may be left out.
func Verify(ctx context.Context, st store.Store, topic smq.Topic, visit func(seglog.Report)) (Verification, error) {
	config, err := ReadConfig(ctx, st, topic)
	if err != nil {
		return Verification{}, err
	}
	v := Verification{Config: config, ends: make([]smq.Offset, config.Partitions)}
	segments, err := v.history(ctx, st)
	if err != nil {
		return v, err
	}
	for _, s := range segments {
		if s.afterGap {
			v.forget()
		}
		r, err := v.segment(ctx, st, config.Ident(s.id, s.span), visit)
		if err != nil {
			return v, err
		}
		if s.seal != nil && (!r.Sealed || r.Seal.Chunk != s.seal.Chunk || !bytes.Equal(r.Seal.Hash, s.seal.Hash)) {
			v.problem("segment %v does not end in the seal that the layout lists", s.id)
		}
	}
	return v, nil
}

// recorded is a segment that the layout's versions tell of.
type recorded struct {
	id   smq.SegmentID
	span smq.Range
	seal *layout.Sealed // nil: it is live, or the version that took it out is damaged
	// afterGap: something that came before it may not be told of.
	afterGap bool
}

// verifyPage is how many layout versions are read at once.
const verifyPage = 1000

// history reads the layout's versions, and lists the segments that they tell of,
// in order. A version that is damaged is a problem, and leaves a gap.
func (v *Verification) history(ctx context.Context, st store.Store) ([]recorded, error) {
	c := v.Config
	last, err := lastVersion(ctx, st, c.Topic, c.ID, 0)
	if err != nil {
		return nil, err
	}
	v.Versions = last
	w := walk{v: v}
	for first := uint64(1); first <= last; first += verifyPage {
		for _, r := range readVersions(ctx, st, c.Topic, c.ID, first, int(min(verifyPage, last-first+1))) {
			switch {
			case r.err == nil:
				w.next(r.Layout)
			case IsDamage(r.err):
				v.problem("%v", r.err)
				w.gap = true
			default:
				return nil, r.err
			}
		}
	}
	if n := w.last.Partitions(); w.last.Version > 0 && n != c.Partitions {
		v.problem("the layout has %s, the topic %d", smq.Count(n, "partition"), c.Partitions)
	}
	return w.end(), nil
}

// walk goes through the versions of a layout, as far as they can be read.
type walk struct {
	v        *Verification
	last     layout.Layout
	gap      bool // versions behind the last are missing
	cut      bool // nothing is told yet of what came behind the last gap
	segments []recorded
}

func (w *walk) next(l layout.Layout) {
	if w.last.Version > 0 && !w.gap {
		if _, err := (layout.History{Last: w.last}).Add(l); err != nil {
			w.v.problem("%v", err)
			w.gap = true
		}
	}
	if w.gap {
		w.bridge(l)
	}
	for _, s := range l.Sealed {
		if !s.Empty {
			w.add(recorded{id: s.Segment, span: s.Range, seal: &s})
		}
	}
	w.last = l
}

func (w *walk) add(r recorded) {
	r.afterGap, w.cut = w.cut, false
	w.segments = append(w.segments, r)
}

// bridge adds what was taken out in the gap before a version: what was live
// before and is neither live in it nor taken out by it.
func (w *walk) bridge(l layout.Layout) {
	for _, s := range w.last.Segments {
		_, live := l.Get(s.ID)
		sealed := slices.ContainsFunc(l.Sealed, func(x layout.Sealed) bool { return x.Segment == s.ID })
		if s.Assigned() && !live && !sealed {
			w.add(recorded{id: s.ID, span: s.Range})
		}
	}
	w.gap, w.cut = false, true
}

// end adds what is live in the last version.
func (w *walk) end() []recorded {
	for _, s := range w.last.Segments {
		if s.Assigned() {
			w.add(recorded{id: s.ID, span: s.Range})
		}
	}
	return w.segments
}

// forget takes in that segments may not be known: where the next ones go on
// cannot be told.
func (v *Verification) forget() {
	for p := range v.ends {
		v.ends[p] = unknownEnd
	}
}

// unknownEnd is where a partition ended when that is not known.
const unknownEnd = -1

func (v *Verification) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// segment verifies one segment and adds up.
func (v *Verification) segment(ctx context.Context, st store.Store, id seglog.Ident, visit func(seglog.Report)) (seglog.Report, error) {
	r, err := seglog.Verify(ctx, st, id)
	v.Problems = append(v.Problems, r.Problems...)
	switch {
	case IsDamage(err):
		v.problem("verify %v: %v", id, err)
	case err != nil:
		return r, fmt.Errorf("verify %v: %w", id, err)
	}
	if r.Chunks > 0 {
		v.Segments++
	}
	v.Chunks += r.Chunks
	v.Batches += r.Batches
	v.Messages += r.Messages
	v.Bytes += r.Bytes
	v.continues(r)
	if visit != nil {
		visit(r)
	}
	return r, nil
}

// continues checks that every partition goes on where the segment before ended.
func (v *Verification) continues(r seglog.Report) {
	for i, start := range r.Opening {
		p := int(r.Ident.Range.Lo) + i
		if p >= len(v.ends) {
			v.problem("segment %v holds partition %d of %d", r.Ident.Segment, p, len(v.ends))
			return
		}
		if v.ends[p] != unknownEnd && start != v.ends[p] {
			v.problem("segment %v: partition %d goes on at offset %d, it ended at %d", r.Ident.Segment, p, start, v.ends[p])
		}
	}
	for i, end := range r.Ending {
		v.ends[int(r.Ident.Range.Lo)+i] = end
	}
}
