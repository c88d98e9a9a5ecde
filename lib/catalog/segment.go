package catalog

import (
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// Ident names a segment of the topic for lib/seglog.
func (c Config) Ident(id smq.SegmentID, r smq.Range) seglog.Ident {
	return seglog.Ident{Topic: c.Topic, TopicID: c.ID, Segment: id, Range: r}
}

// Seals are predecessors as lib/seglog takes them.
func Seals(preds []layout.Predecessor) []seglog.Seal {
	seals := make([]seglog.Seal, len(preds))
	for i, p := range preds {
		seals[i] = seglog.Seal{Segment: p.Segment, Range: p.Range, Chunk: p.Chunk, Hash: p.Hash}
	}
	return seals
}

// Sealed is a seal as the layout that takes its segment out lists it.
func Sealed(s seglog.Seal) layout.Sealed {
	return layout.Sealed{
		Segment: s.Segment, Range: s.Range, Chunk: s.Chunk, Hash: s.Hash,
		Unclean: s.Unclean, Messages: s.Messages, Bytes: s.Bytes,
	}
}
