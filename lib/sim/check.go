package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// Checker reads the raw store beside the log, chunk by chunk as they come, and
// has a witness compare what is there with what it knows. Of lib/seglog it uses
// what takes a chunk's file apart, and judges by itself how chunks and segments
// follow one another. It belongs to one goroutine.
type Checker struct {
	st       store.Store
	topic    smq.Topic
	id       smq.TopicID
	witness  Witness
	segments map[smq.SegmentID]*segment
	history  map[smq.Partition]*history
}

// Witness knows what clients meant, were told and were given. The errors that
// it returns are Violations.
type Witness interface {
	// Begin puts aside what is going to be compared. The store is read after
	// that, so it is never behind.
	Begin() error
	// Batch is told of each batch that has come into the log, in the order of
	// its partition; the header has its offset.
	Batch(k Key, h record.Header, batch []byte) error
	// Settle compares what Begin has put aside with the log.
	Settle(c *Checker) error
}

// segment is what has been read of one.
type segment struct {
	id     smq.SegmentID
	rng    smq.Range
	files  []file
	last   *seglog.Chunk
	writer string // of its unsealed chunks
	end    smq.Position
}

// file is a chunk's file as it was first read.
type file struct {
	path    string
	version store.Version
}

func (s *segment) sealed() bool { return s.last != nil && s.last.Footer.Sealed }

// history is a partition's log over all segments.
type history struct {
	end     smq.Offset
	last    smq.SegmentID // the segment that it has reached
	at      map[smq.Offset]stored
	places  map[Key]smq.Offset
	expects map[writer]int32 // the next sequence
	epochs  map[int64]int16  // the latest, by producer
}

// stored is a batch in the store.
type stored struct {
	key   Key
	bytes []byte
}

// writer is a producer in one epoch, within a partition.
type writer struct {
	producer int64
	epoch    int16
}

// NewChecker returns a checker of a topic.
func NewChecker(st store.Store, topic smq.Topic, id smq.TopicID, w Witness) *Checker {
	return &Checker{st: st, topic: topic, id: id, witness: w,
		segments: make(map[smq.SegmentID]*segment), history: make(map[smq.Partition]*history)}
}

// Check compares what has come since the last time. The error is a *Violation,
// or tells what could not be read.
func (c *Checker) Check(ctx context.Context) error {
	if err := c.witness.Begin(); err != nil {
		return err
	}
	if err := c.scan(ctx); err != nil {
		return err
	}
	return c.witness.Settle(c)
}

// Unchanged checks that every file read so far is still what it was (P8).
func (c *Checker) Unchanged(ctx context.Context) error {
	for _, s := range c.segments {
		for _, f := range s.files {
			_, version, err := c.st.Read(ctx, f.path)
			if err != nil {
				return Violated("P8", "%s has gone: %v", f.path, err)
			}
			if version != f.version {
				return Violated("P8", "%s has changed", f.path)
			}
		}
	}
	return nil
}

// Segments lists the segments that have chunks.
func (c *Checker) Segments() []seglog.Ident {
	ids := make([]seglog.Ident, 0, len(c.segments))
	for _, s := range c.segments {
		ids = append(ids, seglog.Ident{Topic: c.topic, TopicID: c.id, Segment: s.id, Range: s.rng})
	}
	slices.SortFunc(ids, func(a, b seglog.Ident) int { return cmp.Compare(a.Segment, b.Segment) })
	return ids
}

// scan reads the chunks that have come. Segments go by id, so that a
// predecessor comes before what continues it.
func (c *Checker) scan(ctx context.Context) error {
	dir := seglog.TopicDir(c.topic, c.id) + "/segments"
	infos, err := c.st.List(ctx, dir, "", 0)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if err := c.scanSegment(ctx, dir+"/"+info.Name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checker) scanSegment(ctx context.Context, dir string) error {
	var id smq.SegmentID
	if _, err := fmt.Sscanf(dir[strings.LastIndexByte(dir, '/')+1:], "%d", (*uint64)(&id)); err != nil {
		return fmt.Errorf("folder %s: %w", dir, err)
	}
	s := c.segments[id]
	if s == nil {
		s = &segment{id: id}
		c.segments[id] = s
	}
	after := ""
	if n := len(s.files); n > 0 {
		after = chunkName(n - 1)
	}
	infos, err := c.st.List(ctx, dir, after, 0)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if want := chunkName(len(s.files)); info.Name != want {
			return Violated("P2", "segment %v: %s is there, %s is missing", id, info.Name, want)
		}
		if err := c.readChunk(ctx, s, dir+"/"+info.Name); err != nil {
			return err
		}
	}
	return nil
}

func chunkName(n int) string { return fmt.Sprintf("%020d.log", n) }

