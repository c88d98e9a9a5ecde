package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// hostile are texts that could break a line, or drive a terminal.
var hostile = []string{
	"esc\x1b[2J\x1b]0;title\x07", "line\nbreak\r\ttab", "c1\u009b31m\u0085", "\xff\xfe broken", "nul\x00del\x7f",
	strings.Repeat("long", 60), strings.Repeat("漢字", 60), "漢", "한국어ㅎㅏㄴ", "e\u0301\u0302\u0303 combining", "zero\u200b\u200d\ufeffwidth",
	"right\u202eto left\u2066", "👩‍👩‍👧‍👦 family", "👍🏽 skin", "🇩🇪🇫🇷 flags", "☎️ text", "\u2028\u2029 separators", "ｗｉｄｅ", "عربى עברית", "",
}

// Whatever the cluster calls its things, each line stays in its place.
func TestHostileNames(t *testing.T) {
	for _, size := range sizes {
		for _, options := range []Options{{}, {ASCII: true, NoColor: true}} {
			for i, name := range hostile {
				t.Run(fmt.Sprintf("%dx%d/%v/%d", size.w, size.h, options.ASCII, i), func(t *testing.T) {
					c := newConsole(t, size.w, size.h, options)
					d := hostileTopic(name)
					c.tell(hostileWorld(name))
					look := func() {
						t.Helper()
						frame := c.frame()
						if options.ASCII && !isPlain(strings.ReplaceAll(frame, "\n", "")) {
							t.Errorf("not only ASCII:\n%s", frame)
						}
					}
					look()
					c.press("enter")
					c.send(updatesMsg{topic: name, updates: []*smqpb.WatchUpdate{{Detail: d}}})
					for _, keys := range []string{"", "S", "esc M", "esc enter", "y", "2", "enter", "d", "esc esc", "3", "enter", "1", "/ " + strings.ReplaceAll(name, " ", "")} {
						c.press(keys)
						look()
					}
					c.send(updatesMsg{lost: fmt.Errorf("lost: %s", name)})
					look()
				})
			}
		}
	}
}

func hostileWorld(name string) *smqpb.WatchUpdate {
	return &smqpb.WatchUpdate{Reset_: true, Complete: true, TimeMs: worldMS,
		Cluster: &smqpb.ClusterInfo{ClusterId: name, Leader: &smqpb.LeaderInfo{Broker: name, Address: name},
			Brokers: []*smqpb.BrokerInfo{{Id: name, Address: name, Rack: name, Version: name, HttpAddress: name}}},
		Topics: []*smqpb.TopicStatus{{Topic: name, TopicId: name, Mode: name, Partitions: 1 << 30, Segments: 1 << 30, LayoutVersion: 1 << 63, MessagesPerSecond: 1e300, BytesPerSecond: -1}},
		Events: []*smqpb.LayoutEvent{{Topic: name, TopicId: name, Cause: name, Reason: name, Leader: name, PauseMs: 1 << 60, CreatedMs: 1 << 45,
			Sealed: []*smqpb.SealedSegment{{Id: 1 << 63, Hi: 1 << 30, Unclean: true}}, Opened: []*smqpb.Segment{{Id: 1, Owner: name, Replicas: []*smqpb.Replica{{Broker: name}}}}}},
	}
}

func hostileTopic(name string) *smqpb.TopicDetail {
	return &smqpb.TopicDetail{
		Config: &smqpb.TopicConfig{Topic: name, TopicId: name, Partitions: 3},
		Layout: &smqpb.Layout{Version: 3, Cause: name, Segments: []*smqpb.Segment{
			{Id: 1, Lo: 0, Hi: 1, Owner: name, OwnerAddress: name, Replicas: []*smqpb.Replica{{Broker: name, Address: name}}, Predecessors: make([]*smqpb.Predecessor, 9)},
			{Id: 2, Lo: 1, Hi: 3, Owner: "gone"},
		}},
		Loads: []*smqpb.SegmentLoad{
			{Segment: 1, BytesPerSecond: 1e300, MessagesPerSecond: -1, Partitions: []int32{-1, 0, 5, 1 << 30}, PartitionBytes: []float32{1, 2}, PartitionMessages: []float32{1}},
			{Segment: 99},
		},
		Notes:   []string{name, strings.Repeat(name+" ", 9)},
		Scaling: &smqpb.Scaling{Mode: name, SplitBytesPerSecond: 1},
	}
}

// A layout that lacks what it should have, or has what it should not, is drawn
// as far as it goes.
func TestStrangeLayouts(t *testing.T) {
	for _, size := range sizes {
		for _, partitions := range []int32{0, 1, 7, 100_000} {
			for _, segments := range []int32{0, 1, 3, 500} {
				c := newConsole(t, size.w, size.h, Options{Topic: "t"})
				d := &smqpb.TopicDetail{Config: &smqpb.TopicConfig{Topic: "t", Partitions: partitions}, Layout: &smqpb.Layout{}}
				for i := range segments {
					lo, hi := int32(int64(partitions)*int64(i)/int64(segments)), int32(int64(partitions)*int64(i+1)/int64(segments))
					d.Layout.Segments = append(d.Layout.Segments, &smqpb.Segment{Id: uint64(i + 1), Lo: lo, Hi: hi})
					d.Loads = append(d.Loads, &smqpb.SegmentLoad{Segment: uint64(i + 1), BytesPerSecond: float64(i)})
				}
				c.tellTopic(d)
				for range 4 {
					c.frame()
					c.press("end")
				}
			}
		}
	}
}

// Where segments share a column, it shows the busiest, and the selected one.
func TestCrowdedRing(t *testing.T) {
	c := newConsole(t, 50, 30, Options{Topic: "t", NoColor: true})
	d := &smqpb.TopicDetail{Config: &smqpb.TopicConfig{Topic: "t", Partitions: 1000}, Layout: &smqpb.Layout{}, Scaling: &smqpb.Scaling{Mode: "auto", SplitBytesPerSecond: 100}}
	for i := range 500 {
		d.Layout.Segments = append(d.Layout.Segments, &smqpb.Segment{Id: uint64(i + 1), Lo: int32(2 * i), Hi: int32(2*i + 2)})
		load := &smqpb.SegmentLoad{Segment: uint64(i + 1), BytesPerSecond: 10}
		if i == 123 {
			load.BytesPerSecond = 200
		}
		d.Loads = append(d.Loads, load)
	}
	c.tellTopic(d)
	for range 321 {
		c.press("down")
	}
	lines := strings.Split(c.frame(), "\n")
	if bar, want := lines[6], strings.Repeat("░", 12)+"!"+strings.Repeat("░", 37); bar != want {
		t.Errorf("bar\n%s\nwant\n%s", bar, want)
	}
	if marks, want := lines[8], strings.Repeat(" ", 32)+"▲"; marks != want {
		t.Errorf("marks\n%q\nwant\n%q", marks, want)
	}
}
