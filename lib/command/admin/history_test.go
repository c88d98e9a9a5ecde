package admin

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestTopicHistory(t *testing.T) {
	s := startStub(t)
	first := &smqpb.Segment{Id: 1, Hi: 64, Owner: "aa", OwnerAddress: "a:1"}
	left, right := &smqpb.Segment{Id: 2, Hi: 32, Owner: "aa", OwnerAddress: "a:1"}, &smqpb.Segment{Id: 3, Lo: 32, Hi: 64}
	last := &smqpb.Segment{Id: 4, Lo: 32, Hi: 64, Owner: "bb", OwnerAddress: "b:1"}
	s.versions = []*smqpb.Layout{
		{Version: 1, Cause: "create", CreatedMs: 1_700_000_000_000, Segments: []*smqpb.Segment{first}},
		{
			Version: 2, Cause: "split", CreatedMs: 1_700_000_001_000, Segments: []*smqpb.Segment{left, right},
			Sealed: []*smqpb.SealedSegment{{Id: 1, Hi: 64, Messages: 9}}, PauseMs: 7, Reason: "too much",
			Loads: []*smqpb.SegmentLoad{{Segment: 1, MessagesPerSecond: 12.34567, BytesPerSecond: 2e6}},
		},
		{Version: 3, Cause: "assign", CreatedMs: 1_700_000_002_000, Segments: []*smqpb.Segment{left, last}, Sealed: []*smqpb.SealedSegment{{Id: 3, Lo: 32, Hi: 64, Empty: true}}},
	}
	stdout, stderr, code := s.run(t, "topic", "history", "orders")
	for _, line := range []string{
		`(?m)^VERSION +TIME +CAUSE +FROM +TO +LOAD +PAUSE +REASON$`,
		`(?m)^ +1 +2023-11-14T22:13:20Z +create +- +1 \[0,64\) at a:1 +- +- +-$`,
		`(?m)^ +2 +2023-11-14T22:13:21Z +split +1 \[0,64\) +2 \[0,32\) at a:1, 3 \[32,64\) +12msg/s, 2MB/s +7ms +too much$`,
		`(?m)^ +3 +2023-11-14T22:13:22Z +assign +3 \[32,64\) +4 \[32,64\) at b:1 +- +- +-$`,
	} {
		if !regexp.MustCompile(line).MatchString(stdout) {
			t.Errorf("no line %s in\n%s", line, stdout)
		}
	}
	if code != 0 || stderr != "" {
		t.Errorf("code %d, %s", code, stderr)
	}
	stdout, _, _ = s.run(t, "topic", "history", "orders", "-o", "plain")
	if want := "2\t2023-11-14T22:13:21Z\tsplit\t1:0-64\t2:0-32,3:32-64\t12\t2000000\t7\ttoo much\t-"; strings.Split(stdout, "\n")[1] != want {
		t.Errorf("plain:\n%s", stdout)
	}
	stdout, _, _ = s.run(t, "topic", "history", "orders", "-o", "json")
	var got []changeView
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got) != 3 || *got[1].From[0].MessagesPerSecond != 12.346 || got[1].Segments != 2 || got[0].TopicID != stubTopicID {
		t.Errorf("%v, %s", err, stdout)
	}
	if _, stderr, code := s.run(t, "topic", "history", "none"); code != cli.ExitNotFound || !strings.Contains(stderr, "topic none: not found; smq-admin topic list") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// A segment of which every replica was lost, and whose load the new leader does
