package layout_test

import (
	"slices"
	"testing"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestReplenish(t *testing.T) {
	member := func(id smq.BrokerID) layout.Member { return layout.Member{Broker: id, Address: string(id) + ":1"} }
	l := layout.Layout{Segments: []layout.Segment{
		{ID: 2, Range: smq.Range{Lo: 0, Hi: 2}, Owner: member("a")},
		{ID: 3, Range: smq.Range{Lo: 2, Hi: 4}, Owner: member("b"), Followers: []layout.Member{member("a")}},
		{ID: 4, Range: smq.Range{Lo: 4, Hi: 8}},
	}}
	for _, c := range []struct {
		replicas, brokers int
		want              []smq.SegmentID
	}{
		{1, 3, nil},
		{2, 1, nil},
		{2, 2, []smq.SegmentID{2}},
		{3, 2, []smq.SegmentID{2}},
		{3, 3, []smq.SegmentID{2, 3}},
	} {
		var got []smq.SegmentID
		for _, d := range layout.Replenish(l, c.replicas, c.brokers) {
			s := d.Segments[0]
			got = append(got, s.ID)
			if d.Cause != layout.Move || !slices.Equal(d.Ranges, []smq.Range{s.Range}) || d.Owners[0] != s.Owner.Broker || d.Reason == "" {
				t.Errorf("%+v", d)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d replicas, %d brokers: segments %v, want %v", c.replicas, c.brokers, got, c.want)
		}
	}
}
