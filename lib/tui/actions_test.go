package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
)

// Every action asks, and the answer that is preset does nothing.
func TestActionsAsk(t *testing.T) {
	for _, act := range []struct {
		name, way, question, asked, done string
	}{
		{"split", "S", "Split segment 6 [0,17) of orders?", "split orders/6", "segment 6 [0,17) of orders is split"},
		{"merge", "M", "Merge segments 6 [0,17) and 8 [17,18) of orders?", "merge orders/[6 8]", "are merged"},
		{"merge the last", "end M", "Merge segments 9 [18,32) and 5 [32,64) of orders?", "merge orders/[9 5]", "are merged"},
		{"split in its own view", "enter S", "Split segment 6 [0,17) of orders?", "split orders/6", "is split"},
		{"merge in its own view", "enter M", "Merge segments 6 [0,17) and 8 [17,18) of orders?", "merge orders/[6 8]", "are merged"},
		{"drain", "2 home down d", "Drain broker 10.0.0.2:7310 (b2c0ffee)?", "drain " + brokerIDs[1], "is draining"},
		{"drain in its own view", "2 home down enter d", "Drain broker 10.0.0.2:7310 (b2c0ffee)?", "drain " + brokerIDs[1], "is draining"},
	} {
		t.Run(act.name, func(t *testing.T) {
			c := atTopic(t, Options{})
			for _, harmless := range []string{"enter", "esc", "n", "q", "right left enter", "tab tab enter"} {
				c.press(act.way)
				c.wants(act.question, "[ No ]")
				c.press(harmless)
				c.lacks(act.question)
				if c.quit {
					t.Fatalf("%s quits", harmless)
				}
				c.press("1") // to where each way begins
				if strings.Contains(act.way, "2") {
					continue
				}
				c.press("enter")
				c.fillTopic()
			}
			c.wantAsked()
			c.press(act.way + " right")
			c.wants("[ Yes ]")
			c.press("enter")
			c.wantAsked(act.asked)
			c.wants(act.done)
			c.press("left") // the outcome stays until the next key
			c.lacks(act.done)
		})
	}
}

func TestYesAnswers(t *testing.T) {
	c := atTopic(t, Options{})
	c.press("S y")
	c.wantAsked("split orders/6")
}

func TestActionThatFails(t *testing.T) {
	c := atTopic(t, Options{})
	c.fake.answer = fmt.Errorf("segment 6: %w", smq.ErrConflict)
	c.press("S y")
	c.wants("failed: split segment 6 [0,17) of orders: segment 6: conflict")
}

// What cannot be done is said without a question.
func TestActionsWithoutSense(t *testing.T) {
	c := atTopic(t, Options{})
	c.press("down S")
	c.wants("segment 8 [17,18) of orders has a single partition")
	d := worldDetail()
	d.Layout.Segments = d.Layout.Segments[:1]
	c.tellTopic(d)
	c.press("M")
	c.wants("orders has a single segment")
	c.press("2 down down d")
	c.wants("is draining already")
	c.wantAsked()
}

func TestReadOnly(t *testing.T) {
	c := atTopic(t, Options{ReadOnly: true})
	for _, keys := range []string{"S", "M", "2 d"} {
		c.press(keys)
		c.wants("read-only", "refused: the console is read-only")
		c.press("y enter")
	}
	c.wantAsked()
}
