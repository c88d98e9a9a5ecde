package sim

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// Digests recognize a state that the search has met before. They leave out
// what differs between two runs that are otherwise the same: random writer
// ids, hashes, times.

// mix folds v into h (splitmix64's finalizer).
func mix(h, v uint64) uint64 {
	h += 0x9e3779b97f4a7c15 + v
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// mixString folds s into h (FNV-1a, then mix).
func mixString(h uint64, s string) uint64 {
	f := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		f = (f ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h, f)
}

// names are the files of the store with the digests of their content.
type names map[string]uint64

func (n names) taken(path string) bool { return n[path] != 0 }

// set notes a file, and returns by how much the sum over all files changes.
func (n names) set(path string, mark uint64) uint64 {
	before := n[path]
	n[path] = mark | 1
	return n[path] - before
}

func (g *gate) markOf(path string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.names[path]
}

// digestOf digests a chunk that the named process is about to create.
func (g *gate) digestOf(by, path string, content []store.Part) uint64 {
	h := mixString(mixString(0, by), path)
	if ref := content[0].Ref; ref != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		return mix(h, g.uploaded[ref.Pieces[0].ID])
	}
	chunk, err := seglog.ParseChunk(bytes.Join(bytesOf(content), nil))
	if err != nil {
		return h
	}
	f := proto.CloneOf(chunk.Footer)
	f.Writer, f.Previous, f.CreatedMs = nil, nil, 0
	for _, b := range f.Blocks {
		b.AppendMs = 0
	}
	forgetTimes(f.Producers)
	if s := f.Snapshot; s != nil {
		s.AppendMs = nil
		for _, p := range s.Predecessors {
			p.SealHash = nil
		}
		forgetTimes(s.Producers)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
	if err != nil {
		return h
	}
	return mixString(h, string(b))
}

func forgetTimes(producers []*smqpb.ProducerState) {
	for _, p := range producers {
		p.AppendMs = 0
	}
}

// digest sums up everything that the rest of a run depends on.
func (w *world) digest(left budget) uint64 {
	h := mix(mix(mix(w.gate.digest, uint64(left.faults)), uint64(left.crashes)), uint64(left.retries))
	if left.turns < anyTurns/2 {
		h = mixString(mix(h, uint64(left.turns)), w.turn)
	}
	var late uint64
	for _, l := range w.gate.lates() {
		late += mix(l.mark, 1)
	}
	h = mix(h, late)
	for _, n := range w.nodes {
		if !n.isDead() {
			h = mix(h, n.trace)
		}
	}
	for _, a := range w.actors {
		h = mix(h, a.digest())
	}
	return mix(h, w.ledger.digest())
}

// pathOf says where a chunk that is uploaded is going to be.
func pathOf(content []store.Part) string {
	chunk, err := seglog.ParseChunk(bytes.Join(bytesOf(content), nil))
	if err != nil {
		return "?"
	}
	f := chunk.Footer
	return ident(smq.SegmentID(f.Segment), smq.Range{}).ChunkPath(f.Chunk)
}
