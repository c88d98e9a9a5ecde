package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// The smallest screen that is drawn on; a smaller one gets a line that says so,
// and its keys do nothing but quit.
const (
	minWidth  = 40
	minHeight = 10
)

// wide is from when on there are two columns side by side.
const wide = 120

// screen is one of the views. Screens hold what is selected, not what is shown:
// that they take from the model at each call.
type screen interface {
	// title is what the view shows, for the line below the tabs; "" for a tab's
	// first.
	title(m *Model) string
	// key takes a key that is not everybody's; false: it means nothing here.
	key(m *Model, k string) (tea.Cmd, bool)
	// view draws at most h lines of at most w columns.
	view(m *Model, w, h int) []string
	// hints are the keys worth a place in the last line.
	hints(m *Model) string
	// name is what is selected, to be copied.
	name(m *Model) string
}

// filtered is a screen that shows only what matches a text.
type filtered interface {
	filter() *string
}

// tab is one of the views that the digits reach, with those opened from it.
type tab struct {
	label string
	stack []screen
}

func (t *tab) top() screen { return t.stack[len(t.stack)-1] }

// Model is the console: all that is shown, as Bubble Tea runs it. Its methods
// belong to one goroutine.
type Model struct {
	o     Options
	theme *theme

	// What Run provides; tests do without some of it.
	ctx   context.Context
	focus func(topic string) // watch this topic in place of the one before; "": none
	copy  func(string) error // put a text on the clipboard

	w, h   int
	live   *state
	frozen *state // what is shown while it is paused; nil: it is not
	lost   error  // why the cluster is being looked for; nil: it is not
	quiet  int    // seconds since the cluster's watch told something, if only that it lives
	broken error  // why the topic that is looked at is not told of

	tabs   []*tab
	at     int
	typing bool    // a filter
	ask    *dialog // nil: nothing is asked
	help   bool
	helpAt int    // the first line of the help that is shown
	flash  string // the outcome of the last action, until the next key
	bad    bool   // that was a failure
	watch  string // the topic whose detail is watched
	failed error  // why the console ended
}

// newModel is the console before anything is known.
func newModel(o Options) *Model {
	if o.Zone == nil {
		o.Zone = time.Local
	}
	m := &Model{o: o, theme: newTheme(o.ASCII, o.NoColor), live: newState()}
	m.tabs = []*tab{
		{label: "Topics", stack: []screen{newTopicsScreen()}},
		{label: "Brokers", stack: []screen{&brokersScreen{}}},
		{label: "Events", stack: []screen{newEventsScreen()}},
	}
	if o.Topic != "" {
		m.open(&topicScreen{topic: o.Topic})
	}
	return m
}

// data is what is shown.
func (m *Model) data() *state {
	if m.frozen != nil {
		return m.frozen
	}
	return m.live
}

func (m *Model) tab() *tab      { return m.tabs[m.at] }
func (m *Model) screen() screen { return m.tab().top() }

// open shows a screen above the present one.
func (m *Model) open(s screen) {
	m.tab().stack = append(m.tab().stack, s)
	m.refocus()
}

// back leaves the topmost screen, if it is not a tab's first.
func (m *Model) back() bool {
	t := m.tab()
	if len(t.stack) == 1 {
		return false
	}
	t.stack = t.stack[:len(t.stack)-1]
	m.refocus()
	return true
}

// refocus has the topic watched that the screens of the tab are about.
func (m *Model) refocus() {
	topic := ""
	for _, s := range m.tab().stack {
		if s, ok := s.(*topicScreen); ok {
			topic = s.topic
		}
	}
	if topic == m.watch {
		return
	}
	m.watch, m.broken = topic, nil
	m.live.look(topic)
	if m.frozen != nil {
		m.frozen.look(topic)
	}
	if m.focus != nil {
		m.focus(topic)
	}
}

// What the streams and actions tell the model.
type (
	// updatesMsg is what a watch has told since the last one.
	updatesMsg struct {
		topic   string // of a topic's detail; "": of the cluster
		updates []*smqpb.WatchUpdate
		lost    error // set when it has to begin anew since then
		ended   error // set when it has ended for good
	}
	// pastMsg is what the store has of a topic's changes.
	pastMsg struct {
		topicID string
		changes []*smqpb.LayoutEvent
	}
	// tickMsg comes every second.
	tickMsg struct{}
	// doneMsg is the outcome of an action.
	doneMsg struct {
		what string
		err  error
	}
	// faultMsg is a panic in what runs beside the model.
	faultMsg struct{ err error }
)

