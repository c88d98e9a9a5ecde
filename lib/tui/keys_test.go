package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// filled is a console of the usual size that knows the tests' cluster.
func filled(t *testing.T, o Options) *console {
	c := newConsole(t, 100, 30, o)
	c.fill()
	return c
}

// atTopic is one that looks at the topic orders.
func atTopic(t *testing.T, o Options) *console {
	c := filled(t, o)
	c.press("enter")
	c.fillTopic()
	return c
}

func (c *console) wantSelected(prefix string) {
	c.t.Helper()
	if got := c.selectedLine(); !strings.HasPrefix(got, prefix) {
		c.t.Errorf("selected %q, want %q", got, prefix)
	}
}

func TestTabs(t *testing.T) {
	c := filled(t, Options{})
	for _, step := range []struct{ keys, want string }{
		{"2", "[2 Brokers 4]"}, {"3", "[3 Events 5]"}, {"1", "[1 Topics 31]"},
		{"tab", "[2 Brokers 4]"}, {"tab tab", "[1 Topics 31]"}, {"shift+tab", "[3 Events 5]"},
	} {
		c.press(step.keys)
		c.wants(step.want)
	}
}

func TestMoving(t *testing.T) {
	c := filled(t, Options{})
	for _, step := range []struct{ keys, want string }{
		{"", "orders"}, {"down", "topic-17"}, {"j", "topic-04"}, {"k", "topic-17"}, {"up up", "orders"},
		{"end", "topic-00"}, {"home", "orders"}, {"G", "topic-00"}, {"down", "topic-00"}, {"g", "orders"},
		{"pgdown", "topic-05"}, {"pgup", "orders"}, {"space", "topic-05"},
	} {
		c.press(step.keys)
		c.wantSelected(step.want)
	}
}

func TestSorting(t *testing.T) {
	c := filled(t, Options{})
	for _, step := range []struct{ keys, head, first string }{
		{"", "B/s▼", "orders"}, {"s", "MSG/s▼", "orders"}, {"s", "TOPIC▲", "orders"}, {"r", "TOPIC▼", "topic-29"},
		{"s", "PART▼", "orders"}, {"s", "SEG▼", "orders"}, {"r", "SEG▲", "topic-00"}, {"s", "VERSION▼", "topic-29"}, {"s", "B/s▼", "orders"}, {"r", "B/s▲", "topic-00"},
	} {
		c.press(step.keys)
		c.wants(step.head)
		c.wantSelected(step.first)
	}
	c.press("2")
	for _, step := range []struct{ keys, head, first string }{
		{"", "ADDRESS▲", "10.0.0.1:7310"}, {"r", "ADDRESS▼", "10.0.0.4:7310"}, {"s", "B/s▼", "10.0.0.4:7310"}, {"s", "MSG/s▼", "10.0.0.4:7310"}, {"s r", "SEG▲", "10.0.0.1:7310"}, {"s", "MEMORY▼", "10.0.0.4:7310"},
	} {
		c.press(step.keys + " home")
		c.wants(step.head)
		c.wantSelected(step.first)
	}
}

// The selection stays with what was selected, wherever that moves; only the one
// at the top stays there.
func TestSelectionStays(t *testing.T) {
	c := filled(t, Options{})
	rates := func(of map[string]float64) *smqpb.WatchUpdate {
		u := &smqpb.WatchUpdate{}
		for _, topic := range worldTopics(30) {
			if rate, ok := of[topic.Topic]; ok {
				topic.BytesPerSecond = rate
				u.Topics = append(u.Topics, topic)
			}
		}
		return u
	}
	c.tell(rates(map[string]float64{"topic-08": 1e9}))
	c.wantSelected("topic-08")
	c.press("down")
	c.wantSelected("orders")
	c.tell(rates(map[string]float64{"orders": 0}))
	c.wantSelected("orders")
	c.tell(&smqpb.WatchUpdate{RemovedTopics: []string{"orders"}})
	c.lacks("orders")
	c.selectedLine()
}

func TestSelectedBrokerStays(t *testing.T) {
	c := filled(t, Options{})
	c.press("2 s home down")
	c.wantSelected("10.0.0.3:7310")
	info := worldCluster()
	info.Brokers[2].Load.BytesPerSecond = 1e12
	c.tell(&smqpb.WatchUpdate{Cluster: info})
	c.wantSelected("10.0.0.3:7310")
	info = worldCluster()
	info.Brokers = info.Brokers[:2]
	c.tell(&smqpb.WatchUpdate{Cluster: info})
	c.selectedLine()
}

