package admin

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/bench"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/local"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// whole is a cluster in this process, of which a stub is the address.
func whole(t *testing.T, brokers int) *stub {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	c, err := local.Start(t.Context(), local.Options{
		Listener: l, Brokers: brokers, StoreURL: "dir://" + t.TempDir() + "?fsync=false", DataDir: t.TempDir(),
		Memory: 256 << 20, Logger: quiet, MasterLogger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) }) // the folders go in any case
	return &stub{addr: c.Address}
}

func TestBench(t *testing.T) {
	s := whole(t, 2)
	noTopics := func() {
		t.Helper()
		if stdout, _, _ := s.run(t, "topic", "list", "-o", "name"); stdout != "" {
			t.Errorf("topics stay behind: %s", stdout)
		}
	}
	for _, test := range []struct {
		args string
		want benchView
	}{
		{"pub --messages 2000 --rate 1e6/s --warmup 0s --acks stored --partitions 4 --size 100",
			benchView{Test: "pub", Partitions: 4, Acks: "stored", RatePerSecond: 1e6, Size: 100, Producers: 1, Codec: "none", Messages: 2000, Bytes: 200_000, AckedStored: 2000}},
		{"e2e --messages 2000 --in-flight 100 --warmup 0s --producers 3 --replicas 2 --acks replicated --linger 1ms --compress lz4",
			benchView{Test: "e2e", Partitions: 64, Replicas: 2, Acks: "replicated", InFlight: 100, Size: 1024, Producers: 3, LingerMS: 1, Codec: "lz4", Messages: 2000, Bytes: 2_048_000}},
		{"sub --messages 3000 --size 50 --partitions 2", benchView{Test: "sub", Partitions: 2, Messages: 3000, Bytes: 150_000}},
	} {
		stdout, stderr, code := s.run(t, append([]string{"bench", "-o", "json"}, strings.Fields(test.args)...)...)
		var got benchView
		if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
			t.Fatalf("%s: code %d, %v, %s", test.args, code, err, stderr)
		}
		if got.Seconds <= 0 || got.MessagesPerSecond <= 0 || !strings.HasPrefix(got.Topic, "bench-") {
			t.Errorf("%s: %+v", test.args, got)
		}
		if got.Test != "sub" && (got.Ack.P50 <= 0 || got.Ack.Max < got.Ack.P999 || got.AckedStored+got.AckedReplicated != 2000) {
			t.Errorf("%s: acks took %+v; %+v", test.args, got.Ack, got)
		}
		if (got.Test == "e2e") != (got.Delivery != nil) {
			t.Errorf("%s: deliveries took %+v", test.args, got.Delivery)
		}
		if got.Test == "e2e" {
			got.AckedStored = 0 // as many as the replicas let be
		}
		if (got.Test == "sub") != (got.Changes == nil) {
			t.Errorf("%s: changes %+v", test.args, got.Changes)
		}
		got.Topic, got.Seconds, got.MessagesPerSecond, got.BytesPerSecond, got.AckedReplicated, got.Ack, got.Delivery, got.Changes = "", 0, 0, 0, 0, nil, nil, nil
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.args, got, test.want)
		}
		noTopics()
	}
	// A topic that is named stays, with what was published.
	if _, stderr, code := s.run(t, "topic", "create", "mine", "--partitions", "3"); code != 0 {
		t.Fatal(stderr)
	}
	stdout, stderr, code := s.run(t, "bench", "pub", "--topic", "mine", "--messages", "10", "--warmup", "0s")
	if code != 0 || !strings.Contains(stdout, "pub of mine, 3 partitions, 1KiB a message, as fast as possible, 1 producer\n") || !strings.Contains(stdout, "MS ") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	stdout, _, code = s.run(t, "bench", "sub", "--topic", "mine", "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if code != 0 || err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) || rows[0][12] != "messages" || rows[1][12] != "10" {
		t.Errorf("code %d, %v, %s", code, err, stdout)
	}
	if _, stderr, code := s.run(t, "bench", "pub", "--topic", "none"); code != cli.ExitNotFound || !strings.Contains(stderr, "topic none: not found") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// A change of the layout while it lasts is told, with how long the acks took
