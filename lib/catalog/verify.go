package catalog

import (
	"bytes"
	"context"
	"fmt"

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
// calls visit after each segment. What is wrong is in the result; the error
// tells what could not be read.
//
// It may run beside brokers; what they write meanwhile may be left out.
func Verify(ctx context.Context, st store.Store, topic smq.Topic, visit func(seglog.Report)) (Verification, error) {
	config, err := ReadConfig(ctx, st, topic)
	if err != nil {
		return Verification{}, err
	}
	v := Verification{Config: config, ends: make([]smq.Offset, config.Partitions)}
	h, err := Extend(ctx, st, topic, config.ID, layout.History{})
	if err != nil {
		return v, err
	}
	v.Versions = h.Last.Version
	if n := h.Last.Partitions(); v.Versions > 0 && n != config.Partitions {
		v.problem("the layout has %s, the topic %d", smq.Count(n, "partition"), config.Partitions)
	}
	for _, s := range h.AllSealed() {
		r, err := v.segment(ctx, st, config.Ident(s.Segment, s.Range), visit)
		if err != nil {
			return v, err
		}
		if !r.Sealed || r.Seal.Chunk != s.Chunk || !bytes.Equal(r.Seal.Hash, s.Hash) {
			v.problem("segment %v does not end in the seal that the layout lists", s.Segment)
		}
	}
	for _, s := range h.Last.Segments {
		if !s.Assigned() {
			continue
		}
		if _, err := v.segment(ctx, st, config.Ident(s.ID, s.Range), visit); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (v *Verification) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// segment verifies one segment and adds up.
func (v *Verification) segment(ctx context.Context, st store.Store, id seglog.Ident, visit func(seglog.Report)) (seglog.Report, error) {
	r, err := seglog.Verify(ctx, st, id)
	v.Problems = append(v.Problems, r.Problems...)
	if err != nil {
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
		if start != v.ends[p] {
			v.problem("segment %v: partition %d goes on at offset %d, it ended at %d", r.Ident.Segment, p, start, v.ends[p])
		}
	}
	for i, end := range r.Ending {
		v.ends[int(r.Ident.Range.Lo)+i] = end
	}
}