func TestFilter(t *testing.T) {
	c := filled(t, Options{})
	c.press("/ T O P I C - 2")
	c.wants("/TOPIC-2_", "topic-21")
	c.lacks("orders", "topic-17")
	c.press("q") // is a letter here
	c.wants(`none of 31 topics contains "TOPIC-2q"`)
	if c.quit {
		t.Error("q quits while a filter is typed")
	}
	c.press("backspace enter")
	c.wantSelected("topic-21")
	c.wants("filter: TOPIC-2 (esc clears)")
	c.press("down esc")
	c.wants("orders", "topic-17")
	c.wantSelected("topic-25")
	c.press("/ x esc")
	c.wants("orders")
	c.press("/ x y space ctrl+u o r enter")
	c.wantSelected("orders")
	c.press("2 / rack-2 enter")
	c.wants("10.0.0.2:7310", "10.0.0.4:7310")
	c.lacks("10.0.0.3:7310")
	c.press("3 / failover enter")
	c.wantSelected("11:59:00")
	c.press("/ zzz enter")
	c.wants("no events that match yet")
	c.press("enter S M d y r f") // nothing to work on
	c.wants("no events that match yet")
}

func TestDrilling(t *testing.T) {
	c := filled(t, Options{})
	c.press("down enter")
	c.wants("waiting for the leading broker")
	c.press("esc home enter")
	c.fillTopic()
	c.wants("orders · 64 partitions · 4 segments · version 17 (split)", "a hot key", "LAST CHANGES")
	c.press("down enter")
	c.wants("orders · segment 8", "follows      segment 7 [17,32), sealed at chunk 8", "ITS CHANGES")
	c.press("esc")
	c.wantSelected("8")
	c.press("backspace 3 up enter")
	c.wants("split of version 16", "sealed       segment 4 [0,32) at chunk 40, 90k messages, 62.9 MB")
	c.press("enter")
	c.wants("waiting for the leading broker")
	c.press("esc esc 1")
	c.wants("[1 Topics 31]", "topic-17")
	// The watch of a topic follows what is looked at.
	if want := []string{"topic-17", "", "orders", "", "orders", ""}; !slices.Equal(c.watched, want) {
		t.Errorf("watched %q, want %q", c.watched, want)
	}
	c.press("enter 1")
	c.wants("topic-17")
}

func TestTopicThatIsGone(t *testing.T) {
	c := newConsole(t, 100, 30, Options{Topic: "orders"})
	c.wants("waiting for the leading broker")
	c.tellTopic(&smqpb.TopicDetail{Missing: true, Config: &smqpb.TopicConfig{Topic: "orders"}})
	c.wants("there is no topic orders")
	c.press("S M enter y")
	c.wantAsked()
	c.send(updatesMsg{topic: "orders", ended: errors.New("no such call")})
	c.wants("no such call")
	c.press("esc")
	c.wants("waiting for the leading broker")
	c.tell(&smqpb.WatchUpdate{Reset_: true, Complete: true})
	c.wants("no topics; smq-admin topic create NAME makes one")
}

// What the leading broker does not remember is in the store.
func TestChangesFromTheStore(t *testing.T) {
	c := newConsole(t, 100, 30, Options{Topic: "orders"})
	events := worldEvents()
	c.fake.past = []*smqpb.LayoutEvent{events[0], events[3], events[4]}
	c.tell(&smqpb.WatchUpdate{Complete: true, Events: events[3:4]})
	c.press("p")
	c.tellTopic(worldDetail())
	for range 2 {
		if got := strings.Count(c.frame(), "└ paused"); got != 3 {
			t.Errorf("%d changes in\n%s", got, c.frame())
		}
		c.press("p")
	}
	c.press("p down enter")
	c.wants("ITS CHANGES", "7[17,32) → 8[17,18) 9[18,32)")
	d := worldDetail()
	d.Config.TopicId = "another"
	c.fake.past = nil
	c.tellTopic(d)
	c.lacks("ITS CHANGES")
}

// A segment that follows another over the same partitions goes on with its
// sparkline; one that has other partitions begins anew.
func TestHistoryOfSuccessors(t *testing.T) {
	c := atTopic(t, Options{})
	d := worldDetail()
	rolled, moved := d.Layout.Segments[1], d.Layout.Segments[3]
	d.Layout.Segments[1] = &smqpb.Segment{Id: 20, Lo: rolled.Lo, Hi: rolled.Hi, Predecessors: []*smqpb.Predecessor{{Segment: rolled.Id, Lo: rolled.Lo, Hi: rolled.Hi}}}
	d.Layout.Segments[3] = &smqpb.Segment{Id: 21, Lo: 40, Hi: 64, Predecessors: []*smqpb.Predecessor{{Segment: moved.Id, Lo: moved.Lo, Hi: moved.Hi}}}
	c.tellTopic(d)
	if segments := c.m.live.detail.segments; segments[20].rates.samples == nil || segments[21].rates.samples != nil {
		t.Errorf("histories: %v, %v", segments[20].rates, segments[21].rates)
	}
}