// meanwhile; so it is when the rate changes.
func TestBenchTellsChanges(t *testing.T) {
	s := whole(t, 2)
	if _, stderr, code := s.run(t, "topic", "create", "t", "--partitions", "8"); code != 0 {
		t.Fatal(stderr)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	var stdout, stderr bytes.Buffer
	go func() {
		defer stop(&cli.SignalError{Signal: syscall.SIGINT})
		c, err := client.Connect(t.Context(), client.Config{Masters: []string{s.addr}})
		if err != nil {
			return
		}
		defer c.Close()
		topic := smq.Topic{Namespace: smq.DefaultNamespace, Name: "t"}
		stored := func() (n int64) {
			ends, err := c.Offsets(t.Context(), topic, nil, smqpb.OffsetsRequest_END, time.Time{})
			if err == nil {
				for _, end := range ends {
					n += end.Offset
				}
			}
			return n
		}
		for stored() < 10 && t.Context().Err() == nil {
		}
		d, err := c.DescribeTopic(t.Context(), topic)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := c.SplitSegment(t.Context(), topic, d.GetLayout().GetSegments()[0].GetId(), 4); err != nil {
			t.Error(err)
		}
		for before := stored(); stored() < before+10 && t.Context().Err() == nil; {
		}
	}()
	code := s.runIn(ctx, &cli.Env{Stdout: &stdout, Stderr: &stderr}, "bench", "pub", "--topic", "t", "--rate", "500/s:1h,5/s:1h", "--warmup", "0s", "-o", "json")
	var got benchView
	if err := json.Unmarshal(stdout.Bytes(), &got); code != 130 || err != nil || got.RatePerSecond != 500 {
		t.Fatalf("code %d, %v, %s%s", code, err, stdout.String(), stderr.String())
	}
	if len(got.Stages) != 2 || got.Stages[0].Messages != got.Messages || got.Stages[1].Messages != 0 || got.Stages[0].Ack.P99 <= 0 {
		t.Errorf("stages %+v of %d messages", got.Stages, got.Messages)
	}
	i := slices.IndexFunc(got.Changes, func(c benchChange) bool { return c.Cause == "split" })
	if i < 0 {
		t.Fatalf("no split among the changes: %+v", got.Changes)
	}
	if c := got.Changes[i]; c.Version < 2 || c.Messages == 0 || c.Messages > got.Messages || c.Ack.Max < c.Ack.P50 || c.Ack.P50 <= 0 || c.CreatedMS == 0 {
		t.Errorf("%+v", c)
	}
}

// A signal ends it, what was found is printed, and nothing stays behind.
func TestBenchInterrupted(t *testing.T) {
	s := whole(t, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	var stdout, stderr bytes.Buffer
	go func() {
		defer cancel(&cli.SignalError{Signal: syscall.SIGINT})
		c, err := client.Connect(t.Context(), client.Config{Masters: []string{s.addr}})
		if err != nil {
			return
		}
		defer c.Close()
		for stored := int64(0); stored < 10 && t.Context().Err() == nil; {
			stored = storedInBench(t.Context(), c)
		}
	}()
	code := s.runIn(ctx, &cli.Env{Stdout: &stdout, Stderr: &stderr}, "bench", "pub", "--rate", "1000/s", "--duration", "1h", "--warmup", "0s", "-o", "json")
	var got benchView
	if err := json.Unmarshal(stdout.Bytes(), &got); code != 130 || err != nil || got.Messages < 10 || got.Errors != 0 {
		t.Errorf("code %d, %v, %s%s", code, err, stdout.String(), stderr.String())
	}
	if topics, _, _ := s.run(t, "topic", "list", "-o", "name"); topics != "" {
		t.Errorf("topics stay behind: %s", topics)
	}
}

// storedInBench is how many messages the topic of a measurement holds.
func storedInBench(ctx context.Context, c *client.Client) (total int64) {
	for summary, err := range c.ListTopics(ctx, "", client.ListOptions{}) {
		if err != nil {
			return 0
		}
		topic, err := smq.ParseTopic(summary.GetConfig().GetTopic())
		if err != nil {
			return 0
		}
		ends, err := c.Offsets(ctx, topic, nil, smqpb.OffsetsRequest_END, time.Time{})
		if err != nil {
			return 0
		}
		for _, end := range ends {
			total += end.Offset
		}
	}
	return total
}

func TestBenchOutcome(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(&cli.SignalError{Signal: syscall.SIGTERM})
	for _, test := range []struct {
		ctx    context.Context
		result bench.Result
		code   int
		text   string
	}{
		{t.Context(), bench.Result{Messages: 5}, 0, "<nil>"},
		{interrupted, bench.Result{Messages: 5, Failed: 1}, 143, "interrupted by SIGTERM"},
		{t.Context(), bench.Result{Messages: 5, Failed: 2, FirstErr: smq.ErrNoSpace}, cli.ExitPartly, "2 messages not acked: no space left"},
		{t.Context(), bench.Result{Failed: 2, FirstErr: smq.ErrNoSpace}, cli.ExitFailed, "2 messages not acked: no space left"},
		{t.Context(), bench.Result{Messages: 5, Unsent: 3}, cli.ExitPartly, "the rate was not reached: 3 messages due and not even offered"},
		{t.Context(), bench.Result{Messages: 5, Missing: 4}, cli.ExitPartly, "4 messages acked and not received in time"},
	} {
		err := benchOutcome(test.ctx, test.result)
		if got := cli.ExitCode(err, context.Cause(test.ctx)); got != test.code || fmt.Sprint(err) != test.text {
			t.Errorf("%+v: %d, %v", test.result, got, err)
		}
	}
}

func TestBenchUsage(t *testing.T) {
	s := startStub(t)
	for args, want := range map[string]string{
		"pub --rate fast":                   `--rate "fast" is not a rate`,
		"pub --rate 5/s,6/s:1s":             "5/s has no length",
		"pub --rate 5/s:soon":               `"soon" is not a length`,
		"pub --rate 5/s:1s --duration 3s":   "--rate 5/s:1s and --duration",
		"pub --rate 5/s --in-flight 3":      "--rate and --in-flight",
		"pub --in-flight 0":                 "--in-flight 0: the least is 1",
		"pub --messages 0":                  "--messages 0: the least is 1",
		"pub --size 15":                     "--size 15: use 16B to 16MiB",
		"pub --producers 0":                 "--producers 0: the least is 1",
		"pub --acks all":                    `ack level "all" is not one of stored, replicated, default`,
		"pub --compress gz":                 `codec "gz" is not one of none, gzip, snappy, lz4, zstd, did you mean gzip?`,
		"pub --batch 0":                     "--batch 0: use 1B to 16.1MiB",
		"e2e -o yaml":                       `format "yaml" is not one of table, json, csv`,
		"e2e --topic orders --partitions 3": "--topic orders: it is as it is",
		"e2e --partitions 0":                "--partitions 0: a topic has 1 to 1000000",
		"sub --replicas 9":                  "--replicas 9: a topic has 1 to 5",
		"sub --topic orders --messages 3":   "--topic orders: what is in it is read",
		"pub --duration 0s":                 "invalid length",
		"pub --rate 50msgs/s":               `--rate "50msgs/s" is not a rate; write for instance 50000msg/s or 20MB/s`,
		"pub orders":                        `unexpected argument "orders"`,
	} {
		_, stderr, code := s.run(t, append([]string{"bench"}, strings.Fields(args)...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %s", args, code, stderr)
		}
	}
}

// What flags that are not given come to depends on those that are.
func TestBenchDefaults(t *testing.T) {
	parse := func(args string) benchPlan {
		t.Helper()
		e := &cli.Env{}
		o, cmd := newBenchFlags(), &cobra.Command{}
		o.register(cmd, e)
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		p, err := o.parse(cmd.Flags())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for args, want := range map[string]struct {
		duration, linger time.Duration
		stages           []bench.Stage
	}{
		"":                                  {benchDuration, client.DefaultLinger, nil},
		"--messages 5":                      {0, client.DefaultLinger, nil},
		"--messages 5 --duration 3s":        {3 * time.Second, client.DefaultLinger, nil},
		"--rate 100/s":                      {benchDuration, client.NoLinger, []bench.Stage{{Rate: 100}}},
		"--rate 1MB/s --size 100":           {benchDuration, client.NoLinger, []bench.Stage{{Rate: 10_000}}},
		"--rate 100msg/s --linger 7ms":      {benchDuration, 7 * time.Millisecond, []bench.Stage{{Rate: 100}}},
		"--rate 5/s:2s,1kB/s:3m --size 100": {0, client.NoLinger, []bench.Stage{{Rate: 5, For: 2 * time.Second}, {Rate: 10, For: 3 * time.Minute}}},
		"--linger 0s --acks replicated":     {benchDuration, client.NoLinger, nil},
	} {
		p := parse(args)
		if p.options.Duration != want.duration || p.publisher.Linger != want.linger || !slices.Equal(p.options.Stages, want.stages) || !p.publisher.Spread {
			t.Errorf("%q: %+v", args, p)
		}
	}
}
