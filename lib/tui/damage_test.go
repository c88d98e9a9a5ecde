package tui

import (
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// A topic that cannot be read is among the others, and says why when it is
// opened.
func TestADamagedTopic(t *testing.T) {
	why := &smqpb.ErrorInfo{Code: "corrupt", Message: "configuration of topic zz, /topics/default/zz/topic.json: it is corrupt"}
	c := filled(t, Options{})
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS, Topics: []*smqpb.TopicStatus{{Topic: "zz", Error: why}}})
	c.wants("[1 Topics 32]")
	c.press("/ z z enter")
	if line := strings.Fields(c.selectedLine()); strings.Join(line[:4], " ") != "zz (damaged) - -" {
		t.Errorf("the row is %q", line)
	}
	c.press("enter")
	c.send(updatesMsg{topic: "zz", updates: []*smqpb.WatchUpdate{{Detail: &smqpb.TopicDetail{Missing: true, Error: why}}}})
	c.wants("topic zz cannot be read:", "/topics/default/zz/topic.json: it is corrupt")
	c.lacks("there is no topic")
	c.press("S M")
	c.wantAsked()
	// It is mended.
	c.press("esc")
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS, Topics: []*smqpb.TopicStatus{{Topic: "zz", TopicId: "id-zz", Partitions: 8, Segments: 1, Mode: "auto"}}})
	c.lacks("damaged")
}