// Rolls, of which there are many, don't hide what matters.
func TestRollsAreCounted(t *testing.T) {
	c := atTopic(t, Options{})
	for i := range 20 {
		c.tell(&smqpb.WatchUpdate{Events: []*smqpb.LayoutEvent{{Topic: "orders", TopicId: "id-orders", Version: uint64(18 + i), Cause: "roll", CreatedMs: worldMS}}})
	}
	c.wants("7[17,32) → 8[17,18) 9[18,32)", "20 rolls besides, the last one at 12:00:00")
}

// A segment that is split leaves the selection to the one that has taken over
// its first partition; its own screen says that it is sealed.
func TestSelectedSegmentIsSealed(t *testing.T) {
	c := atTopic(t, Options{})
	c.press("end")
	c.wantSelected("5")
	d := worldDetail()
	d.Layout.Segments = append(d.Layout.Segments[:3:3], &smqpb.Segment{Id: 10, Lo: 32, Hi: 48}, &smqpb.Segment{Id: 11, Lo: 48, Hi: 64})
	c.tellTopic(d)
	c.wantSelected("10")
	c.wants("?10?", "?11?")
	c.press("enter")
	c.wants("owner        unassigned", "load         not known yet")
	c.tellTopic(worldDetail())
	c.wants("not among the live segments")
	c.press("S")
	c.wantAsked()
}

// A pause holds still what is shown, while the console goes on listening.
func TestPause(t *testing.T) {
	c := filled(t, Options{})
	c.press("p")
	c.wants("PAUSED")
	before := c.frame()
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS + 5000, RemovedTopics: []string{"orders"}, Topics: []*smqpb.TopicStatus{{Topic: "new", BytesPerSecond: 1e12}}, Cluster: &smqpb.ClusterInfo{LeadingMaster: "m:1"},
		Events: []*smqpb.LayoutEvent{{Topic: "new", Cause: "create"}}})
	for range 2 * historyLength {
		c.send(tickMsg{})
	}
	if after := c.frame(); after != before {
		t.Errorf("changed while paused:\n%s\n%s", before, after)
	}
	c.press("enter")
	c.wants("waiting for the leading broker")
	c.tellTopic(worldDetail())
	c.wants("4 segments") // opened while paused: as it was found
	d := worldDetail()
	d.Layout.Segments = d.Layout.Segments[:2]
	c.tellTopic(d)
	c.wants("4 segments")
	c.press("p")
	c.wants("2 segments", "data from 12:00:05")
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS + 5000})
	c.wants("live 12:00:05")
	c.press("esc")
	c.wants("new")
	c.lacks("orders")
	c.press("3")
	c.wants("[3 Events 6]", "create")
}

func TestFeedFollows(t *testing.T) {
	c := filled(t, Options{})
	c.press("3")
	event := func(topic string) *smqpb.WatchUpdate {
		return &smqpb.WatchUpdate{Events: []*smqpb.LayoutEvent{{Topic: topic, TopicId: topic, Cause: "create", CreatedMs: worldMS}}}
	}
	c.tell(event("first"))
	c.wantSelected("12:00:00  create    first")
	c.wants("following")
	c.press("up")
	c.wantSelected("11:59:48")
	for range 40 {
		c.tell(event("more"))
	}
	c.wantSelected("11:59:48")
	c.lacks("following")
	c.press("f")
	c.wantSelected("12:00:00  create    more")
	c.press("f")
	c.tell(event("last"))
	c.wantSelected("12:00:00  create    more")
	c.press("end")
	c.wants("following")
	c.wantSelected("12:00:00  create    last")
	// Old ones are dropped, and the selection is not led astray.
	for range maxEvents / 2 {
		c.tell(event("flood"))
	}
	c.tell(event("chosen"), event("other"))
	c.press("up")
	for range maxEvents/2 + 100 {
		c.tell(event("flood"))
	}
	c.wantSelected("12:00:00  create    chosen")
	c.wants("[3 Events 5149]") // with those dropped
	if n := len(c.m.live.events); n != maxEvents {
		t.Errorf("%d events are kept", n)
	}
	for range maxEvents {
		c.tell(event("flood"))
	}
	c.wantSelected("12:00:00  create    flood")
}

func TestCopy(t *testing.T) {
	c := atTopic(t, Options{})
	c.press("down y")
	c.wants("copied orders/8")
	c.press("enter y esc esc y 2 down y enter y 3 y enter y")
	want := []string{"orders/8", "orders/8", "orders", brokerIDs[1], brokerIDs[1], "orders split 7[17,32) → 8[17,18) 9[18,32)", "orders split 7[17,32) → 8[17,18) 9[18,32)"}
	if !slices.Equal(c.copied, want) {
		t.Errorf("copied %q, want %q", c.copied, want)
	}
}
