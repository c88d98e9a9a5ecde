//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFlippedByte flips one byte of a chunk in the store, at many places, one at
// a time. Whoever reads the chunk without a broker says so, and shows nothing of
// it.
func TestFlippedByte(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dirStore(t), 1)
	c.createTopic("t", "--partitions", "3")
	c.publishSome("t", 1, 60)
	chunks := c.chunks("t")
	for _, path := range []string{chunks[0], chunks[len(chunks)-1]} {
		whole := c.readFile(path)
		tries := min(scaled(t, 40), len(whole))
		for i := range tries {
			at := i * len(whole) / tries
			c.writeFile(path, flipped(whole, at))
			got := c.run(stdio{}, "smq-admin", "log", "dump", path)
			wantFailure(t, got, 1, path, "corrupt")
			if got.stdout != "" {
				t.Errorf("byte %d of %s is flipped, and dump prints %q", at, path, got.stdout)
			}
			got = c.run(stdio{}, "smq-admin", "log", "verify", "t", "--store", c.store)
			wantFailure(t, got, 1, "topic t", "corrupt")
			if !strings.Contains(got.stdout, "problem: ") {
				t.Errorf("byte %d of %s is flipped, and verify prints %q", at, path, got.stdout)
			}
		}
		c.writeFile(path, whole)
	}
	c.verify("t", 60)
}

// TestDamagedChunk damages a stored chunk in different ways while no broker runs.
// A subscriber then gets what lies before the damage, and one line that says
// where that is; other partitions can be read to their ends.
func TestDamagedChunk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dirStore(t), 1)
	damages := []struct {
		name   string
		damage func([]byte) []byte
		// spares: partitions that the damaged bytes do not belong to can be read.
		spares bool
	}{
		{"first-byte", func(b []byte) []byte { return flipped(b, 0) }, true},
		{"leader-epoch", func(b []byte) []byte { return flipped(b, 13) }, true},
		{"record", func(b []byte) []byte { return flipped(b, 80) }, true},
		{"footer", func(b []byte) []byte { return flipped(b, len(b)-40) }, false},
		{"mark", func(b []byte) []byte { return flipped(b, len(b)-1) }, false},
		{"cut-short", func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"emptied", func([]byte) []byte { return nil }, false},
	}
	const each = 100
	for _, d := range damages {
		c.createTopic(d.name, "--partitions", "3")
		for round := range 3 {
			c.publishSome(d.name, round*each+1, each)
		}
	}
	// All segments are sealed, so that nothing but reading needs the chunk.
	c.brokers[0].stop()
	for _, d := range damages {
		path := c.middleChunk(d.name)
		c.writeFile(path, d.damage(c.readFile(path)))
	}
	c.brokers[0].start()
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) { c.checkDamaged(t, d.name, d.spares, 3*each) })
	}
	// The broker is as well as before.
	c.createTopic("another")
	c.say("another", 1)
	c.readAll("read-another", "another", 1)
}

// checkDamaged reads a topic of which one chunk is damaged.
func (c *cluster) checkDamaged(t *testing.T, topic string, spares bool, n int) {
	c = c.in(t)
	name := filepath.Base(c.middleChunk(topic))
	name = strings.TrimLeft(strings.TrimSuffix(name, ".log"), "0")
	all := c.subscribe("read-"+topic, topic, "--until", "end")
	if code := all.exit(); code != 1 {
		t.Errorf("the subscriber ended with exit code %d", code)
	}
	text := c.log("read-" + topic).String()
	for _, words := range []string{"topic " + topic, "partition ", "offset ", "corrupt", name} {
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, words) {
			t.Errorf("the subscriber says %q; one line with %q is due", text, words)
		}
	}
	all.checkKnown()
	whole := 0
	for p := range 3 {
		one := c.subscribe(fmt.Sprintf("read-%s-%d", topic, p), topic, "--until", "end", "-p", fmt.Sprint(p))
		if one.exit() == 0 {
			whole++
		}
		one.checkKnown()
	}
	if want := map[bool]int{true: 2, false: 0}[spares]; whole != want {
		t.Errorf("%d of 3 partitions can be read, %d should", whole, want)
	}
	got := c.run(stdio{}, "smq-admin", "log", "verify", topic, "--store", c.store)
	wantFailure(t, got, 1, "corrupt")
	if !strings.Contains(got.stdout, name) {
		t.Errorf("verify does not name chunk %s: %s", name, got.stdout)
	}
	// What is published next is stored and can be read.
	c.publishSome(topic, n+1, 10)
}

// in is the cluster for a part of its test.
func (c *cluster) in(t *testing.T) *cluster {
	part := *c
	part.rig = &rig{t: t, dir: c.dir, logs: make(map[string]*logFile)}
	t.Cleanup(part.rig.end)
	return &part
}

// publishSome publishes so many messages from a number on, to all partitions.
func (c *cluster) publishSome(topic string, first, count int) {
	c.t.Helper()
	var in strings.Builder
	for n := first; n < first+count; n++ {
		fmt.Fprintln(&in, keyed(n))
	}
	got := c.run(stdio{in: strings.NewReader(in.String())}, "smq-pub", topic, "-K", ":", "--master", c.masterList())
	if got.code != 0 {
		c.t.Errorf("publish to %s: %v", topic, got)
	}
}

// chunks are the paths of all chunks of a topic that hold messages, in order.
// The store has to be a directory.
func (c *cluster) chunks(topic string) []string {
	c.t.Helper()
	root, _ := strings.CutPrefix(c.store, "dir://")
	all, err := filepath.Glob(filepath.Join(root, "topics", "default", topic, "*", "segments", "*", "*.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(path string) bool { return c.blocksIn(path) == 0 })
}

// blocksIn is of how many partitions a chunk says it has messages; one that is
// damaged counts.
func (c *cluster) blocksIn(path string) int {
	got := c.run(stdio{}, "smq-admin", "log", "dump", path, "--footer")
	if got.code != 0 {
		return 1
	}
	var chunk struct {
		Footer struct{ Blocks []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(got.stdout), &chunk); err != nil {
		c.t.Fatal(err)
	}
	return len(chunk.Footer.Blocks)
}

// middleChunk is a chunk of the topic with messages before and behind it.
func (c *cluster) middleChunk(topic string) string {
	c.t.Helper()
	all := c.chunks(topic)
	if len(all) < 3 {
		c.t.Fatalf("topic %s has the chunks %v, three are needed", topic, all)
	}
	return all[1]
}

func (c *cluster) readFile(path string) []byte {
	c.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return content
}

// writeFile replaces what is in a file of the store, which is read-only.
func (c *cluster) writeFile(path string, content []byte) {
	c.t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// flipped is content with one byte changed.
func flipped(content []byte, at int) []byte {
	changed := slices.Clone(content)
	changed[at] ^= 0x20
	return changed
}
