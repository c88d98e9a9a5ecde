package layout

import (
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// ToProto is the form that a version has on the wire.
func ToProto(l Layout) *smqpb.Layout {
	out := &smqpb.Layout{
		Version: l.Version, Cause: string(l.Cause), CreatedMs: l.Stamp.NowMS, NextSegment: uint64(l.NextSegment),
		Leader: string(l.Stamp.Leader), Term: l.Stamp.Term,
		Segments: make([]*smqpb.Segment, len(l.Segments)),
		Sealed:   make([]*smqpb.SealedSegment, len(l.Sealed)),
		Reason:   l.Reason, PauseMs: l.PauseMS,
	}
	for i, s := range l.Segments {
		out.Segments[i] = segmentToProto(s)
	}
	for i, s := range l.Sealed {
		out.Sealed[i] = &smqpb.SealedSegment{
			Id: uint64(s.Segment), Lo: s.Range.Lo, Hi: s.Range.Hi, Empty: s.Empty,
			SealChunk: s.Chunk, SealHash: s.Hash, Unclean: s.Unclean, Messages: s.Messages, Bytes: s.Bytes,
		}
	}
	for _, load := range l.Loads {
		i := slices.IndexFunc(l.Sealed, func(s Sealed) bool { return s.Segment == load.Segment })
		if i >= 0 {
			out.Loads = append(out.Loads, LoadToProto(load, l.Sealed[i].Range))
		}
	}
	return out
}

// LoadToProto is the form that the load of a segment over r has on the wire,
// without its topic. It has the rates of partitions in single precision.
func LoadToProto(s SegmentLoad, r smq.Range) *smqpb.SegmentLoad {
	out := &smqpb.SegmentLoad{
		Segment: uint64(s.Segment), Lo: r.Lo, Hi: r.Hi, MessagesPerSecond: s.Messages, BytesPerSecond: s.Bytes,
		Partitions:        make([]int32, len(s.Partitions)),
		PartitionMessages: make([]float32, len(s.Partitions)),
		PartitionBytes:    make([]float32, len(s.Partitions)),
	}
	for i, p := range s.Partitions {
		out.Partitions[i], out.PartitionMessages[i], out.PartitionBytes[i] = p.Partition, float32(p.Messages), float32(p.Bytes)
	}
	return out
}

// LoadFromProto reads what LoadToProto makes. smq.ErrCorrupt when the lists of
// partitions and rates differ in length.
func LoadFromProto(in *smqpb.SegmentLoad) (SegmentLoad, error) {
	out := SegmentLoad{
		Segment: smq.SegmentID(in.GetSegment()), Load: Load{Messages: in.GetMessagesPerSecond(), Bytes: in.GetBytesPerSecond()},
	}
	n := len(in.GetPartitions())
	if len(in.GetPartitionMessages()) != n || len(in.GetPartitionBytes()) != n {
		return out, fmt.Errorf("load of segment %d is %w: %s, %d and %d rates", in.GetSegment(), smq.ErrCorrupt, smq.Count(n, "partition"), len(in.GetPartitionMessages()), len(in.GetPartitionBytes()))
	}
	for i, p := range in.GetPartitions() {
		out.Partitions = append(out.Partitions, PartitionLoad{
			Partition: p, Load: Load{Messages: float64(in.GetPartitionMessages()[i]), Bytes: float64(in.GetPartitionBytes()[i])},
		})
	}
	return out, nil
}

func segmentToProto(s Segment) *smqpb.Segment {
	out := &smqpb.Segment{
		Id: uint64(s.ID), Lo: s.Range.Lo, Hi: s.Range.Hi,
		Owner: string(s.Owner.Broker), OwnerAddress: s.Owner.Address,
	}
	for _, f := range s.Followers {
		out.Replicas = append(out.Replicas, &smqpb.Replica{Broker: string(f.Broker), Address: f.Address})
	}
	for _, p := range s.Predecessors {
		out.Predecessors = append(out.Predecessors, &smqpb.Predecessor{
			Segment: uint64(p.Segment), Lo: p.Range.Lo, Hi: p.Range.Hi, SealChunk: p.Chunk, SealHash: p.Hash,
		})
	}
	return out
}

// FromProto reads a version that came over the wire, and checks it as Decode
// does.
func FromProto(in *smqpb.Layout) (Layout, error) {
	l := Layout{
		Version: in.GetVersion(), Cause: Cause(in.GetCause()), NextSegment: smq.SegmentID(in.GetNextSegment()),
		Stamp:  Stamp{Leader: smq.BrokerID(in.GetLeader()), Term: in.GetTerm(), NowMS: in.GetCreatedMs()},
		Reason: in.GetReason(), PauseMS: in.GetPauseMs(),
	}
	for _, s := range in.GetSegments() {
		l.Segments = append(l.Segments, segmentFromProto(s))
	}
	for _, s := range in.GetSealed() {
		l.Sealed = append(l.Sealed, Sealed{
			Segment: smq.SegmentID(s.GetId()), Range: smq.Range{Lo: s.GetLo(), Hi: s.GetHi()}, Empty: s.GetEmpty(),
			Chunk: s.GetSealChunk(), Hash: s.GetSealHash(), Unclean: s.GetUnclean(), Messages: s.GetMessages(), Bytes: s.GetBytes(),
		})
	}
	for _, load := range in.GetLoads() {
		s, err := LoadFromProto(load)
		if err != nil {
			return Layout{}, err
		}
		l.Loads = append(l.Loads, s)
	}
	return l, l.Validate()
}

func segmentFromProto(s *smqpb.Segment) Segment {
	out := Segment{
		ID: smq.SegmentID(s.GetId()), Range: smq.Range{Lo: s.GetLo(), Hi: s.GetHi()},
		Owner: Member{Broker: smq.BrokerID(s.GetOwner()), Address: s.GetOwnerAddress()},
	}
	for _, r := range s.GetReplicas() {
		out.Followers = append(out.Followers, Member{Broker: smq.BrokerID(r.GetBroker()), Address: r.GetAddress()})
	}
	for _, p := range s.GetPredecessors() {
		out.Predecessors = append(out.Predecessors, Predecessor{
			Segment: smq.SegmentID(p.GetSegment()), Range: smq.Range{Lo: p.GetLo(), Hi: p.GetHi()},
			Chunk: p.GetSealChunk(), Hash: p.GetSealHash(),
		})
	}
	return out
}
