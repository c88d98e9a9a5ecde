package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// anEvent is the split of a segment.
func anEvent(topic string, version uint64) *smqpb.LayoutEvent {
	return &smqpb.LayoutEvent{
		Topic: topic, TopicId: topic + "-id", Version: version, Cause: "split", CreatedMs: 1_700_000_000_000 + int64(version),
		Sealed: []*smqpb.SealedSegment{{Id: 5, Lo: 0, Hi: 32}},
		Opened: []*smqpb.Segment{{Id: 7, Lo: 0, Hi: 8, Owner: "aa", OwnerAddress: "a:1"}, {Id: 8, Lo: 8, Hi: 32, Owner: "bb", OwnerAddress: "b:1"}},
		Loads:  []*smqpb.SegmentLoad{{Segment: 4, MessagesPerSecond: 1}, {Segment: 5, MessagesPerSecond: 41000, BytesPerSecond: 40.1e6}, {Segment: 6, MessagesPerSecond: 1}},
		Reason: "40.1MB/s is above <20MB/s>", PauseMs: 12, Leader: "aa", Segments: 3,
	}
}

func TestEvents(t *testing.T) {
	s := startStub(t)
	s.watch = func(_ int, send func(*smqpb.WatchUpdate)) error {
		failover := anEvent("orders", 6)
		failover.Cause, failover.Reason, failover.PauseMs, failover.Loads, failover.Sealed[0].Unclean = "failover", "bad\x1bthing", 0, nil, true
		send(&smqpb.WatchUpdate{Reset_: true, TimeMs: 1, Events: []*smqpb.LayoutEvent{anEvent("orders", 5), anEvent("clicks", 9), failover}})
		send(&smqpb.WatchUpdate{Complete: true, TimeMs: 2, Events: []*smqpb.LayoutEvent{{Topic: "orders", TopicId: "x", Deleted: true, CreatedMs: 1_700_000_000_000}}})
		return nil
	}
	for args, want := range map[string]string{
		"orders": `2023-11-14T22:13:20Z  orders  v5  split  5 [0,32) → 7 [0,8) at a:1, 8 [8,32) at b:1; 41000msg/s, 40.1MB/s; paused 12ms; 40.1MB/s is above <20MB/s>
2023-11-14T22:13:20Z  orders  v6  failover  5 [0,32) → 7 [0,8) at a:1, 8 [8,32) at b:1; segment 5 sealed uncleanly; bad thing
2023-11-14T22:13:20Z  orders  delete
`,
		"clicks -o plain": "clicks\t9\t2023-11-14T22:13:20Z\tsplit\t5:0-32\t7:0-8,8:8-32\t41000\t40100000\t12\t40.1MB/s is above <20MB/s>\t-\n",
		"clicks -o name":  "clicks\n",
		"clicks -o json": `{"topic":"clicks","topic_id":"clicks-id","version":9,"created_ms":1700000000009,"cause":"split",` +
			`"from":[{"segment":5,"lo":0,"hi":32,"unclean":false,"messages":0,"bytes":0,"messages_per_second":41000,"bytes_per_second":40100000}],` +
			`"to":[{"segment":7,"lo":0,"hi":8,"owner":"aa","owner_address":"a:1"},{"segment":8,"lo":8,"hi":32,"owner":"bb","owner_address":"b:1"}],` +
			`"pause_ms":12,"reason":"40.1MB/s is above <20MB/s>","leader":"aa","live_segments":3}` + "\n",
	} {
		stdout, stderr, code := s.run(t, append([]string{"events"}, strings.Fields(args)...)...)
		if code != 0 || stdout != want || stderr != "" {
			t.Errorf("%s: code %d, %s\ngot  %s\nwant %s", args, code, stderr, stdout, want)
		}
	}
	if stdout, stderr, code := s.run(t, "events", "none"); code != 4 || stdout != "" || !strings.Contains(stderr, "topic none: not found") {
		t.Errorf("a topic that does not exist: code %d, %q, %q", code, stdout, stderr)
	}
	if s.watched[0].EventsSinceMs != 1 || !s.watched[0].Events || s.watched[0].Topics {
		t.Errorf("watched %v", s.watched[0])
	}
	stdout, _, code := s.run(t, "events", "clicks", "-o", "yaml")
	if code != 0 || !strings.HasPrefix(stdout, "---\ntopic: clicks\n") {
		t.Errorf("code %d, %s", code, stdout)
	}
}

