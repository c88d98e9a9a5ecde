//go:build unix

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// topWorld is what the stub tells of itself.
func topWorld() *smqpb.WatchUpdate {
	return &smqpb.WatchUpdate{
		Reset_: true, Complete: true, TimeMs: 1_700_000_000_000,
		Cluster: &smqpb.ClusterInfo{ClusterId: "cafe", LeadingMaster: "m:1", Leader: &smqpb.LeaderInfo{Broker: "aa", Address: "a:1"}, Brokers: []*smqpb.BrokerInfo{
			{Id: "aa", Address: "a:1", Rack: "r1", Load: &smqpb.Load{MessagesPerSecond: 41_000, BytesPerSecond: 40.1e6, Segments: 3}},
			{Id: "bb", Address: "b:1", Silent: true},
		}},
		Topics: []*smqpb.TopicStatus{
			{Topic: "idle", TopicId: "i", Partitions: 4, Segments: 1, LayoutVersion: 2, Mode: "off"},
			{Topic: "orders", TopicId: "o", Partitions: 64, Segments: 2, LayoutVersion: 4, Mode: "auto", MessagesPerSecond: 41_000, BytesPerSecond: 40.1e6},
		},
		Events: []*smqpb.LayoutEvent{anEvent("orders", 4)},
	}
}

// ordersDetail is the stub's topic with its loads.
func (s *stub) ordersDetail() *smqpb.WatchUpdate {
	return &smqpb.WatchUpdate{Reset_: true, Complete: true, TimeMs: 1_700_000_000_000, Detail: &smqpb.TopicDetail{
		Config: s.config, Layout: s.layout, Scaling: &smqpb.Scaling{Mode: "auto", SplitBytesPerSecond: 20e6, MinSegments: 1, MaxSegments: 64},
		Loads: []*smqpb.SegmentLoad{{Segment: 5, MessagesPerSecond: 41_000, BytesPerSecond: 40.1e6}, {Segment: 6}},
		Notes: []string{"segment 5: a hot key"},
	}}
}

func TestTopOnce(t *testing.T) {
	s := startStub(t)
	s.watch = func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(topWorld())
		return nil
	}
	stdout, stderr, code := s.run(t, "top", "--once")
	if code != 0 || stderr != "" || stdout != topOnceText {
		t.Errorf("code %d, %s\n%s", code, stderr, stdout)
	}
	for output, want := range map[string]string{
		"plain": "orders\t64\t2\t41000\t40100000\t4\tauto\nidle\t4\t1\t0\t0\t2\toff\n",
		"name":  "orders\nidle\n",
	} {
		if stdout, stderr, code = s.run(t, "top", "--once", "-o", output); code != 0 || stdout != want {
			t.Errorf("%s: code %d, %s\n%s", output, code, stderr, stdout)
		}
	}
	stdout, stderr, code = s.run(t, "top", "--once", "-o", "json")
	var v topView
	if err := json.Unmarshal([]byte(stdout), &v); code != 0 || err != nil {
		t.Fatalf("code %d, %s, %v", code, stderr, err)
	}
	if v.TimeMS != 1_700_000_000_000 || v.Cluster.ClusterID != "cafe" || len(v.Brokers) != 2 || v.Brokers[1].State != "silent" ||
		len(v.Topics) != 2 || v.Topics[0].BytesPerSecond != 40.1e6 || len(v.Events) != 1 || v.Events[0].Cause != "split" {
		t.Errorf("%s", stdout)
	}
	if req := s.watched[0]; !req.Brokers || !req.Topics || !req.Events {
		t.Errorf("watched %v", req)
	}
}

const topOnceText = `time:           2023-11-14T22:13:20Z
cluster:        cafe
leading broker: a:1
traffic:        41000msg/s, 40.1MB/s

BROKER   ADDRESS   STATE        RACK   SEGMENTS   MESSAGES/S    BYTES/S     MEMORY   JOINED
aa       a:1       ok, leader   r1            3   41000msg/s   40.1MB/s   0B of 0B   -
bb       b:1       silent       -             -            -          -          -   -

TOPIC    PARTITIONS   SEGMENTS   MESSAGES/S    BYTES/S   VERSION   SCALING
orders           64          2   41000msg/s   40.1MB/s         4   auto
idle              4          1       0msg/s       0B/s         2   off

2023-11-14T22:13:20Z  orders  v4  split  5 [0,32) → 7 [0,8) at a:1, 8 [8,32) at b:1; 41000msg/s, 40.1MB/s; paused 12ms; 40.1MB/s is above <20MB/s>
`

