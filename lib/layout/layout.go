package layout

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
)

// Cause says why a version was written.
type Cause string

// The causes of a version.
const (
	Create   Cause = "create"   // the topic's first
	Assign   Cause = "assign"   // a segment without owner got one
	Split    Cause = "split"    // a segment's range was divided
	Merge    Cause = "merge"    // neighbours became one
	Failover Cause = "failover" // the owner died or failed
	Drain    Cause = "drain"    // the owner is leaving
	Move     Cause = "move"     // another owner on request
	Roll     Cause = "roll"     // the segment was full
)

// Valid reports whether c is one of the causes above.
func (c Cause) Valid() bool {
	switch c {
	case Create, Assign, Split, Merge, Failover, Drain, Move, Roll:
		return true
	}
	return false
}

// Hash is a SHA-256 as seals carry it; hexadecimal in JSON.
type Hash []byte

// MarshalText writes lower-case hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

// UnmarshalText reads hexadecimal.
func (h *Hash) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("%w hash: %v", smq.ErrInvalid, err)
	}
	*h = b
	return nil
}

// Member is a broker in its role for a segment.
type Member struct {
	Broker  smq.BrokerID `json:"broker"`
	Address string       `json:"address"` // gRPC, host:port
}

// IsZero reports whether m names nobody.
func (m Member) IsZero() bool { return m.Broker == "" }

// Predecessor is a seal that a segment continues from.
type Predecessor struct {
	Segment smq.SegmentID
	Range   smq.Range // of the sealed segment, whole
	Chunk   uint64    // the seal's number
	Hash    Hash      // of the seal's footer
}

// Segment is a live segment.
type Segment struct {
	ID           smq.SegmentID
	Range        smq.Range
	Owner        Member // zero while unassigned
	Followers    []Member
	Predecessors []Predecessor // by id
}

// Assigned reports whether the segment has an owner.
func (s Segment) Assigned() bool { return !s.Owner.IsZero() }

// Sealed is a segment that a version took out of the layout.
type Sealed struct {
	Segment  smq.SegmentID
	Range    smq.Range
	Empty    bool // it was never assigned, so it has no chunk and no seal
	Chunk    uint64
	Hash     Hash
	Unclean  bool
	Messages uint64 // stored in it
	Bytes    uint64
}

// Stamp says who writes a version, and when.
type Stamp struct {
	Leader smq.BrokerID
	Term   uint64
	NowMS  int64
}

// Layout is one version of the list of a topic's live segments. Its methods
// change nothing and share slices between versions: treat them as read-only.
type Layout struct {
	Version     uint64
	Cause       Cause
	Stamp       Stamp
	NextSegment smq.SegmentID // the next id to give
	Segments    []Segment     // live, by range
	Sealed      []Sealed      // taken out by this version, by range
	Reason      string        // in words, for people; may be empty
	// Loads are those of the sealed segments, as they were when the change was
	// decided, with the busiest partitions only. One that was not known is
	// missing.
	Loads []SegmentLoad
	// PauseMS is how long publishers of the sealed segments have waited for the
	// version, in milliseconds, as far as the leader can tell: from its first
	// step that stopped them until the version was made. 0 where nothing had to
	// be sealed.
	PauseMS int64
}

// New is a topic's first version: one segment without owner over all
// partitions.
func New(partitions int32, s Stamp) (Layout, error) {
	if partitions < 1 || partitions > smq.MaxPartitions {
		return Layout{}, fmt.Errorf("%w number of partitions %d: it must be between 1 and %d", smq.ErrInvalid, partitions, smq.MaxPartitions)
	}
	return Layout{
		Version:     1,
		Cause:       Create,
		Stamp:       s,
		NextSegment: 2,
		Segments:    []Segment{{ID: 1, Range: smq.Range{Lo: 0, Hi: partitions}}},
	}, nil
}

// Partitions is the number of partitions that the layout tiles.
func (l Layout) Partitions() int32 {
	if len(l.Segments) == 0 {
		return 0
	}
	return l.Segments[len(l.Segments)-1].Range.Hi
}

// Find returns the live segment that p lies in. It reports false for a
// partition that the topic does not have.
func (l Layout) Find(p smq.Partition) (Segment, bool) {
	i, found := slices.BinarySearchFunc(l.Segments, p, func(s Segment, p smq.Partition) int {
		switch {
		case s.Range.Hi <= p:
			return -1
		case s.Range.Lo > p:
			return 1
		}
		return 0
	})
	if !found {
		return Segment{}, false
	}
	return l.Segments[i], true
}

// Get returns the live segment with the given id.
func (l Layout) Get(id smq.SegmentID) (Segment, bool) {
	i := slices.IndexFunc(l.Segments, func(s Segment) bool { return s.ID == id })
	if i < 0 {
		return Segment{}, false
	}
	return l.Segments[i], true
}

// Overlapping returns the live segments that hold at least one of the
// partitions, by range; all of them when none is given. A partition that the
// topic does not have is an smq.ErrInvalid.
func (l Layout) Overlapping(partitions []smq.Partition) ([]Segment, error) {
	if len(partitions) == 0 {
		return l.Segments, nil
	}
	var hit []Segment
	for _, p := range partitions {
		s, ok := l.Find(p)
		if !ok {
			return nil, fmt.Errorf("%w partition %d: the topic has %d", smq.ErrInvalid, p, l.Partitions())
		}
		hit = append(hit, s)
	}
	slices.SortFunc(hit, bySegmentRange)
	return slices.CompactFunc(hit, func(a, b Segment) bool { return a.ID == b.ID }), nil
}

func bySegmentRange(a, b Segment) int { return cmp.Compare(a.Range.Lo, b.Range.Lo) }

func bySealedRange(a, b Sealed) int { return cmp.Compare(a.Range.Lo, b.Range.Lo) }
