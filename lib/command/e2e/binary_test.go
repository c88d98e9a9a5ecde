//go:build unix

package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRandomBytes sends messages of any bytes and of 0 bytes to 8 MiB through
// -f length, and gets the same bytes back, whatever the codec.
func TestRandomBytes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 1)
	want, n := lengthPrefixed(scaled(t, 1000))
	for _, codec := range []string{"none", "zstd"} {
		topic := "bytes-" + codec
		got := c.run(stdio{in: bytes.NewReader(want)}, "smq-pub", topic, "--create", "-f", "length", "--compress", codec, "--master", c.masterList())
		if got.code != 0 || !strings.Contains(got.stderr, fmt.Sprintf("sent %d, acked %d,", n, n)) {
			t.Fatalf("publish %d messages: %v", n, got)
		}
		got = c.run(stdio{}, "smq-sub", topic, "--from", "earliest", "--until", "end", "-f", "length", "--master", c.masterList())
		if got.code != 0 || got.stdout != string(want) {
			t.Errorf("%s: %d bytes came, %d were sent; the same: %t; %v", topic, len(got.stdout), len(want), got.stdout == string(want), got)
		}
		c.verify(topic, n)
	}
}

// lengthPrefixed makes messages of random bytes and sizes, small ones more often,
// each behind its length, and says how many there are: at least n.
func lengthPrefixed(n int) ([]byte, int) {
	random := rand.NewChaCha8([32]byte{7})
	r := rand.New(random)
	const largest = 8 << 20
	sizes := []int{0, 1, largest, 0, largest - 1, largest}
	for len(sizes) < n {
		sizes = append(sizes, r.IntN(1<<r.IntN(21)+1))
	}
	r.Shuffle(len(sizes), func(i, k int) { sizes[i], sizes[k] = sizes[k], sizes[i] })
	var all []byte
	for _, size := range sizes {
		all = binary.BigEndian.AppendUint32(all, uint32(size))
		message := make([]byte, size)
		random.Read(message)
		all = append(all, message...)
	}
	return all, len(sizes)
}

// TestNullEmptyAndNullText keeps null, the empty text and the text "null" apart, as
// key, value and in headers, through -f json both ways, twice.
func TestNullEmptyAndNullText(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 1)
	kinds := []string{`null`, `""`, `"null"`, `"\u0000"`, `{"base64":"/wA="}`, `" "`}
	var in strings.Builder
	n := 0
	for _, key := range kinds {
		for _, value := range kinds {
			for _, header := range kinds {
				fmt.Fprintf(&in, "{\"partition\":0,\"key\":%s,\"value\":%s,\"headers\":[[\"h\",%s],[\"\",\"x\"]]}\n", key, value, header)
				n++
			}
		}
	}
	first := c.throughJSON("first", strings.NewReader(in.String()))
	second := c.throughJSON("second", strings.NewReader(first))
	if len(contents(t, first)) != n {
		t.Errorf("%d messages came back, %d were sent", len(contents(t, first)), n)
	}
	for i, line := range contents(t, in.String()) {
		if got := contents(t, first)[i]; got != line {
			t.Errorf("message %d: %s came back, %s was sent", i, got, line)
		}
		if got := contents(t, second)[i]; got != line {
			t.Errorf("message %d, the second time: %s came back, %s was sent", i, got, line)
		}
	}
}

// throughJSON publishes envelopes to a new topic and reads them back.
func (c *cluster) throughJSON(topic string, in *strings.Reader) string {
	c.t.Helper()
	got := c.run(stdio{in: in}, "smq-pub", topic, "--create", "-f", "json", "--master", c.masterList())
	if got.code != 0 {
		c.t.Fatalf("publish to %s: %v", topic, got)
	}
	got = c.run(stdio{}, "smq-sub", topic, "--from", "earliest", "--until", "end", "-f", "json", "--master", c.masterList())
	if got.code != 0 {
		c.t.Fatalf("read %s: %v", topic, got)
	}
	return got.stdout
}

// contents are the key, value and headers of envelopes, each as a text.
func contents(t *testing.T, envelopes string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(envelopes) {
		var e struct{ Key, Value, Headers json.RawMessage }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, fmt.Sprintf("%s %s %s", e.Key, e.Value, e.Headers))
	}
	return all
}

// TestTooLargeFile publishes a file that is larger than a message may be: the
// error names the limit and a way around it, and nobody takes memory for it.
func TestTooLargeFile(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 1)
	path := filepath.Join(c.dir, "large")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 300<<20); err != nil {
		t.Fatal(err)
	}
	c.createTopic("t")
	p := c.start("pub", "smq-pub", stdio{}, "t", "-f", "raw", path, "--master", c.masterList())
	taken := watchMemory(p)
	code := p.exit()
	text := c.log("pub").String()
	for _, words := range []string{"16 MiB", "split it", path} {
		if !strings.Contains(text, words) {
			t.Errorf("%q does not mention %q", text, words)
		}
	}
	if code != 1 || strings.Count(text, "\n") != 2 { // the account of what was sent is the other line
		t.Errorf("exit code %d, %q", code, text)
	}
	const most = 128 << 20
	if taken > most && !raced() {
		t.Errorf("smq-pub took %d MiB of memory", taken>>20)
	}
	c.verify("t", 0)
}
