package admin

import (
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestJoinLayout(t *testing.T) {
	d := &smqpb.DescribeTopicResponse{
		Config: &smqpb.TopicConfig{Topic: "t", TopicId: "id"},
		Layout: &smqpb.Layout{Segments: []*smqpb.Segment{
			{Id: 5, Lo: 0, Hi: 2, Owner: "aa", OwnerAddress: "a:1"},
			{Id: 6, Lo: 2, Hi: 3},
			{Id: 7, Lo: 3, Hi: 4, Owner: "bb", OwnerAddress: "b:1"},
		}},
	}
	open := []segmentView{
		{Topic: "t", TopicID: "id", Segment: 5, Owner: "aa", State: "open", Messages: 9},
		{Topic: "t", TopicID: "id", Segment: 7, Owner: "aa", State: "fenced"}, // of an earlier owner
		{Topic: "t", TopicID: "earlier", Segment: 7, Owner: "bb", State: "open"},
	}
	want := []segmentView{
		open[0],
		{Topic: "t", TopicID: "id", Segment: 6, Lo: 2, Hi: 3, State: "unassigned"},
		{Topic: "t", TopicID: "id", Segment: 7, Lo: 3, Hi: 4, Owner: "bb", OwnerAddress: "b:1", OwnerState: "gone", State: "assigned"},
	}
	got := joinLayout(d, open, &smqpb.ClusterInfo{Brokers: []*smqpb.BrokerInfo{{Id: "aa"}}})
	if len(got) != len(want) {
		t.Fatalf("got %d segments", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("segment %d:\ngot  %+v\nwant %+v", i, got[i], want[i])
		}
	}
}
