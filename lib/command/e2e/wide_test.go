//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWideTopic makes a topic of 100,000 partitions, publishes to nearly all of
// them, lists, describes and reads it. How long each step takes, and what an
// idle partition costs the broker, is logged.
//
// It runs by itself: the collector of a process that gets no time does not keep to
// the memory that it is given.
func TestWideTopic(t *testing.T) {
	const partitions = 100_000
	c := newCluster(t, newStore(t), 1)
	since := time.Now()
	step := func(name string) {
		now, peak, err := memoryOf(c.brokers[0].cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-10s %8v, broker's memory %d MiB, at most %d MiB", name, time.Since(since).Round(time.Millisecond), now>>20, peak>>20)
		since = time.Now()
	}
	c.createTopic("narrow", "--partitions", "1")
	c.say("narrow", 1)
	step("begin")
	before, _, err := memoryOf(c.brokers[0].cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}

	c.createTopic("wide", "--partitions", fmt.Sprint(partitions))
	step("create")
	c.say("wide", 1)
	step("open")
	if after, _, err := memoryOf(c.brokers[0].cmd.Process.Pid); err == nil {
		t.Logf("an idle partition costs %d bytes", (after-before)/partitions)
	}

	n := scaled(t, 400_000)
	input := filepath.Join(c.dir, "input")
	if err := os.WriteFile(input, wideInput(n), 0o600); err != nil {
		t.Fatal(err)
	}
	since = time.Now()
	got := c.run(stdio{}, "smq-pub", "wide", "-K", ":", input, "--master", c.masterList())
	if got.code != 0 || !strings.Contains(got.stderr, fmt.Sprintf("acked %d,", n-1)) {
		t.Fatalf("publish: %v", got)
	}
	step("publish")
	if got := c.mustAdmin("topic", "list"); !strings.Contains(got.stdout, "wide") {
		t.Errorf("topic list: %s", got.stdout)
	}
	step("list")
	var described struct {
		Messages int64
		Offsets  []struct{ End int64 }
	}
	if err := c.ask(&described, "topic", "describe", "wide", "--offsets"); err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, o := range described.Offsets {
		if o.End > 0 {
			used++
		}
	}
	if described.Messages != int64(n) || len(described.Offsets) != partitions || used < partitions*9/10 {
		t.Errorf("described: %d messages of %d, %d partitions, %d of them used", described.Messages, n, len(described.Offsets), used)
	}
	step("describe")
	c.readAll("read", "wide", n)
	step("read")
	c.verify("wide", n)
	step("verify")
	const bound = 256 << 20 // the default of --memory
	if _, peak, err := memoryOf(c.brokers[0].cmd.Process.Pid); err != nil || peak >= 2*bound && !raced() {
		t.Errorf("the broker has taken %d MiB of memory (%v), its bound is %d MiB", peak>>20, err, bound>>20)
	}
}

// wideInput are the messages 2 to n, each with a key of its own.
func wideInput(n int) []byte {
	var text []byte
	for i := 2; i <= n; i++ {
		text = fmt.Appendf(text, "%d:%d\n", i, i)
	}
	return text
}
