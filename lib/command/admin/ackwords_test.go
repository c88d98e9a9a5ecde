package admin

import "testing"

func TestAckWords(t *testing.T) {
	owned := func(followers int) layoutSegmentView {
		return layoutSegmentView{Owner: "a", Followers: make([]replicaView, followers)}
	}
	for _, c := range []struct {
		segments []layoutSegmentView
		want     string
	}{
		{[]layoutSegmentView{{}}, "not known before a segment has an owner"},
		{[]layoutSegmentView{owned(0), {}}, "stored: the message is in the store"},
		{[]layoutSegmentView{owned(2), owned(1)}, "replicated: 2 brokers hold the message, and the store soon after; with --acks stored: the message is in the store"},
		{[]layoutSegmentView{owned(0), owned(2)}, "replicated in 1 of 2 segments: 3 brokers hold the message, and the store soon after; in the others stored: the message is in the store"},
	} {
		if got := ackWords(c.segments); got != c.want {
			t.Errorf("%v: %q, want %q", c.segments, got, c.want)
		}
	}
}