// Init asks for nothing: Run starts what tells the model.
func (m *Model) Init() tea.Cmd { return nil }

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.KeyMsg:
		return m, m.press(msg)
	case updatesMsg:
		return m, m.take(msg)
	case pastMsg:
		m.live.takePast(msg.topicID, msg.changes)
		if m.frozen != nil {
			m.frozen.takePast(msg.topicID, msg.changes)
		}
	case tickMsg:
		if m.quiet++; m.lost == nil && !m.stale() { // else nobody knows the rates
			m.live.sample()
		}
	case doneMsg:
		m.flash, m.bad = msg.what, msg.err != nil
		if msg.err != nil {
			m.flash = fmt.Sprintf("%s: %v", msg.what, msg.err)
		}
	case faultMsg:
		return m, m.end(msg.err)
	}
	return m, nil
}

// end ends the console with an error.
func (m *Model) end(err error) tea.Cmd {
	m.failed = err
	return tea.Quit
}

// take takes what a watch has told.
func (m *Model) take(msg updatesMsg) tea.Cmd {
	if msg.topic != "" {
		return m.takeDetail(msg)
	}
	for _, u := range msg.updates {
		m.live.apply(u)
	}
	switch {
	case msg.ended != nil:
		return m.end(msg.ended)
	case msg.lost != nil:
		m.lost = msg.lost
	case len(msg.updates) > 0:
		m.lost, m.quiet = nil, 0
	}
	return nil
}

func (m *Model) takeDetail(msg updatesMsg) tea.Cmd {
	if msg.topic != m.watch {
		return nil // it has been left meanwhile
	}
	before := m.live.detail.GetConfig().GetTopicId()
	for _, u := range msg.updates {
		m.live.applyDetail(u.GetDetail())
		if m.frozen != nil && m.frozen.detail != nil && m.frozen.detail.TopicDetail == nil {
			// Opened while paused: it stands still as it was found.
			m.frozen.applyDetail(u.GetDetail())
		}
	}
	if msg.ended != nil {
		m.broken = msg.ended
	}
	if d := m.live.detail; d.GetConfig().GetTopicId() != before && !d.GetMissing() {
		return m.fetchPast(d)
	}
	return nil
}

// pastSegments bounds the past of a topic that is asked for, in segments that its
// versions name: each names all that there were.
const pastSegments = 2000

// fetchPast asks for a topic's last changes, which the leading broker may not
// remember. Without them the topic is shown all the same.
func (m *Model) fetchPast(d *detail) tea.Cmd {
	versions := uint64(pastSegments / max(len(d.GetLayout().GetSegments()), 10))
	after := max(d.GetLayout().GetVersion(), versions) - versions
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, actionTimeout)
		defer cancel()
		changes, err := m.o.Backend.Changes(ctx, d.topic, after)
		if err != nil {
			return nil
		}
		return pastMsg{d.GetConfig().GetTopicId(), changes}
	})
}

// View draws the screen.
func (m *Model) View() string {
	switch {
	case m.w < 1 || m.h < 1:
		return ""
	case m.w < minWidth || m.h < minHeight:
		return m.frame([]string{fmt.Sprintf("%dx%d is too small", m.w, m.h), fmt.Sprintf("needs %dx%d", minWidth, minHeight), "q quits"})
	}
	lines := []string{m.status(), m.tabLine()}
	body := m.h - 3
	var view []string
	switch {
	case m.ask != nil:
		view = m.ask.view(m, m.w, body)
	case m.help:
		view = m.helpView(m.w)
	default:
		if title := m.screen().title(m); title != "" {
			view = append(view, m.theme.paint(strong, m.theme.cut(m.theme.clean(title), m.w)))
		}
		view = append(view, m.screen().view(m, m.w, body-len(view))...)
	}
	lines = append(lines, view[:min(len(view), body)]...)
	for len(lines) < m.h-1 {
		lines = append(lines, "")
	}
	return m.frame(append(lines, m.footer()))
}

// frame makes the screen of lines: no more of them than there are, and none
// wider than it is.
func (m *Model) frame(lines []string) string {
	lines = lines[:min(len(lines), m.h)]
	for i, line := range lines {
		if lines[i] = line; ansi.StringWidth(line) > m.w {
			lines[i] = ansi.Truncate(line, m.w, m.theme.more)
		}
	}
	return strings.Join(lines, "\n")
}

// status is the first line: the cluster, and whether what is shown is new.
func (m *Model) status() string {
	d := m.data()
	state, r := m.condition()
	facts := []rankedFact{{"smq", 0}}
	if c := d.cluster; c != nil {
		leader := "no leader"
		if id := c.GetLeader().GetBroker(); id != "" {
			leader = "led by " + d.address(id)
		}
		facts = append(facts, rankedFact{short(c.GetClusterId()), 3}, rankedFact{smq.Count(len(c.GetBrokers()), "broker"), 4}, rankedFact{leader, 2})
	}
	if m.o.ReadOnly {
		facts = append(facts, rankedFact{"read-only", 1})
	}
	clock := m.clock(d.timeMS)
	state = m.theme.cut(state, m.w/2)
	room := m.w - width(state) - width(clock) - 3
	left := m.theme.fit(pick(facts, " "+m.theme.dot+" ", room, m.theme.clean), room, false)
	return m.theme.paint(head, left) + "  " + m.theme.paint(r, state) + " " + clock
}