func (c *Checker) readChunk(ctx context.Context, s *segment, path string) error {
	data, version, err := c.st.Read(ctx, path)
	if err != nil {
		return err
	}
	chunk, err := seglog.ParseChunk(data)
	if err != nil {
		return Violated("P1", "%s cannot be read: %v", path, err)
	}
	f := chunk.Footer
	if s.last == nil {
		err = c.opening(s, f)
	} else {
		err = s.continues(chunk)
	}
	if err == nil {
		err = c.blocks(s, chunk)
	}
	if err == nil && f.Snapshot != nil {
		err = c.snapshot(s, f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.last = chunk
	s.files = append(s.files, file{path: path, version: version})
	return nil
}

// opening checks a segment's first chunk: it continues the segments that have
// had its partitions before, from their seals.
func (c *Checker) opening(s *segment, f *smqpb.ChunkFooter) error {
	if f.Segment != uint64(s.id) || f.Chunk != 0 || f.Snapshot == nil || len(f.Previous) > 0 || len(f.Blocks) > 0 {
		return Violated("P2", "it is not an opening: %v", f)
	}
	s.rng, s.writer = smq.Range{Lo: f.Lo, Hi: f.Hi}, string(f.Writer)
	for p := f.Lo; p < f.Hi; p++ {
		h := c.of(p)
		if h.last != 0 {
			if err := c.continued(h.last, f.Snapshot.Predecessors); err != nil {
				return fmt.Errorf("partition %d: %w", p, err)
			}
		}
		h.last = s.id
	}
	return nil
}

// continued checks that the segment before is sealed, and that the seal is
// among those named.
func (c *Checker) continued(before smq.SegmentID, named []*smqpb.Predecessor) error {
	s := c.segments[before]
	if !s.sealed() {
		return Violated("P5", "it follows on segment %v, which is not sealed", before)
	}
	i := slices.IndexFunc(named, func(p *smqpb.Predecessor) bool { return p.Segment == uint64(before) })
	if i < 0 {
		return Violated("P2", "it does not continue segment %v, which was the last to have it", before)
	}
	if p := named[i]; p.SealChunk != s.last.Footer.Chunk || string(p.SealHash) != string(s.last.Hash) {
		return Violated("P2", "it continues segment %v from chunk %d, its seal is chunk %d", before, p.SealChunk, s.last.Footer.Chunk)
	}
	return nil
}

// continues checks a later chunk against the one before.
func (s *segment) continues(chunk *seglog.Chunk) error {
	f := chunk.Footer
	switch {
	case s.sealed():
		return Violated("P5", "it stands behind the seal")
	case f.Segment != uint64(s.id) || f.Chunk != uint64(len(s.files)):
		return Violated("P8", "it says that it is chunk %d of segment %d", f.Chunk, f.Segment)
	case string(f.Previous) != string(s.last.Hash):
		return Violated("P8", "it does not continue the chunk before it")
	case !f.Sealed && string(f.Writer) != s.writer:
		return Violated("P5", "its writer is not the segment's owner")
	case f.FirstPosition != s.end:
		return Violated("P2", "it begins at position %d, the one before ended at %d", f.FirstPosition, s.end)
	}
	return nil
}

// blocks takes in the chunk's batches.
func (c *Checker) blocks(s *segment, chunk *seglog.Chunk) error {
	for p, batch := range chunk.Batches() {
		header, err := record.Validate(batch)
		if err != nil {
			return Violated("P1", "partition %d: %v", p, err)
		}
		if header.LeaderEpoch != s.id.LeaderEpoch() {
			return Violated("P2", "partition %d: leader epoch %d", p, header.LeaderEpoch)
		}
		if err := c.of(p).append(c.witness, keyOf(p, header), header, batch); err != nil {
			return err
		}
	}
	s.end = chunk.Footer.EndPosition
	return nil
}

// append takes one batch in and checks its place.
func (h *history) append(w Witness, k Key, header record.Header, batch []byte) error {
	if header.BaseOffset != h.end {
		return Violated("P2", "%v is at offset %d, the one before ended at %d", k, header.BaseOffset, h.end)
	}
	if o, twice := h.places[k]; twice {
		return Violated("P7", "%v is there twice, at offsets %d and %d", k, o, header.BaseOffset)
	}
	if k.Epoch < h.epochs[k.Producer] {
		return Violated("P3", "%v stands behind epoch %d of its producer", k, h.epochs[k.Producer])
	}
	h.epochs[k.Producer] = k.Epoch
	source := writer{k.Producer, k.Epoch}
	if want := h.expects[source]; k.Sequence != want {
		return Violated("P3", "%v stands where sequence %d was due", k, want)
	}
	if err := w.Batch(k, header, batch); err != nil {
		return err
	}
	h.at[h.end] = stored{k, batch}
	h.places[k] = h.end
	h.expects[source] = k.Sequence + header.Count
	h.end += int64(header.Count)
	return nil
}

// snapshot checks that it says where the partitions end.
func (c *Checker) snapshot(s *segment, f *smqpb.ChunkFooter) error {
	ends := make(map[smq.Partition]smq.Offset, len(f.Snapshot.Partitions))
	for i, p := range f.Snapshot.Partitions {
		ends[p] = f.Snapshot.EndOffsets[i]
	}
	for p := s.rng.Lo; p < s.rng.Hi; p++ {
		if h := c.of(p); ends[p] != h.end {
			return Violated("P2", "its snapshot ends partition %d at offset %d, the chunks at %d", p, ends[p], h.end)
		}
	}
	return nil
}

// End is the partition's end, as far as it has been read.
func (c *Checker) End(p smq.Partition) smq.Offset { return c.of(p).end }

// At returns the batch whose first message has the offset.
func (c *Checker) At(p smq.Partition, offset smq.Offset) (k Key, batch []byte, ok bool) {
	b, ok := c.of(p).at[offset]
	return b.key, b.bytes, ok
}

// Find returns the offset of a batch.
func (c *Checker) Find(k Key) (offset smq.Offset, ok bool) {
	offset, ok = c.of(k.Partition).places[k]
	return offset, ok
}

func (c *Checker) of(p smq.Partition) *history {
	h := c.history[p]
	if h == nil {
		h = &history{at: make(map[smq.Offset]stored), places: make(map[Key]smq.Offset), expects: make(map[writer]int32), epochs: make(map[int64]int16)}
		c.history[p] = h
	}
	return h
}