// not know.
func TestTopicHistoryShowsUncleanSeals(t *testing.T) {
	s := startStub(t)
	s.versions = []*smqpb.Layout{{
		Version: 2, Cause: "failover", CreatedMs: 1_700_000_000_000, Segments: []*smqpb.Segment{{Id: 9, Hi: 64, Owner: "aa", OwnerAddress: "a:1"}},
		Sealed: []*smqpb.SealedSegment{{Id: 6, Lo: 4, Hi: 64}, {Id: 7, Hi: 4, Unclean: true}},
	}}
	stdout, _, _ := s.run(t, "topic", "history", "orders")
	if line := `(?m)^ +2 +\S+ +failover +7 \[0,4\) UNCLEAN, 6 \[4,64\) +9 \[0,64\) at a:1 +- +- +-$`; !regexp.MustCompile(line).MatchString(stdout) {
		t.Errorf("no line %s in\n%s", line, stdout)
	}
	stdout, _, _ = s.run(t, "topic", "history", "orders", "-o", "plain")
	if want := "2\t2023-11-14T22:13:20Z\tfailover\t6:4-64,7:0-4\t9:0-64\t-\t-\t0\t-\t7\n"; stdout != want {
		t.Errorf("plain:\n%s", stdout)
	}
	stdout, _, _ = s.run(t, "topic", "history", "orders", "-o", "json")
	var got []struct {
		From []map[string]any `json:"from"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got) != 1 || len(got[0].From) != 2 {
		t.Fatalf("%v, %s", err, stdout)
	}
	for _, name := range []string{"messages_per_second", "bytes_per_second"} {
		if rate, there := got[0].From[1][name]; rate != nil || !there {
			t.Errorf("%s of a load that is not known is %v", name, rate)
		}
	}
}

func TestTopicDescribeShowsLoads(t *testing.T) {
	s := startStub(t)
	s.config.Replicas = 2
	s.config.Scaling = &smqpb.Scaling{MaxSegments: 16}
	s.layout.Segments[0].Replicas = []*smqpb.Replica{{Broker: "cc", Address: "c:1"}}
	stdout, stderr, code := s.run(t, "topic", "describe", "orders")
	for _, line := range []string{`(?m)^load: +not known$`, `(?m)^scaling: +by default: at most 16 segments$`, `(?m)^replicas: +2$`, `(?m)^ +5 +\[0,32\) +aa +\S+ +c:1 +- +-$`} {
		if !regexp.MustCompile(line).MatchString(stdout) {
			t.Errorf("a leader that knows no watch: no line %s in\n%s", line, stdout)
		}
	}
	if code != 0 || stderr != "" {
		t.Errorf("code %d, %s", code, stderr)
	}
	detail := &smqpb.TopicDetail{
		Config: s.config, Layout: s.layout, Notes: []string{"segment 5: partition 17 alone carries 96 %: a hot key"},
		Scaling: &smqpb.Scaling{Mode: "auto", SplitBytesPerSecond: 20e6, SplitMessagesPerSecond: 50000, MinSegments: 1, MaxSegments: 16, CoolDownMs: 10_000},
		Loads:   []*smqpb.SegmentLoad{{Segment: 6, MessagesPerSecond: 1000, BytesPerSecond: 1e6}, {Segment: 5, MessagesPerSecond: 500, BytesPerSecond: 5e5}},
	}
	s.watch = func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(&smqpb.WatchUpdate{Reset_: true, Complete: true, Detail: detail})
		return nil
	}
	stdout, stderr, code = s.run(t, "topic", "describe", "orders", "--offsets")
	for _, line := range []string{
		`(?m)^load: +1500msg/s, 1.5MB/s$`,
		`(?m)^scaling: +auto: split above 20MB/s, split above 50000msg/s, at least 1 segment, at most 16 segments, cool-down 10s$`,
		`(?m)^ +5 +\[0,32\) +aa +\S+ +c:1 +500msg/s +500kB/s$`,
		`(?m)^note: segment 5: partition 17 alone carries 96 %: a hot key$`,
		`(?m)^PARTITION +EARLIEST +END$`,
	} {
		if !regexp.MustCompile(line).MatchString(stdout) {
			t.Errorf("no line %s in\n%s", line, stdout)
		}
	}
	if code != 0 || stderr != "" || s.watched[1].Topic != "orders" {
		t.Errorf("code %d, %s, watched %v", code, stderr, s.watched)
	}
	// What is told of another topic of the name is not this one's.
	detail.Config = &smqpb.TopicConfig{TopicId: "another"}
	stdout, _, _ = s.run(t, "topic", "describe", "orders", "-o", "json")
	var got describedView
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Load != nil || got.Scaling != nil || got.ScalingSet.MaxSegments != 16 || got.Notes == nil {
		t.Errorf("%v, %s", err, stdout)
	}
}

// A segment that nobody uses keeps the brokers that it was given.
func TestTopicDescribeMarksBrokersThatAreGone(t *testing.T) {
	s := startStub(t)
	s.layout.Segments = append(s.layout.Segments, &smqpb.Segment{Id: 9, Lo: 64, Hi: 65})
	s.layout.Segments[0].Replicas = []*smqpb.Replica{{Broker: "cc", Address: "c:1"}, {Broker: "aa", Address: "a:1"}}
	s.layout.Segments[1].Owner, s.layout.Segments[1].OwnerAddress = "bb", "b:1"
	known := &smqpb.ClusterInfo{Brokers: []*smqpb.BrokerInfo{{Id: "aa", Draining: true}, {Id: "dd"}}}
	detail := &smqpb.TopicDetail{Config: s.config, Layout: s.layout}
	type states struct {
		owner     string
		followers []string
	}
	for _, test := range []struct {
		cluster *smqpb.ClusterInfo
		want    []states
		lines   []string
	}{
		{nil, []states{{"", []string{"", ""}}, {"", nil}, {"", nil}}, []string{`(?m)^ +5 .* c:1, a:1 `, `(?m)^ +6 .* b:1 `}},
		{known, []states{{"draining", []string{"gone", "draining"}}, {"gone", nil}, {"", nil}}, []string{`(?m)^ +5 .* c:1 \(gone\), a:1 \(draining\) `, `(?m)^ +6 .* b:1 \(gone\) `, `(?m)^ +9 .* - +- +-`}},
	} {
		s.answerWatch(func(_ int, send func(*smqpb.WatchUpdate)) error {
			send(&smqpb.WatchUpdate{Reset_: true, Complete: true, Cluster: test.cluster, Detail: detail})
			return nil
		})
		for _, args := range [][]string{{"topic", "describe", "orders"}, {"top", "--once", "orders"}} {
			text, _, code := s.run(t, args...)
			for _, line := range test.lines {
				if code != cli.ExitDone || !regexp.MustCompile(line).MatchString(text) {
					t.Errorf("%v: code %d, no line %s in\n%s", args, code, line, text)
				}
			}
			out, _, _ := s.run(t, append(args, "-o", "json")...)
			var got describedView
			if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Segments) != len(test.want) {
				t.Fatalf("%v, %s", err, out)
			}
			for i, want := range test.want {
				var followers []string
				for _, f := range got.Segments[i].Followers {
					followers = append(followers, f.State)
				}
				if now := got.Segments[i]; now.OwnerState != want.owner || !slices.Equal(followers, want.followers) {
					t.Errorf("%v: segment %d: owner %q, followers %q, want %v", args, now.Segment, now.OwnerState, followers, want)
				}
			}
		}
	}
}
