package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

var updateGoldens = flag.Bool("update", false, "write the goldens in testdata anew")

var sizes = []struct{ w, h int }{{160, 50}, {100, 30}, {80, 24}, {60, 20}, {40, 10}, {20, 5}}

// fill tells the console of the tests' cluster, whose loads have gone up and
// down for a while.
func (c *console) fill() {
	c.t.Helper()
	c.tell(world())
	for i := range 40 {
		u := &smqpb.WatchUpdate{TimeMs: worldMS, Topics: worldTopics(30), Cluster: worldCluster()}
		for j, topic := range u.Topics {
			topic.BytesPerSecond *= float64((i*(j+3))%17) / 16
		}
		for j, b := range u.Cluster.Brokers {
			b.Load.BytesPerSecond *= float64((i*(j+5))%13) / 12
		}
		c.tell(u)
		c.send(tickMsg{})
	}
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS, Topics: worldTopics(30), Cluster: worldCluster()})
}

// fillTopic does the same for the topic that is looked at.
func (c *console) fillTopic() {
	c.t.Helper()
	for i := range 40 {
		d := worldDetail()
		for j, load := range d.Loads {
			load.BytesPerSecond *= float64((i*(j+3))%11) / 10
		}
		c.tellTopic(d)
		c.tell(&smqpb.WatchUpdate{TimeMs: worldMS})
		c.send(tickMsg{})
	}
	c.tellTopic(worldDetail())
}

// views are the screens that goldens are kept of, and the way to them.
var views = []struct {
	name string
	show func(c *console)
}{
	{"topics", func(c *console) { c.press("down down") }},
	{"topic", func(c *console) { c.press("enter"); c.fillTopic(); c.press("down") }},
	{"segment", func(c *console) { c.press("enter"); c.fillTopic(); c.press("down enter") }},
	{"brokers", func(c *console) { c.press("2 down") }},
	{"broker", func(c *console) { c.press("2 down down enter") }},
	{"events", func(c *console) { c.press("3") }},
	{"event", func(c *console) { c.press("3 up enter") }},
	{"help", func(c *console) { c.press("?") }},
	{"confirm", func(c *console) { c.press("enter"); c.fillTopic(); c.press("S") }},
	{"stale", func(c *console) {
		for range staleAfter {
			c.send(tickMsg{})
		}
	}},
	{"masterless", func(c *console) { c.tell(masterless()); c.press("2") }},
	{"masterless-broker", func(c *console) { c.tell(masterless()); c.press("2 enter") }},
	{"reconnecting", func(c *console) {
		c.send(updatesMsg{lost: fmt.Errorf("leading broker 10.0.0.1:7310: unavailable: connection refused")})
	}},
}

// masterless is the cluster when no master leads it.
func masterless() *smqpb.WatchUpdate {
	info := worldCluster()
	info.LeadingMaster = ""
	for _, b := range info.Brokers {
		b.Load = nil
	}
	return &smqpb.WatchUpdate{TimeMs: worldMS, Cluster: info}
}

func TestGoldens(t *testing.T) {
	for _, size := range sizes {
		for _, look := range []struct {
			name    string
			options Options
		}{{"color", Options{}}, {"plain", Options{NoColor: true}}, {"ascii", Options{NoColor: true, ASCII: true}}} {
			name := fmt.Sprintf("%dx%d-%s", size.w, size.h, look.name)
			t.Run(name, func(t *testing.T) {
				var all strings.Builder
				for _, view := range views {
					c := newConsole(t, size.w, size.h, look.options)
					c.fill()
					view.show(c)
					fmt.Fprintf(&all, "== %s\n%s\n", view.name, readable(c.frame()))
				}
				golden(t, filepath.Join("testdata", name+".txt"), all.String())
			})
		}
	}
}

// readable makes a frame fit for a golden that people read: colours are written
// as <31> and <0>, and what ends lines is left out.
func readable(frame string) string {
	frame = sgr.ReplaceAllStringFunc(frame, func(s string) string { return "<" + strings.Trim(s, "\x1b[m") + ">" })
	lines := strings.Split(frame, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *updateGoldens {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./lib/tui -update writes it anew):\n%s", path, difference(string(want), got))
	}
}

// difference is the first lines that differ.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(b), len(a))
}
