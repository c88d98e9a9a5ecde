package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// eventsScreen is the feed of changes, the newest at the end.
type eventsScreen struct {
	table
	find   string
	follow bool // the selection stays with the newest
	chosen int  // else the number of the event that it stays with, counted from the first ever

	shown []int // the numbers of the events that match, rising
	made  feedKey
}

// feedKey is what the list of events is made of.
type feedKey struct {
	state       *state
	first, past int
	find        string
}

func newEventsScreen() *eventsScreen { return &eventsScreen{follow: true} }

func (s *eventsScreen) title(*Model) string { return "" }
func (s *eventsScreen) filter() *string     { return &s.find }

func (s *eventsScreen) hints(*Model) string {
	if s.follow {
		return "following  enter open  / filter  p pause  y copy  ? help  q quit"
	}
	return "f follow  enter open  / filter  p pause  y copy  ? help  q quit"
}

func (s *eventsScreen) name(m *Model) string {
	if e := s.selected(m); e != nil {
		return fmt.Sprintf("%s %s %s", e.GetTopic(), cause(e), change(m.theme, e))
	}
	return ""
}

func (s *eventsScreen) selected(m *Model) *smqpb.LayoutEvent {
	s.refresh(m.data())
	if s.cursor >= len(s.shown) {
		return nil
	}
	return s.event(m.data(), s.cursor)
}

func (s *eventsScreen) event(d *state, row int) *smqpb.LayoutEvent {
	return d.events[s.shown[row]-d.dropped]
}

// refresh finds the events that match anew if there are others, and moves the
// selection to where it belongs.
func (s *eventsScreen) refresh(d *state) {
	if key := (feedKey{d, d.dropped, d.dropped + len(d.events), s.find}); key != s.made {
		s.made = key
		s.shown = s.shown[:0]
		find := strings.ToLower(s.find)
		for i, e := range d.events {
			if strings.Contains(strings.ToLower(e.GetTopic()+" "+cause(e)), find) {
				s.shown = append(s.shown, d.dropped+i)
			}
		}
	}
	if s.follow {
		s.cursor = len(s.shown) - 1
	} else {
		s.cursor, _ = slices.BinarySearch(s.shown, s.chosen)
	}
	s.clamp(len(s.shown))
}

func (s *eventsScreen) key(m *Model, k string) (tea.Cmd, bool) {
	s.refresh(m.data())
	if len(s.shown) > 0 && s.table.key(k, len(s.shown)) {
		s.follow = s.cursor == len(s.shown)-1
		s.chosen = s.shown[s.cursor]
		return nil, true
	}
	switch k {
	case "f":
		if s.follow = !s.follow; !s.follow && len(s.shown) > 0 {
			s.chosen = s.shown[s.cursor]
		}
	case "enter", "right":
		if e := s.selected(m); e != nil {
			m.open(&eventScreen{event: e})
		}
	default:
		return nil, false
	}
	return nil, true
}

func (s *eventsScreen) view(m *Model, w, h int) []string {
	d := m.data()
	s.refresh(d)
	if len(s.shown) == 0 {
		return []string{"", "  no events" + map[bool]string{true: " that match"}[s.find != ""] + " yet"}
	}
	event := func(i int) *smqpb.LayoutEvent { return s.event(d, i) }
	columns := []column{
		{head: "TIME", width: 8, cell: func(i int) (string, role) { return m.clock(event(i).GetCreatedMs()), normal }},
		{head: "CAUSE", width: 8, cell: func(i int) (string, role) { return cause(event(i)), causeRole(event(i)) }},
		{head: "TOPIC", width: 12, flex: 1, cell: func(i int) (string, role) { return event(i).GetTopic(), normal }},
		{head: "CHANGE", width: 20, flex: 2, rank: 1, cell: func(i int) (string, role) { return change(m.theme, event(i)), normal }},
		{head: "PAUSE", width: 5, right: true, rank: 3, cell: func(i int) (string, role) { return paused(event(i)), normal }},
		{head: "WHY", width: 20, flex: 2, rank: 2, cell: func(i int) (string, role) { return event(i).GetReason(), normal }},
	}
	return s.table.view(m.theme, columns, len(s.shown), w, h)
}

// cause is the event in a word.
func cause(e *smqpb.LayoutEvent) string {
	if e.GetDeleted() {
		return "delete"
	}
	return orNone(e.GetCause())
}

func causeRole(e *smqpb.LayoutEvent) role {
	switch cause(e) {
	case "failover", "delete":
		return alarm
	case "split", "merge":
		return good
	case "drain", "move":
		return warning
	}
	return normal
}

