package tui

import (
	"fmt"
	"regexp"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// sgr is a sequence that sets colours, the only ones that frames may have.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// worldMS is the time in the tests' cluster: 2026-03-01 12:00:00 UTC.
const worldMS = 1772366400000

var brokerIDs = []string{"b1c0ffee00000001", "b2c0ffee00000002", "b3c0ffee00000003", "b4c0ffee00000004"}

func worldCluster() *smqpb.ClusterInfo {
	info := &smqpb.ClusterInfo{ClusterId: "c1a5500d00000000", LeadingMaster: "10.0.0.9:7300", Leader: &smqpb.LeaderInfo{Broker: brokerIDs[0], Address: "10.0.0.1:7310", Term: 3}}
	for i, id := range brokerIDs {
		info.Brokers = append(info.Brokers, &smqpb.BrokerInfo{
			Id: id, Address: fmt.Sprintf("10.0.0.%d:7310", i+1), HttpAddress: fmt.Sprintf("10.0.0.%d:7312", i+1),
			Rack: fmt.Sprintf("rack-%d", i%2+1), Version: "v0.3.0", JoinedMs: worldMS - int64(i+1)*5_400_000,
			Load: &smqpb.Load{MessagesPerSecond: float64(i) * 12_000, BytesPerSecond: float64(i) * 9.5e6, Segments: uint64(3 + i), MemoryUsed: uint64(i) * 300 << 20, MemoryLimit: 1 << 30},
		})
	}
	info.Brokers[2].Draining = true
	info.Brokers[3].Silent = true
	return info
}

// worldTopics are topics with names that sort and rates that do, in other orders.
func worldTopics(n int) []*smqpb.TopicStatus {
	var topics []*smqpb.TopicStatus
	for i := range n {
		rate := float64((i*7)%n) * 1500
		topics = append(topics, &smqpb.TopicStatus{
			Topic: fmt.Sprintf("topic-%02d", i), TopicId: fmt.Sprintf("id-%02d", i), Partitions: 64, Segments: int32(1 + i%3), LayoutVersion: uint64(2 + i),
			MessagesPerSecond: rate / 100, BytesPerSecond: rate, Mode: "auto",
		})
	}
	return append(topics, &smqpb.TopicStatus{
		Topic: "orders", TopicId: "id-orders", Partitions: 64, Segments: 4, LayoutVersion: 17, MessagesPerSecond: 42_000, BytesPerSecond: 31.4e6, Mode: "auto",
	})
}

func world() *smqpb.WatchUpdate {
	return &smqpb.WatchUpdate{Reset_: true, Complete: true, TimeMs: worldMS, Cluster: worldCluster(), Topics: worldTopics(30), Events: worldEvents()}
}

func worldEvents() []*smqpb.LayoutEvent {
	owner := func(id uint64, lo, hi int32, broker int) *smqpb.Segment {
		return &smqpb.Segment{Id: id, Lo: lo, Hi: hi, Owner: brokerIDs[broker], OwnerAddress: fmt.Sprintf("10.0.0.%d:7310", broker+1), Replicas: []*smqpb.Replica{{Broker: brokerIDs[3-broker], Address: fmt.Sprintf("10.0.0.%d:7310", 4-broker)}}}
	}
	return []*smqpb.LayoutEvent{
		{Topic: "orders", TopicId: "id-orders", Version: 15, Cause: "split", CreatedMs: worldMS - 90_000, Leader: brokerIDs[0], PauseMs: 84, Segments: 2,
			Reason: "24.1 MB/s is above 20 MB/s", Sealed: []*smqpb.SealedSegment{{Id: 3, Hi: 64, SealChunk: 911, Messages: 5_400_000, Bytes: 3 << 30}},
			Opened: []*smqpb.Segment{owner(4, 0, 32, 0), owner(5, 32, 64, 1)}, Loads: []*smqpb.SegmentLoad{{Segment: 3, MessagesPerSecond: 31_000, BytesPerSecond: 24.1e6}}},
		{Topic: "topic-07", TopicId: "id-07", Version: 9, Cause: "failover", CreatedMs: worldMS - 60_000, Leader: brokerIDs[0], PauseMs: 2300, Segments: 1,
			Sealed: []*smqpb.SealedSegment{{Id: 2, Hi: 64, SealChunk: 12, Unclean: true}}, Opened: []*smqpb.Segment{owner(3, 0, 64, 2)}},
		{Topic: "topic-99", TopicId: "id-99", Deleted: true, CreatedMs: worldMS - 45_000, Leader: brokerIDs[0]},
		{Topic: "orders", TopicId: "id-orders", Version: 16, Cause: "split", CreatedMs: worldMS - 30_000, Leader: brokerIDs[0], PauseMs: 71, Segments: 3,
			Reason: "22.9 MB/s is above 20 MB/s", Sealed: []*smqpb.SealedSegment{{Id: 4, Hi: 32, SealChunk: 40, Messages: 90_000, Bytes: 60 << 20}},
			Opened: []*smqpb.Segment{owner(6, 0, 17, 0), owner(7, 17, 32, 2)}},
		{Topic: "orders", TopicId: "id-orders", Version: 17, Cause: "split", CreatedMs: worldMS - 12_000, Leader: brokerIDs[0], PauseMs: 66, Segments: 4,
			Reason: "partition 17 alone carries 70 %: by itself", Sealed: []*smqpb.SealedSegment{{Id: 7, Lo: 17, Hi: 32, SealChunk: 8, Messages: 40_000, Bytes: 30 << 20}},
			Opened: []*smqpb.Segment{owner(8, 17, 18, 2), owner(9, 18, 32, 3)}},
	}
}

// worldDetail is the topic orders: idle, warm, hot and above the threshold.
func worldDetail() *smqpb.TopicDetail {
	d := &smqpb.TopicDetail{
		Config:  &smqpb.TopicConfig{Topic: "orders", TopicId: "id-orders", Partitions: 64},
		Layout:  &smqpb.Layout{Version: 17, Cause: "split"},
		Notes:   []string{"segment 8: partition 17 alone carries all of 26.1 MB/s: a hot key"},
		Scaling: &smqpb.Scaling{Mode: "auto", SplitBytesPerSecond: 20e6, SplitMessagesPerSecond: 50_000, MinSegments: 1, MaxSegments: 64},
	}
	for _, e := range worldEvents() {
		if e.GetTopicId() == "id-orders" {
			d.Layout.Segments = append(d.Layout.Segments, e.GetOpened()...)
		}
	}
	var keep []*smqpb.Segment
	for _, id := range []uint64{6, 8, 9, 5} {
		for _, s := range d.Layout.Segments {
			if s.GetId() == id {
				keep = append(keep, s)
				break
			}
		}
	}
	d.Layout.Segments = keep
	d.Layout.Segments[1].Predecessors = []*smqpb.Predecessor{{Segment: 7, Lo: 17, Hi: 32, SealChunk: 8}}
	for i, s := range d.Layout.Segments {
		l := &smqpb.SegmentLoad{Topic: "orders", TopicId: "id-orders", Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi()}
		l.BytesPerSecond = []float64{4.1e6, 26.1e6, 0, 11e6}[i]
		l.MessagesPerSecond = l.BytesPerSecond / 750
		busy := int32(0)
		for p := s.GetLo(); p < s.GetHi() && l.BytesPerSecond > 0; p += 3 {
			busy++
		}
		for p := s.GetLo(); p < s.GetHi() && l.BytesPerSecond > 0; p += 3 {
			l.Partitions = append(l.Partitions, p)
			l.PartitionBytes = append(l.PartitionBytes, float32(l.BytesPerSecond)/float32(busy)*float32(1+p%2)/1.5)
			l.PartitionMessages = append(l.PartitionMessages, float32(l.MessagesPerSecond)/float32(busy))
		}
		d.Loads = append(d.Loads, l)
	}
	return d
}