// While no master leads nobody knows how the brokers are.
func TestTopOnceWithoutMasters(t *testing.T) {
	s := startStub(t)
	s.watch = func(_ int, send func(*smqpb.WatchUpdate)) error {
		u := topWorld()
		u.Cluster.LeadingMaster, u.Cluster.Brokers[0].Load = "", nil
		send(u)
		return nil
	}
	stdout, stderr, _ := s.run(t, "top", "--once")
	for _, line := range []string{`(?m)^traffic: +not known$`, `(?m)^aa +a:1 +unknown, leader +r1 +- +- +- +- +-$`} {
		if !regexp.MustCompile(line).MatchString(stdout) {
			t.Errorf("no line %s in\n%s", line, stdout)
		}
	}
	if !strings.Contains(stderr, "no master leads: less than a majority") {
		t.Errorf("told %q", stderr)
	}
	stdout, _, _ = s.run(t, "top", "--once", "-o", "json")
	var got struct {
		Brokers []map[string]any `json:"brokers"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Brokers) != 2 {
		t.Fatalf("%v, %s", err, stdout)
	}
	for _, name := range []string{"segments", "messages_per_second", "bytes_per_second", "memory_used", "memory_limit"} {
		if value, there := got.Brokers[0][name]; value != nil || !there {
			t.Errorf("%s is %v", name, value)
		}
	}
}

func TestBrokerListWithoutMasters(t *testing.T) {
	s := startStub(t)
	s.masterless = true
	stdout, stderr, code := s.run(t, "broker", "list", "-o", "plain")
	if want := "aa\t" + s.addr + "\tunknown\ttrue\t-\t-\t-\t-\t-\t-\t-\n"; code != 0 || stdout != want || !strings.Contains(stderr, "no master leads") {
		t.Errorf("code %d, %s\ngot  %swant %s", code, stderr, stdout, want)
	}
}

func TestTopOnceOfATopic(t *testing.T) {
	s := startStub(t)
	s.watch = func(n int, send func(*smqpb.WatchUpdate)) error {
		if n == 0 {
			send(s.ordersDetail())
		} else {
			send(&smqpb.WatchUpdate{Reset_: true, Complete: true, Detail: &smqpb.TopicDetail{Missing: true}})
		}
		return nil
	}
	stdout, stderr, code := s.run(t, "top", "orders", "--once")
	if code != 0 || !strings.Contains(stdout, "[0,32)") || !strings.Contains(stdout, "40.1MB/s") || !strings.Contains(stdout, "note: segment 5: a hot key") {
		t.Errorf("code %d, %s\n%s", code, stderr, stdout)
	}
	if _, stderr, code = s.run(t, "top", "nowhere", "--once"); code != cli.ExitNotFound || !strings.Contains(stderr, "topic nowhere: not found") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestTopRefuses(t *testing.T) {
	s := startStub(t)
	for args, want := range map[string]string{
		"top":             "top needs a terminal that can place the cursor; without one, use top --once, or events -f\n",
		"top -o json":     "--output is for top --once\n",
		"top bad..//name": "",
		"top a b":         "",
	} {
		stdout, stderr, code := s.run(t, strings.Fields(args)...)
		if code != cli.ExitUsage || stdout != "" || !strings.HasSuffix(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %s%s", args, code, stdout, stderr)
		}
	}
	if _, stderr, code := s.run(t, "top", "--once"); code == 0 || !strings.Contains(stderr, "older version") {
		t.Errorf("a leader without the call: code %d, %s", code, stderr)
	}
}

func TestTopReadsChanges(t *testing.T) {
	s := startStub(t)
	segments := func(ids ...uint64) (all []*smqpb.Segment) {
		for _, id := range ids {
			all = append(all, &smqpb.Segment{Id: id})
		}
		return all
	}
	s.versions = []*smqpb.Layout{ // which it gives one by one
		{Version: 1, Cause: "create", Segments: segments(1)},
		{Version: 2, Cause: "split", Segments: segments(2, 3), Sealed: []*smqpb.SealedSegment{{Id: 1}}, Reason: "busy", PauseMs: 9},
		{Version: 3, Cause: "roll", Segments: segments(2, 4), Sealed: []*smqpb.SealedSegment{{Id: 3}}},
	}
	c := startConsole(t.Context(), func(ctx context.Context) (*client.Client, error) {
		return client.Connect(ctx, client.Config{Masters: []string{s.addr}})
	})
	defer c.close()
	for after, want := range map[uint64]string{0: "1 create [1] 0ms; 2 split [2 3] 9ms busy; 3 roll [4] 0ms", 1: "2 split [2 3] 9ms busy; 3 roll [4] 0ms", 2: "3 roll [4] 0ms", 3: ""} {
		events, err := c.Changes(t.Context(), "orders", after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range events {
			var ids []uint64
			for _, o := range e.Opened {
				ids = append(ids, o.Id)
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %v %dms %s", e.Version, e.Cause, ids, e.PauseMs, e.Reason)))
			if e.TopicId != stubTopicID {
				t.Errorf("of topic %q", e.TopicId)
			}
		}
		if got := strings.Join(got, "; "); got != want {
			t.Errorf("after %d: %s, want %s", after, got, want)
		}
	}
}

func TestPlainLocale(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false}, {map[string]string{"LANG": "C"}, true}, {map[string]string{"LANG": "en_US.UTF-8"}, false},
		{map[string]string{"LANG": "C", "LC_ALL": "C.utf8"}, false}, {map[string]string{"LANG": "de_DE.UTF-8", "LC_CTYPE": "POSIX"}, true},
	} {
		if got := plainLocale(func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("%v: %v", test.env, got)
		}
	}
}

// argsVariable makes a process of this test the program itself.
const argsVariable = "SMQ_ADMIN_TEST_ARGS"

// TestAsProgram is the program in processes that tests start.
func TestAsProgram(t *testing.T) {
	args := os.Getenv(argsVariable)
	if args == "" {
		return
	}
	os.Args = append([]string{"smq-admin"}, strings.Fields(args)...)
	cli.Main("smq-admin", New)
}

// terminal is a program that runs on a pseudo-terminal.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File

	mu   sync.Mutex
	out  strings.Builder
	done chan struct{} // closed when all has been read
}

func startOnTerminal(t *testing.T, master, args string) *terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &terminal{t: t, cmd: exec.Command(self, "-test.run=^TestAsProgram$"), done: make(chan struct{})}
	p.cmd.Env = []string{argsVariable + "=" + args, "TERM=xterm-256color", "SMQ_MASTER=" + master, "XDG_CONFIG_HOME=/nonexistent"}
	p.master, err = pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.master.Close() })
	go p.read()
	return p
}

func (p *terminal) read() {
	defer close(p.done)
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.out.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return // the program has ended
		}
	}
}

func (p *terminal) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// wait waits until text has been written.
func (p *terminal) wait(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.written(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("no %q in\n%q", text, p.written())
		}
	}
}

func (p *terminal) press(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the program's end and returns its exit code.
func (p *terminal) end() int {
	p.t.Helper()
	err := p.cmd.Wait()
	<-p.done
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// The whole of it: a terminal, the program, a cluster.
func TestTopOnATerminal(t *testing.T) {
	s := startStub(t)
	s.answerWatch(func(_ int, send func(*smqpb.WatchUpdate)) error {
		s.mu.Lock()
		req := s.watched[len(s.watched)-1]
		s.mu.Unlock()
		if req.Topic != "" {
			send(s.ordersDetail())
		} else {
			send(topWorld())
		}
		<-t.Context().Done()
		return nil
	})
	p := startOnTerminal(t, s.addr, "top")
	p.wait("orders")
	p.wait("live")
	p.press("\r")
	p.wait("a hot key")
	p.press("S")
	p.wait("Split segment 5 [0,32) of orders?")
	p.press("\r") // the answer that is preset
	p.press("S")
	p.press("y")
	p.wait("segment 5 [0,32) of orders is split")
	p.press("q")
	if code := p.end(); code != 0 {
		t.Errorf("code %d", code)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.split) != 1 || s.split[0].Segment != 5 {
		t.Errorf("split %v", s.split)
	}
	if out := p.written(); !strings.HasSuffix(strings.TrimSpace(out), "\x1b[?1049l\x1b[?25h") && strings.LastIndex(out, "\x1b[?1049l") < strings.LastIndex(out, "\x1b[?1049h") {
		t.Errorf("the terminal is not given back: %q", out[max(len(out)-200, 0):])
	}
}

func TestTopIsInterrupted(t *testing.T) {
	s := startStub(t)
	s.answerWatch(func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(topWorld())
		<-t.Context().Done()
		return nil
	})
	p := startOnTerminal(t, s.addr, "top --ascii")
	p.wait("> orders")
	p.press("\x03")
	if code := p.end(); code != 130 {
		t.Errorf("code %d", code)
	}
}

// The console is there before the cluster is, and can be left.
func TestTopIsDrawnBeforeItIsConnected(t *testing.T) {
	p := startOnTerminal(t, "127.0.0.1:1", "top --timeout 5m")
	p.wait("connecting")
	p.press("q")
	if code := p.end(); code != 0 {
		t.Errorf("code %d", code)
	}
	p = startOnTerminal(t, "127.0.0.1:1", "top --timeout 300ms")
	p.wait("connecting")
	if code := p.end(); code != cli.ExitUnreachable || !strings.Contains(p.written(), "no master answers at 127.0.0.1:1") {
		t.Errorf("code %d: %q", code, p.written())
	}
}

func TestTopOfNoTopicEnds(t *testing.T) {
	s := startStub(t)
	s.answerWatch(func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(topWorld())
		<-t.Context().Done()
		return nil
	})
	p := startOnTerminal(t, s.addr, "top nosuch")
	if code := p.end(); code != cli.ExitNotFound || !strings.Contains(p.written(), "topic nosuch: not found; smq-admin topic list shows those that there are") {
		t.Errorf("code %d: %q", code, p.written())
	}
	if strings.Contains(p.written(), "live") {
		t.Error("the console was live before")
	}
}

// The terminal library must not ask the terminal anything when a command starts
// that has nothing to do with it.
func TestOtherCommandsDoNotAskTheTerminal(t *testing.T) {
	for _, args := range []string{"--version", "completion bash"} {
		p := startOnTerminal(t, "127.0.0.1:1", args)
		if code := p.end(); code != 0 || strings.Contains(p.written(), "\x1b") {
			t.Errorf("%s: code %d, wrote %.300q", args, code, p.written())
		}
	}
}
