package admin

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// describedSegment is a segment as smq-admin describes it in JSON.
func (s *stub) describedSegment(t *testing.T, id string, code int) (view segmentDescriptionView, stderr string) {
	t.Helper()
	stdout, stderr, got := s.run(t, "segment", "describe", "orders", id, "-o", "json")
	if got != code {
		t.Fatalf("code %d, %s", got, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &view); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return view, stderr
}

// A segment's beginning, or its end, may be in a version of the layout that cannot be
// read: then what the others say is shown, and what is wrong.
func TestSegmentDescribeWithADamagedVersion(t *testing.T) {
	s := startStub(t)
	first := &smqpb.Segment{Id: 4, Hi: 64, Owner: "gg", OwnerAddress: "g:1", Replicas: []*smqpb.Replica{{Broker: "aa", Address: s.addr}}}
	s.versions = []*smqpb.Layout{
		{Version: 1, Cause: "create", Segments: []*smqpb.Segment{{Id: 1, Hi: 64}}},
		{Version: 2, Cause: "assign", Segments: []*smqpb.Segment{first}, Sealed: []*smqpb.SealedSegment{{Id: 1, Hi: 64, Empty: true}}},
		{Version: 3, Cause: "failover", PauseMs: 7, Segments: s.layout.Segments, Sealed: []*smqpb.SealedSegment{{Id: 4, Hi: 64, Messages: 9, SealChunk: 2, Unclean: true}}},
	}
	view, _ := s.describedSegment(t, "4", 0)
	if view.State != "sealed" || view.Owner != "gg" || view.OwnerState != "gone" || len(view.Followers) != 1 || view.Followers[0].State != "ok" ||
		view.Chunks != 3 || view.Opened.Version != 2 || view.Ended.Version != 3 || !view.Ended.Unclean || view.Ended.PauseMS != 7 || len(view.Ended.To) != 2 || view.TopicID != stubTopicID {
		t.Errorf("got %+v", view)
	}
	if stdout, _, _ := s.run(t, "segment", "describe", "orders/4"); !strings.Contains(stdout, "UNCLEAN: every replica was lost; to 5 [0,32) at ") {
		t.Errorf("got %s", stdout)
	}
	spoil := func(version uint64) {
		s.spoiled = []*smqpb.DamagedVersion{{Version: version, Error: rpc.ErrorInfo(smq.ErrCorrupt)}}
	}
	spoil(2)
	if view, stderr := s.describedSegment(t, "4", cli.ExitFailed); view.Opened != nil || view.Ended.Version != 3 || view.Segment != 4 || view.Hi != 64 || !strings.Contains(stderr, "corrupt") {
		t.Errorf("got %+v, %s", view, stderr)
	}
	spoil(3)
	if view, stderr := s.describedSegment(t, "4", cli.ExitFailed); view.Opened.Version != 2 || view.Ended != nil || view.State != "sealed" || !strings.Contains(stderr, "corrupt") {
		t.Errorf("got %+v, %s", view, stderr)
	}
}

// A broker that does not answer is described by what the masters know.
func TestBrokerDescribeOfASilentOne(t *testing.T) {
	s := startStub(t)
	s.others = []*smqpb.BrokerInfo{{Id: "bb", Address: "b:1", Silent: true}}
	stdout, stderr, code := s.run(t, "broker", "describe", "bb", "-o", "json")
	var view brokerDescriptionView
	if err := json.Unmarshal([]byte(stdout), &view); err != nil || code != 0 || view.State != "silent" || view.OpenSegments != nil || !strings.Contains(stderr, "it is silent") {
		t.Errorf("code %d, %v, %+v, %s", code, err, view, stderr)
	}
	if _, stderr, code := s.run(t, "broker", "describe", "cc"); code != cli.ExitNotFound || !strings.Contains(stderr, "broker cc: not found") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// Of a live segment the partitions that take something in are shown, the busiest first.
func TestSegmentDescribeShowsPartitions(t *testing.T) {
	s := startStub(t)
	s.versions = []*smqpb.Layout{s.layout}
	s.watch = func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(&smqpb.WatchUpdate{Reset_: true, Complete: true, Detail: &smqpb.TopicDetail{Config: s.config, Layout: s.layout, Loads: []*smqpb.SegmentLoad{
			{Segment: 6, Partitions: []int32{40}, PartitionMessages: []float32{1}, PartitionBytes: []float32{1}},
			{Segment: 5, Partitions: []int32{1, 2}, PartitionMessages: []float32{3, 4}, PartitionBytes: []float32{1000, 2000}},
		}}})
		return nil
	}
	view, _ := s.describedSegment(t, "5", 0)
	if got := view.PartitionLoads; len(got) != 2 || got[0] != (partitionView{2, loadView{4, 2000}}) || got[1].Partition != 1 || view.Ended != nil || view.Opened.Version != 4 {
		t.Errorf("got %+v", view)
	}
	stdout, _, _ := s.run(t, "segment", "describe", "orders", "5")
	if !regexp.MustCompile(`(?m)^ +2 +4msg/s +2kB/s$`).MatchString(stdout) {
		t.Errorf("got\n%s", stdout)
	}
}
