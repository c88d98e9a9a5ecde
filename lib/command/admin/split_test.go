package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestTopicSplit(t *testing.T) {
	s := startStub(t)
	_, stderr, code := s.run(t, "topic", "split", "orders", "5", "--at", "8", "--wait")
	want := strings.ReplaceAll("smq-admin: segment 5 [0,32) at ADDR of topic orders replaced by 7 [0,8) at ADDR, 8 [8,32) at ADDR (layout version 5)\n", "ADDR", s.addr)
	if code != 0 || stderr != want {
		t.Errorf("code %d\ngot  %s\nwant %s", code, stderr, want)
	}
	if len(s.split) != 1 || s.split[0].Segment != 5 || s.split[0].At != 8 || s.split[0].TopicId != stubTopicID {
		t.Errorf("asked for %v", s.split)
	}
	if !slices.Equal(s.asked, []int32{0, 8}) {
		t.Errorf("the owners were asked about partitions %v", s.asked)
	}
}

func TestTopicMerge(t *testing.T) {
	s := startStub(t)
	_, stderr, code := s.run(t, "topic", "merge", "orders", "6", "5")
	want := strings.ReplaceAll("smq-admin: segments 5 [0,32) at ADDR, 6 [32,64) at ADDR of topic orders replaced by 7 [0,64) at ADDR (layout version 5)\n", "ADDR", s.addr)
	if code != 0 || stderr != want {
		t.Errorf("code %d\ngot  %s\nwant %s", code, stderr, want)
	}
	if len(s.merged) != 1 || !slices.Equal(s.merged[0].Segments, []uint64{6, 5}) || s.asked != nil {
		t.Errorf("asked for %v, and about partitions %v", s.merged, s.asked)
	}
}

func TestReshapeRefusals(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		text string
	}{
		{"split orders 9", cli.ExitNotFound, "segment 9 of topic orders: not found among the live ones; smq-admin topic describe orders shows them"},
		{"split none 5", cli.ExitNotFound, "topic none: not found; smq-admin topic list shows those that there are"},
		{"split orders five", cli.ExitUsage, `segment "five" is not a number`},
		{"split orders 0", cli.ExitUsage, `segment "0" is not a number`},
		{"split orders", cli.ExitUsage, "SEGMENT is missing"},
		{"split orders 5 6", cli.ExitUsage, `unexpected argument "6"`},
		{"split orders 5 --at 0", cli.ExitUsage, "--at 0: the second segment begins with partition 1 at the least"},
		{"merge orders 5", cli.ExitUsage, "SEGMENT is missing"},
		{"merge orders 5 5", cli.ExitUsage, "segment 5 is named twice"},
		{"merge orders 5 6", cli.ExitRefused, "merge segments [5 6] of topic orders: leading broker"},
		{"split orders 5", cli.ExitRefused, "segment 5 is being changed: conflict"},
	} {
		s := startStub(t)
		s.refuse = fmt.Errorf("segment 5 is being changed: %w", smq.ErrConflict)
		_, stderr, code := s.run(t, append([]string{"topic"}, strings.Fields(test.args)...)...)
		if code != test.code || !strings.Contains(stderr, test.text) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %s", test.args, code, stderr)
		}
	}
}

func TestListSegments(t *testing.T) {
	var refs []segmentRef
	for i := range 6 {
		refs = append(refs, segmentRef{Segment: uint64(i + 1), Lo: int32(i), Hi: int32(i + 1)})
	}
	if got, want := listSegments(refs), "1 [0,1), 2 [1,2), 3 [2,3), 4 [3,4), and 2 more"; got != want {
		t.Errorf("got %s", got)
	}
	if got, want := plainSegments(refs[:2]), "1:0-1,2:1-2"; got != want {
		t.Errorf("got %s", got)
	}
}
