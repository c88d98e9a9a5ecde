package tui

import (
	"cmp"
	"slices"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// detail is the topic that is looked at.
type detail struct {
	topic              string
	*smqpb.TopicDetail // nil until it has been told of
	segments           map[uint64]*liveSegment
	busiest            float64              // bytes/s of the busiest segment
	past               []*smqpb.LayoutEvent // changes that the store has
}

// liveSegment is a live segment, what it takes in, and what it took in lately.
type liveSegment struct {
	*smqpb.Segment
	load  *smqpb.SegmentLoad // nil while it is not known
	rates history            // bytes/s
}

// look begins to look at a topic; "" at none.
func (s *state) look(topic string) {
	s.detail = nil
	if topic != "" {
		s.detail = &detail{topic: topic}
	}
}

// applyDetail takes what is told of the topic that is looked at.
func (s *state) applyDetail(d *smqpb.TopicDetail) {
	if s.detail == nil || d == nil {
		return
	}
	before := s.detail
	if before.TopicDetail != nil && before.GetConfig().GetTopicId() != d.GetConfig().GetTopicId() {
		before = &detail{} // another topic of the same name
	}
	next := &detail{topic: s.detail.topic, TopicDetail: d, segments: make(map[uint64]*liveSegment), past: before.past}
	for _, segment := range d.GetLayout().GetSegments() {
		live := &liveSegment{Segment: segment}
		if old := before.holder(segment); old != nil {
			live.rates = old.rates
		}
		next.segments[segment.GetId()] = live
	}
	for _, load := range d.GetLoads() {
		if live := next.segments[load.GetSegment()]; live != nil {
			live.load = load
			next.busiest = max(next.busiest, load.GetBytesPerSecond())
		}
	}
	s.detail = next
}

// holder is who had a segment's partitions, just these: the segment itself, or
// the one that it has followed. nil: no one had.
func (d *detail) holder(segment *smqpb.Segment) *liveSegment {
	if same := d.segments[segment.GetId()]; same != nil {
		return same
	}
	for _, p := range segment.GetPredecessors() {
		if old := d.segments[p.GetSegment()]; old != nil && old.GetLo() == segment.GetLo() && old.GetHi() == segment.GetHi() {
			return old
		}
	}
	return nil
}

// takePast takes the changes that the store has of a topic.
func (s *state) takePast(topicID string, past []*smqpb.LayoutEvent) {
	if s.detail != nil && s.detail.GetConfig().GetTopicId() == topicID {
		s.detail.past = past
	}
}

// changes are the changes of the topic that is looked at, newest first, as far
// as they are known: those of the feed, and older ones from the store.
func (s *state) changes() []*smqpb.LayoutEvent {
	id := s.detail.GetConfig().GetTopicId()
	var all []*smqpb.LayoutEvent
	seen := make(map[uint64]bool)
	for _, e := range slices.Backward(s.events) {
		if e.GetTopicId() == id {
			all = append(all, e)
			seen[e.GetVersion()] = true
		}
	}
	for _, e := range slices.Backward(s.detail.past) {
		if !seen[e.GetVersion()] {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *smqpb.LayoutEvent) int { return -cmp.Compare(a.GetVersion(), b.GetVersion()) })
	return all
}

// frozen is a copy that further samples do not change.
func (d *detail) frozen() *detail {
	if d == nil {
		return nil
	}
	c := *d
	c.segments = make(map[uint64]*liveSegment, len(d.segments))
	for id, live := range d.segments {
		same := *live
		same.rates = live.rates.copied()
		c.segments[id] = &same
	}
	return &c
}

// part is a segment's load as a part of the threshold above which it is split,
// or, where there is none, of the topic's busiest segment.
func (d *detail) part(load *smqpb.SegmentLoad) float64 {
	perBytes, perMessages := d.GetScaling().GetSplitBytesPerSecond(), d.GetScaling().GetSplitMessagesPerSecond()
	if !d.hasThreshold() {
		perBytes = d.busiest * 1.0001 // so that the busiest is not above it
	}
	var part float64
	if perBytes > 0 {
		part = load.GetBytesPerSecond() / perBytes
	}
	if perMessages > 0 {
		part = max(part, load.GetMessagesPerSecond()/perMessages)
	}
	return part
}

// hasThreshold reports whether the topic has a threshold for splits.
func (d *detail) hasThreshold() bool {
	return d.GetScaling().GetSplitBytesPerSecond() > 0 || d.GetScaling().GetSplitMessagesPerSecond() > 0
}
