package layout

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// format is the version of the stored form that Encode writes.
const format = 1

type stored struct {
	Format      int             `json:"format"`
	Version     uint64          `json:"version"`
	Cause       Cause           `json:"cause"`
	CreatedMS   int64           `json:"created_ms"`
	Leader      smq.BrokerID    `json:"leader"`
	Term        uint64          `json:"term"`
	NextSegment smq.SegmentID   `json:"next_segment"`
	Segments    []storedSegment `json:"segments"`
	Sealed      []storedSealed  `json:"sealed"`
	Reason      string          `json:"reason,omitempty"`
	Loads       []storedLoad    `json:"loads,omitempty"`
	PauseMS     int64           `json:"pause_ms,omitempty"`
}

// storedLoad has the partitions that are told apart in three lists of one
// length.
type storedLoad struct {
	Segment    smq.SegmentID   `json:"id"`
	Messages   float64         `json:"messages_per_second"`
	Bytes      float64         `json:"bytes_per_second"`
	Partitions []smq.Partition `json:"partitions,omitempty"`
	PartMsgs   []float64       `json:"partition_messages,omitempty"`
	PartBytes  []float64       `json:"partition_bytes,omitempty"`
}

type storedSegment struct {
	ID           smq.SegmentID       `json:"id"`
	Lo           smq.Partition       `json:"lo"`
	Hi           smq.Partition       `json:"hi"`
	Owner        *Member             `json:"owner,omitempty"`
	Followers    []Member            `json:"followers,omitempty"`
	Predecessors []storedPredecessor `json:"predecessors,omitempty"`
}

type storedPredecessor struct {
	Segment smq.SegmentID `json:"segment"`
	Lo      smq.Partition `json:"lo"`
	Hi      smq.Partition `json:"hi"`
	Chunk   uint64        `json:"seal_chunk"`
	Hash    Hash          `json:"seal_hash"`
}

type storedSealed struct {
	Segment  smq.SegmentID `json:"id"`
	Lo       smq.Partition `json:"lo"`
	Hi       smq.Partition `json:"hi"`
	Empty    bool          `json:"empty,omitempty"`
	Chunk    uint64        `json:"seal_chunk"`
	Hash     Hash          `json:"seal_hash,omitempty"`
	Unclean  bool          `json:"unclean,omitempty"`
	Messages uint64        `json:"messages"`
	Bytes    uint64        `json:"bytes"`
}

// Encode is the stored form of a version: JSON, with a newline at the end.
// Equal versions give equal bytes.
func Encode(l Layout) []byte {
	out := stored{
		Format: format, Version: l.Version, Cause: l.Cause, NextSegment: l.NextSegment,
		CreatedMS: l.Stamp.NowMS, Leader: l.Stamp.Leader, Term: l.Stamp.Term,
		Segments: make([]storedSegment, len(l.Segments)),
		Sealed:   make([]storedSealed, len(l.Sealed)),
		Reason:   l.Reason, PauseMS: l.PauseMS,
	}
	for i, s := range l.Segments {
		out.Segments[i] = encodeSegment(s)
	}
	for i, s := range l.Sealed {
		out.Sealed[i] = storedSealed{s.Segment, s.Range.Lo, s.Range.Hi, s.Empty, s.Chunk, s.Hash, s.Unclean, s.Messages, s.Bytes}
	}
	for _, s := range l.Loads {
		out.Loads = append(out.Loads, encodeLoad(s))
	}
	b, err := json.Marshal(out)
	if err != nil {
		// Plain numbers and strings always encode.
		panic(fmt.Sprintf("layout: encoding version %d: %v", l.Version, err))
	}
	return append(b, '\n')
}

func encodeLoad(s SegmentLoad) storedLoad {
	out := storedLoad{Segment: s.Segment, Messages: s.Messages, Bytes: s.Bytes}
	for _, p := range s.Partitions {
		out.Partitions = append(out.Partitions, p.Partition)
		out.PartMsgs = append(out.PartMsgs, p.Messages)
		out.PartBytes = append(out.PartBytes, p.Bytes)
	}
	return out
}

func encodeSegment(s Segment) storedSegment {
	out := storedSegment{ID: s.ID, Lo: s.Range.Lo, Hi: s.Range.Hi, Followers: s.Followers}
	if s.Assigned() {
		out.Owner = &s.Owner
	}
	for _, p := range s.Predecessors {
		out.Predecessors = append(out.Predecessors, storedPredecessor{p.Segment, p.Range.Lo, p.Range.Hi, p.Chunk, p.Hash})
	}
	return out
}

// Decode reads what Encode wrote. Anything else is an smq.ErrCorrupt, a form
// newer than this program knows an smq.ErrInvalid.
func Decode(data []byte) (Layout, error) {
	var in stored
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&in); err != nil {
		return Layout{}, fmt.Errorf("layout is %w: %v", smq.ErrCorrupt, err)
	}
	if in.Format != format {
		return Layout{}, fmt.Errorf("%w layout: its format is %d, this program reads %d", smq.ErrInvalid, in.Format, format)
	}
	l := Layout{
		Version: in.Version, Cause: in.Cause, NextSegment: in.NextSegment,
		Stamp:  Stamp{Leader: in.Leader, Term: in.Term, NowMS: in.CreatedMS},
		Reason: in.Reason, PauseMS: in.PauseMS,
	}
	for _, s := range in.Segments {
		l.Segments = append(l.Segments, s.decode())
	}
	for _, s := range in.Sealed {
		l.Sealed = append(l.Sealed, Sealed{s.Segment, smq.Range{Lo: s.Lo, Hi: s.Hi}, s.Empty, s.Chunk, s.Hash, s.Unclean, s.Messages, s.Bytes})
	}
	for _, s := range in.Loads {
		load, err := s.decode()
		if err != nil {
			return Layout{}, err
		}
		l.Loads = append(l.Loads, load)
	}
	return l, l.Validate()
}

func (s storedLoad) decode() (SegmentLoad, error) {
	out := SegmentLoad{Segment: s.Segment, Load: Load{Messages: s.Messages, Bytes: s.Bytes}}
	if len(s.PartMsgs) != len(s.Partitions) || len(s.PartBytes) != len(s.Partitions) {
		return out, fmt.Errorf("layout is %w: the load of segment %d is that of %d, %d and %d partitions", smq.ErrCorrupt, s.Segment, len(s.Partitions), len(s.PartMsgs), len(s.PartBytes))
	}
	for i, p := range s.Partitions {
		out.Partitions = append(out.Partitions, PartitionLoad{Partition: p, Load: Load{Messages: s.PartMsgs[i], Bytes: s.PartBytes[i]}})
	}
	return out, nil
}

func (s storedSegment) decode() Segment {
	out := Segment{ID: s.ID, Range: smq.Range{Lo: s.Lo, Hi: s.Hi}, Followers: s.Followers}
	if s.Owner != nil {
		out.Owner = *s.Owner
	}
	for _, p := range s.Predecessors {
		out.Predecessors = append(out.Predecessors, Predecessor{p.Segment, smq.Range{Lo: p.Lo, Hi: p.Hi}, p.Chunk, p.Hash})
	}
	return out
}