// rankedFact is a part of the first line. Those of the lowest rank are given room first.
type rankedFact struct {
	text string
	rank int
}

// pick joins the facts for which there is room in w columns.
func pick(facts []rankedFact, between string, w int, clean func(string) string) string {
	byRank := make([]int, len(facts))
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortFunc(byRank, func(a, b int) int { return cmp.Compare(facts[a].rank, facts[b].rank) })
	texts, used := make([]string, len(facts)), -width(between)
	for _, i := range byRank {
		if text := clean(facts[i].text); used+width(between)+width(text) <= w {
			texts[i] = text
			used += width(between) + width(text)
		}
	}
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), between)
}

// condition is how new that is which is shown.
func (m *Model) condition() (string, role) {
	switch {
	case m.lost != nil:
		return "reconnecting: " + m.theme.clean(m.lost.Error()), alarm
	case m.frozen != nil:
		return "PAUSED", warning
	case !m.live.complete:
		return "connecting", warning
	case m.stale():
		return "data from " + m.clock(m.live.timeMS), alarm
	case m.live.masterless():
		return "no master leads", alarm
	}
	return "live", good
}

// staleAfter is after how many seconds without a word from the leading broker
// what is shown is old: it gives a sign of life every two.
const staleAfter = 6

// stale reports whether what was told last is old.
func (m *Model) stale() bool { return m.live.complete && m.quiet >= staleAfter }

// clock is the time of day of a moment in ms since 1970.
func (m *Model) clock(ms int64) string {
	if ms == 0 {
		return "--:--:--"
	}
	return time.UnixMilli(ms).In(m.o.Zone).Format(time.TimeOnly)
}

// tabLine is the second line: the tabs, and the traffic of the whole.
func (m *Model) tabLine() string {
	d := m.data()
	numbers := []int{len(d.topics), len(d.cluster.GetBrokers()), d.dropped + len(d.events)}
	var tabs []string
	used := 0
	for i, t := range m.tabs {
		label := fmt.Sprintf(" %d %s %d ", i+1, t.label, numbers[i])
		if i == m.at {
			label = fmt.Sprintf("[%d %s %d]", i+1, t.label, numbers[i])
			tabs = append(tabs, m.theme.paint(strong, label))
		} else {
			tabs = append(tabs, m.theme.paint(faint, label))
		}
		used += len(label)
	}
	sum := d.traffic()
	if space := m.w - used - len(sum); space > 0 {
		return strings.Join(tabs, "") + strings.Repeat(" ", space) + sum
	}
	return strings.Join(tabs, "")
}

// footer is the last line: what is being typed, what came of the last action,
// or which keys there are.
func (m *Model) footer() string {
	th := m.theme
	switch {
	case m.typing:
		return th.paint(strong, "/"+th.clean(*m.screen().(filtered).filter())) + "_ " + th.paint(faint, "enter keeps, esc clears")
	case m.flash != "" && m.bad:
		return th.paint(alarm, th.cut("failed: "+th.clean(m.flash), m.w))
	case m.flash != "":
		return th.paint(good, th.cut(th.clean(m.flash), m.w))
	}
	hints := m.screen().hints(m)
	if m.ask != nil {
		hints = "left/right choose  enter confirms  esc cancels"
	} else if m.help {
		hints = m.helpHints()
	} else if f, ok := m.screen().(filtered); ok && *f.filter() != "" {
		hints = "filter: " + th.clean(*f.filter()) + " (esc clears)  " + hints
	}
	return th.paint(faint, th.cut(fitHints(hints, m.w), m.w))
}

// lastHints are those that are left out last, the most important one first:
// without them nobody finds the others, or the way out.
var lastHints = []string{"? help", "q quit", "esc back"}

// fitHints leaves out hints, which two spaces part, until they have room in w
// columns: first the last of them.
func fitHints(hints string, w int) string {
	all := strings.Split(hints, "  ")
	for i := len(all) - 1; i >= 0 && width(strings.Join(all, "  ")) > w; i-- {
		if !slices.Contains(lastHints, all[i]) {
			all = slices.Delete(all, i, i+1)
		}
	}
	for _, hint := range slices.Backward(lastHints) {
		if i := slices.Index(all, hint); i >= 0 && len(all) > 1 && width(strings.Join(all, "  ")) > w {
			all = slices.Delete(all, i, i+1)
		}
	}
	return strings.Join(all, "  ")
}