// paused is for how long publishers had to wait.
func paused(e *smqpb.LayoutEvent) string {
	if e.GetPauseMs() == 0 {
		return "-"
	}
	if ms := e.GetPauseMs(); ms >= 1000 && ms < 10_000 {
		return fmt.Sprintf("%.1fs", float64(ms)/1000)
	}
	return ago(e.GetPauseMs()+1, 1)
}

// change is which segments gave way to which.
func change(th *theme, e *smqpb.LayoutEvent) string {
	if e.GetDeleted() {
		return "-"
	}
	var parents, children []string
	for _, s := range e.GetSealed() {
		text := fmt.Sprintf("%d%s", s.GetId(), ranged(s.GetLo(), s.GetHi()))
		if s.GetUnclean() {
			text += " UNCLEAN"
		}
		parents = append(parents, text)
	}
	for _, s := range e.GetOpened() {
		children = append(children, fmt.Sprintf("%d%s", s.GetId(), ranged(s.GetLo(), s.GetHi())))
	}
	from := strings.Join(parents, " ")
	if from != "" {
		from += " "
	}
	return from + th.arrow + " " + orNone(strings.Join(children, " "))
}

// eventLines tell of an event among a topic's: what and, if it is known, why.
func eventLines(m *Model, e *smqpb.LayoutEvent, w int) []string {
	th := m.theme
	when := m.clock(e.GetCreatedMs()) + " "
	what := th.fit(th.clean(cause(e)), 8, false)
	left := w - width(when) - width(what) - 1
	lines := []string{th.paint(faint, when) + th.paint(causeRole(e), what) + " " + th.cut(th.clean(change(th, e)), left)}
	var why []string
	if e.GetPauseMs() > 0 {
		why = append(why, "paused "+paused(e))
	}
	if e.GetReason() != "" {
		why = append(why, e.GetReason())
	}
	if len(why) > 0 {
		lines = append(lines, th.paint(faint, th.cut("         "+th.join+" "+th.clean(strings.Join(why, "; ")), w)))
	}
	return lines
}

// eventScreen tells all of one event.
type eventScreen struct {
	event *smqpb.LayoutEvent
}

func (s *eventScreen) title(m *Model) string {
	return titled(m, s.event.GetTopic(), fmt.Sprintf("%s of version %d", cause(s.event), s.event.GetVersion()))
}

func (s *eventScreen) hints(*Model) string {
	return "enter open the topic  y copy  p pause  esc back  ? help"
}

func (s *eventScreen) name(m *Model) string {
	return fmt.Sprintf("%s %s %s", s.event.GetTopic(), cause(s.event), change(m.theme, s.event))
}

func (s *eventScreen) key(m *Model, k string) (tea.Cmd, bool) {
	if k != "enter" && k != "right" {
		return nil, false
	}
	m.open(&topicScreen{topic: s.event.GetTopic()})
	return nil, true
}

func (s *eventScreen) view(m *Model, w, _ int) []string {
	e, d := s.event, m.data()
	lines := facts(m, w, "when", fmt.Sprintf("%s, %s ago", m.clock(e.GetCreatedMs()), ago(d.timeMS, e.GetCreatedMs())))
	lines = append(lines, facts(m, w, "by", "leader "+d.address(e.GetLeader()))...)
	lines = append(lines, facts(m, w, "why", orNone(e.GetReason()))...)
	lines = append(lines, facts(m, w, "paused", paused(e))...)
	lines = append(lines, facts(m, w, "segments", fmt.Sprintf("%d after it", e.GetSegments()))...)
	lines = append(lines, "")
	for _, sealed := range e.GetSealed() {
		lines = append(lines, facts(m, w, "sealed", sealedFacts(e, sealed))...)
	}
	for _, opened := range e.GetOpened() {
		lines = append(lines, facts(m, w, "opened", fmt.Sprintf("segment %d %s on %s, %s", opened.GetId(), ranged(opened.GetLo(), opened.GetHi()), d.owner(opened), smq.Count(len(opened.GetReplicas()), "follower")))...)
	}
	return lines
}

// sealedFacts tells of a segment that an event sealed: what is in it, and what
// it took in last.
func sealedFacts(e *smqpb.LayoutEvent, s *smqpb.SealedSegment) string {
	text := fmt.Sprintf("segment %d %s", s.GetId(), ranged(s.GetLo(), s.GetHi()))
	if s.GetEmpty() {
		return text + ", never assigned"
	}
	text += fmt.Sprintf(" at chunk %d, %s messages, %s", s.GetSealChunk(), round(float64(s.GetMessages())), inBytes(float64(s.GetBytes())))
	if s.GetUnclean() {
		text += ", UNCLEAN: all its replicas were lost"
	}
	for _, load := range e.GetLoads() {
		if load.GetSegment() == s.GetId() {
			text += fmt.Sprintf(", took in %s", traffic(load.GetMessagesPerSecond(), load.GetBytesPerSecond()))
		}
	}
	return text
}
