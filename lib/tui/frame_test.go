package tui

import (
	"errors"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestHelp(t *testing.T) {
	c := filled(t, Options{})
	c.press("?")
	c.wants("split a segment; merge it with the next one")
	c.press("x")
	c.lacks("split a segment")
	c.press("? q")
	if !c.quit {
		t.Error("q does not quit from the help")
	}
}

// On a small screen the help scrolls: each of its keys can be found.
func TestHelpScrolls(t *testing.T) {
	c := newConsole(t, minWidth, minHeight, Options{})
	c.fill()
	c.press("?")
	c.wants("topics, brokers", "down: more below")
	c.lacks("drain a broker")
	seen := c.frame()
	for range 40 {
		c.press("down")
		seen += c.frame()
	}
	for _, text := range []string{"S, M", "drain a broker", "quit", "not known yet"} {
		if !strings.Contains(seen, text) {
			t.Errorf("%q is never seen", text)
		}
	}
	c.press("end")
	c.wants("not known yet", "up: more above")
	c.press("home")
	c.wants("topics, brokers")
	c.press("x")
	c.lacks("topics, brokers, events")
}

func TestFooterKeepsTheWayOut(t *testing.T) {
	const hints = "enter open  d drain  / filter  s sort  esc back  ? help  q quit"
	for w, want := range map[int]string{
		80: hints,
		60: "enter open  d drain  / filter  esc back  ? help  q quit",
		40: "enter open  esc back  ? help  q quit",
		20: "? help  q quit",
		6:  "? help",
	} {
		if got := fitHints(hints, w); got != want {
			t.Errorf("in %d columns: %q, want %q", w, got, want)
		}
	}
	for _, keys := range []string{"", "2", "3"} {
		c := newConsole(t, 60, 20, Options{})
		c.fill()
		c.press(keys)
		c.wants("? help", "q quit")
	}
}

// What has not been renewed is said to be old, until something comes.
func TestOldDataIsNotLive(t *testing.T) {
	c := filled(t, Options{})
	for range staleAfter - 1 {
		c.send(tickMsg{})
	}
	c.wants("live 12:00:00")
	c.send(tickMsg{})
	c.wants("data from 12:00:00")
	c.lacks("live")
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS + 9000}) // a sign of life
	c.wants("live 12:00:09")
}

func TestWithoutAMajorityOfTheMasters(t *testing.T) {
	c := filled(t, Options{})
	c.tell(masterless())
	c.wants("no master leads 12:00:00", "traffic not known")
	c.lacks("live", "msg/s,")
	c.press("2")
	c.wants("? leads", "SILENT")
	c.lacks("ok leads", "0%")
	c.press("enter")
	c.wants("not known", "no master leads, so that nobody knows")
	c.lacks("0 B")
	c.press("d")
	c.wants("It hands over its segments")
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS, Cluster: worldCluster()})
	c.wants("live")
}

func TestQuitting(t *testing.T) {
	c := filled(t, Options{})
	c.press("q")
	if !c.quit || c.m.failed != nil {
		t.Errorf("q: %v, %v", c.quit, c.m.failed)
	}
	c = filled(t, Options{})
	c.press("/ ctrl+c")
	if !c.quit || !errors.Is(c.m.failed, ErrInterrupted) {
		t.Errorf("ctrl+c: %v, %v", c.quit, c.m.failed)
	}
}

// Keys that come together count one by one; a text that is pasted does nothing,
// except where a text is typed.
func TestFastKeysAndPastes(t *testing.T) {
	c := filled(t, Options{})
	c.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("jjk")})
	c.wantSelected("topic-17")
	c.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2dy"), Paste: true})
	c.wantSelected("topic-17")
	c.press("/")
	c.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("topic-0\x1b[2J"), Paste: true})
	c.wants("/topic-0?[2J_")
	c.press("esc")
	c.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("2dy")})
	c.wantAsked("drain " + brokerIDs[0])
}

// A screen too small says so, and its keys do nothing but quit.
func TestTooSmall(t *testing.T) {
	c := atTopic(t, Options{})
	c.send(tea.WindowSizeMsg{Width: 20, Height: 5})
	c.wants("20x5 is too small")
	c.press("S y enter 2 ?")
	c.wantAsked()
	c.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	c.wants("orders · 64 partitions")
	c.lacks("Split")
	c.send(tea.WindowSizeMsg{Width: 39, Height: 30})
	c.wants("39x30 is too small")
	c.press("q")
	if !c.quit {
		t.Error("q does not quit")
	}
}

func TestReconnecting(t *testing.T) {
	c := filled(t, Options{})
	c.send(updatesMsg{lost: errors.New("connection refused")})
	c.wants("reconnecting: connection refused", "topic-17")
	before := c.m.live.topics["orders"].rates.next
	c.send(tickMsg{})
	if c.m.live.topics["orders"].rates.next != before {
		t.Error("takes samples of rates that nobody knows")
	}
	half := &smqpb.WatchUpdate{Reset_: true, Topics: worldTopics(2)}
	c.tell(half)
	c.wants("live", "topic-17") // what the new snapshot has not told of yet
	c.tell(&smqpb.WatchUpdate{Complete: true})
	c.wants("[1 Topics 3]")
	c.lacks("topic-17")
	c.send(updatesMsg{ended: smq.ErrInvalid})
	if !c.quit || !errors.Is(c.m.failed, smq.ErrInvalid) {
		t.Errorf("the end of the watch: %v, %v", c.quit, c.m.failed)
	}
}
