//go:build unix

package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestPublisherGivesUp takes the only broker away for longer than a publisher
// waits. What it then says of each message is true; what it keeps can be
// published again, and then all is there.
func TestPublisherGivesUp(t *testing.T) {
	for name, away := range map[string]func(*daemon) (back func()){
		"killed": func(d *daemon) func() { d.kill(); return d.start },
		"paused": func(d *daemon) func() { d.pause(); return d.resume },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPublisherGivesUp(t, away)
		})
	}
}

func testPublisherGivesUp(t *testing.T, away func(*daemon) (back func())) {
	c := newCluster(t, newStore(t), 1)
	c.createTopic("t")
	kept := filepath.Join(c.dir, "kept.json")
	pub := c.publish("pub", "t", plain, "--delivery-timeout", "2s", "--failed-to", kept)
	pub.awaitMore(2 * window)
	back := away(c.brokers[0])
	pub.end(0)
	if code := pub.exit(); code != 3 {
		t.Errorf("the publisher ended with exit code %d", code)
	}
	if text := c.log("pub").String(); said(text) != 2 {
		t.Errorf("the publisher says %q; an account and an error are due", text)
	}
	n, failures := pub.sent(), pub.failures()
	if pub.acked()+len(failures) != n || len(failures) == 0 {
		t.Errorf("%d messages were sent, %d are acked, %d have failed", n, pub.acked(), len(failures))
	}
	back()
	c.readStored("read", "t", pub)

	got := c.run(stdio{}, "smq-pub", "t", "-f", "json", kept, "--master", c.masterList())
	if got.code != 0 {
		t.Fatalf("publish what was kept: %v", got)
	}
	times := c.timesRead("t")
	for i := 1; i <= n; i++ {
		if times[i] == 0 || times[i] > 1 && failures[i] != "unknown" {
			t.Errorf("message %d is there %d times; the first attempt at it: %q", i, times[i], failures[i])
		}
	}
}

// timesRead is how often each number is in a topic.
func (c *cluster) timesRead(topic string) map[int]int {
	c.t.Helper()
	got := c.run(stdio{}, "smq-sub", topic, "--from", "earliest", "--until", "end", "--master", c.masterList())
	if got.code != 0 {
		c.t.Fatalf("read %s: %v", topic, got)
	}
	times := make(map[int]int)
	for line := range strings.Lines(got.stdout) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			c.t.Errorf("line %q: %v", line, err)
		}
		times[n]++
	}
	return times
}

// TestInterruptedPublisher interrupts a publisher whose broker does not answer:
// it ends in time, and what it has said holds.
func TestInterruptedPublisher(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 1)
	c.createTopic("t")
	pub := c.publish("pub", "t", keyed, "-K", ":", "--timeout", "2s")
	pub.awaitMore(2 * window)
	c.brokers[0].pause()
	pub.signal(syscall.SIGTERM)
	if code := pub.exit(); code != 143 {
		t.Errorf("the publisher ended with exit code %d", code)
	}
	if text := c.log("pub").String(); said(text) > 3 || !strings.Contains(text, "not acked") {
		t.Errorf("the publisher says %q", text)
	}
	c.brokers[0].resume()
	// What the broker had taken in may come into the store until now.
	if read, stored := c.readStored("read", "t", pub), c.verifyClean("t"); read > stored {
		t.Errorf("%d messages were read, %d are stored", read, stored)
	}
}
