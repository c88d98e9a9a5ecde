package admin

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestRatesForPeople(t *testing.T) {
	for rate, want := range map[float64]string{0: "0B/s", 999: "999B/s", 1000: "1kB/s", 20e6: "20MB/s", 19_949_000: "19.9MB/s", 999.96e3: "1MB/s", 3.2e15: "3200TB/s"} {
		if got := smq.ByteRate(rate); got != want {
			t.Errorf("%v is %s, want %s", rate, got, want)
		}
	}
	for rate, want := range map[float64]string{0: "0msg/s", 0.25: "0.2msg/s", 3: "3msg/s", 50000.4: "50000msg/s"} {
		if got := smq.MessageRate(rate); got != want {
			t.Errorf("%v is %s, want %s", rate, got, want)
		}
	}
}

func TestTopicCreateWithScaling(t *testing.T) {
	s := startStub(t)
	_, stderr, code := s.run(t, "topic", "create", "clicks", "--replicas", "2", "--scaling", "auto",
		"--split-above", "20MB/s,50000msg/s", "--min-segments", "2", "--max-segments", "16", "--cool-down", "1m")
	want := &smqpb.CreateTopicRequest{Topic: "clicks", Partitions: 64, Key: "key", Replicas: 2, Scaling: &smqpb.Scaling{
		Mode: "auto", SplitBytesPerSecond: 20e6, SplitMessagesPerSecond: 50000, MinSegments: 2, MaxSegments: 16, CoolDownMs: 60_000,
	}}
	if code != 0 || !proto.Equal(s.created, want) {
		t.Errorf("code %d, %s\ngot  %v\nwant %v", code, stderr, s.created, want)
	}
	if _, _, code := s.run(t, "topic", "create", "clicks"); code != 0 || s.created.Scaling != nil || s.created.Replicas != 0 {
		t.Errorf("without flags: code %d, %v", code, s.created)
	}
}

func TestTopicAlter(t *testing.T) {
	s := startStub(t)
	_, stderr, code := s.run(t, "topic", "alter", "orders", "--split-above", "50000msg/s", "--reset", "cool-down,scaling", "--replicas", "3")
	want := &smqpb.AlterTopicRequest{
		Topic: "orders", Scaling: &smqpb.Scaling{SplitMessagesPerSecond: 50000}, Reset_: []string{"mode", "cool_down_ms"}, Replicas: 3,
	}
	if code != 0 || len(s.altered) != 1 || !proto.Equal(s.altered[0], want) {
		t.Errorf("code %d\ngot  %v\nwant %v", code, s.altered, want)
	}
	if want := "smq-admin: altered topic orders: scaling by default: split above 50000msg/s; 3 replicas\n"; stderr != want {
		t.Errorf("said %q, want %q", stderr, want)
	}
	if _, _, code := s.run(t, "topic", "alter", "orders", "--reset", "all"); code != 0 || len(s.altered[1].Reset_) != 7 {
		t.Errorf("reset all: code %d, %v", code, s.altered)
	}
	_, stderr, code = s.run(t, "topic", "alter", "nothing", "--scaling", "off")
	if code != cli.ExitNotFound || !strings.Contains(stderr, "topic nothing: not found; smq-admin topic list shows") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestScalingUsage(t *testing.T) {
	s := startStub(t)
	for flags, want := range map[string]string{
		"":                   "nothing to change",
		"--scaling on":       `mode of scaling "on" is not one of off, manual, auto`,
		"--split-above 20MB": `--split-above "20MB" is not a rate`,
		"--split-above 20MB/s --split-above 1B/s": "--split-above 1B/s: only one rate",
		"--min-segments 0":                        "--min-segments 0: the least is 1",
		"--cool-down 0s":                          "--cool-down 0s: the least is 1ms",
		"--min-segments 3 --max-segments 2":       "--min-segments 3 is above --max-segments 2",
		"--replicas 6":                            "--replicas 6: a topic has 1 to 5",
		"--reset cooldown":                        `flag to reset "cooldown" is not one of`,
		"--reset all --max-segments 3":            "--max-segments and --reset all: one or the other",
		"--reset replicas --replicas 3":           "--replicas and --reset replicas: one or the other",
	} {
		_, stderr, code := s.run(t, append([]string{"topic", "alter", "orders"}, strings.Fields(flags)...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %s", flags, code, stderr)
		}
	}
	if s.altered != nil {
		t.Errorf("altered: %v", s.altered)
	}
}