// ends is output that does something once it holds a number of lines.
type ends struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines int
	then  func()
	fail  error // of writes behind those lines
}

func (o *ends) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines == 0 && o.fail != nil {
		return 0, o.fail
	}
	o.text.Write(p)
	if o.lines--; o.lines == 0 && o.then != nil {
		o.then()
	}
	return len(p), nil
}

// Following goes on with the next leader, repeats nothing, and ends with the
// signal.
func TestEventsFollow(t *testing.T) {
	s := startStub(t)
	s.watch = func(n int, send func(*smqpb.WatchUpdate)) error {
		if n == 0 {
			send(&smqpb.WatchUpdate{Reset_: true, Complete: true, TimeMs: 1_700_000_000_000})
			send(&smqpb.WatchUpdate{TimeMs: 1_700_000_000_010, Events: []*smqpb.LayoutEvent{anEvent("orders", 5)}})
			return &rpc.NotLeaderError{Address: s.addr}
		}
		send(&smqpb.WatchUpdate{Reset_: true, Complete: true, TimeMs: 1_700_000_000_020, Events: []*smqpb.LayoutEvent{anEvent("orders", 5), anEvent("orders", 6)}})
		return nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &ends{lines: 2, then: func() { cancel(&cli.SignalError{Signal: syscall.SIGINT}) }}
	var stderr bytes.Buffer
	code := s.runIn(ctx, &cli.Env{Stdout: out, Stderr: &stderr}, "events", "-f", "-o", "json")
	lines := strings.Split(out.text.String(), "\n")
	if code != 130 || len(lines) != 3 || !strings.Contains(lines[0], `"version":5`) || !strings.Contains(lines[1], `"version":6`) {
		t.Errorf("code %d, %s", code, out.text.String())
	}
	if !strings.Contains(stderr.String(), "warning: the leading broker is gone, looking for the next one: not the leader") {
		t.Errorf("said %s", stderr.String())
	}
	if s.watched[0].EventsSinceMs != 0 {
		t.Errorf("watched %v", s.watched[0])
	}
}

// A reader that has left ends it quietly.
func TestEventsFollowedByNobody(t *testing.T) {
	s := startStub(t)
	s.watch = func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(&smqpb.WatchUpdate{Reset_: true, Complete: true, TimeMs: 1})
		for i := range uint64(1000) {
			send(&smqpb.WatchUpdate{TimeMs: 2, Events: []*smqpb.LayoutEvent{anEvent("orders", i+1)}})
		}
		return nil
	}
	var stderr bytes.Buffer
	code := s.runIn(t.Context(), &cli.Env{Stdout: &ends{lines: 1, fail: cli.ErrOutputClosed}, Stderr: &stderr}, "events", "-f")
	if code != 0 || stderr.Len() > 0 {
		t.Errorf("code %d, %s", code, stderr.String())
	}
	code = s.runIn(t.Context(), &cli.Env{Stdout: &ends{fail: errors.New("disk on fire")}, Stderr: &stderr}, "events", "-f")
	if code != cli.ExitFailed || stderr.String() != "smq-admin: disk on fire\n" {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}

func TestEventsSince(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for _, test := range []struct {
		text   string
		follow bool
		want   int64
	}{
		{"", true, 0}, {"", false, 1}, {"90s", true, 1_699_999_910_000}, {"1d", false, 1_699_913_600_000},
		{"1600000000", false, 1_600_000_000_000}, {"2020-09-13T12:26:40Z", true, 1_600_000_000_000}, {"100000d", true, 1},
	} {
		if got, err := sinceMS(test.text, test.follow, now); got != test.want || err != nil {
			t.Errorf("%q: %d, %v", test.text, got, err)
		}
	}
	s := startStub(t)
	for _, text := range []string{"yesterday", "-5m", "5", "90"} {
		if _, stderr, code := s.run(t, "events", "--since", text); code != cli.ExitUsage || !strings.Contains(stderr, fmt.Sprintf("--since %q", text)) {
			t.Errorf("code %d, %s", code, stderr)
		}
	}
}
