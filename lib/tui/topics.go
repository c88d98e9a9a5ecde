package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smq"
)

// topicOrder is an order of the topics. Where two are alike, names decide.
type topicOrder struct {
	name    string
	compare func(a, b *topicRow) int
	falls   bool // the greatest come first, as a rule
}

var topicOrders = []topicOrder{
	{"B/s", func(a, b *topicRow) int { return cmp.Compare(a.GetBytesPerSecond(), b.GetBytesPerSecond()) }, true},
	{"MSG/s", func(a, b *topicRow) int { return cmp.Compare(a.GetMessagesPerSecond(), b.GetMessagesPerSecond()) }, true},
	{"TOPIC", func(a, b *topicRow) int { return 0 }, false},
	{"PART", func(a, b *topicRow) int { return cmp.Compare(a.GetPartitions(), b.GetPartitions()) }, true},
	{"SEG", func(a, b *topicRow) int { return cmp.Compare(a.GetSegments(), b.GetSegments()) }, true},
	{"VERSION", func(a, b *topicRow) int { return cmp.Compare(a.GetLayoutVersion(), b.GetLayoutVersion()) }, true},
}

// topicsScreen lists the topics.
type topicsScreen struct {
	table
	find    string
	order   int // in topicOrders
	reverse bool
	chosen  string // the topic that the selection stays with; "": it stays at the top

	rows []*topicRow // in order
	made rowsKey     // of what they were made
}

// rowsKey is what the list of rows is made of: while it is the same, so are
// they.
type rowsKey struct {
	state   *state
	version int
	find    string
	order   int
	reverse bool
}

func newTopicsScreen() *topicsScreen { return &topicsScreen{} }

func (s *topicsScreen) title(*Model) string { return "" }
func (s *topicsScreen) filter() *string     { return &s.find }

func (s *topicsScreen) hints(*Model) string {
	return "enter open  / filter  s sort  r reverse  p pause  y copy  ? help  q quit"
}

func (s *topicsScreen) name(m *Model) string {
	if row := s.selected(m); row != nil {
		return row.GetTopic()
	}
	return ""
}

func (s *topicsScreen) selected(m *Model) *topicRow {
	s.refresh(m.data())
	if s.cursor < len(s.rows) {
		return s.rows[s.cursor]
	}
	return nil
}

// refresh makes the rows anew if they have changed, and keeps the selection with
// its topic.
func (s *topicsScreen) refresh(d *state) {
	key := rowsKey{d, d.version, s.find, s.order, s.reverse}
	if key == s.made {
		return
	}
	s.made = key
	find := strings.ToLower(s.find)
	s.rows = s.rows[:0]
	for _, row := range d.topics {
		if strings.Contains(row.lower, find) {
			s.rows = append(s.rows, row)
		}
	}
	slices.SortFunc(s.rows, s.compare)
	if i := slices.IndexFunc(s.rows, func(r *topicRow) bool { return r.GetTopic() == s.chosen }); i >= 0 && s.chosen != "" {
		s.cursor = i
	}
	s.clamp(len(s.rows))
}

func (s *topicsScreen) compare(a, b *topicRow) int {
	o := topicOrders[s.order]
	c := o.compare(a, b)
	if c == 0 {
		c = strings.Compare(a.GetTopic(), b.GetTopic())
		if o.falls {
			return c
		}
	}
	if s.falls() {
		return -c
	}
	return c
}

// falls reports whether the greatest come first.
func (s *topicsScreen) falls() bool { return topicOrders[s.order].falls != s.reverse }

func (s *topicsScreen) key(m *Model, k string) (tea.Cmd, bool) {
	s.refresh(m.data())
	if s.table.key(k, len(s.rows)) {
		s.chosen = ""
		if s.cursor > 0 {
			s.chosen = s.name(m)
		}
		return nil, true
	}
	switch k {
	case "s":
		s.order = (s.order + 1) % len(topicOrders)
		s.reverse = false
	case "r":
		s.reverse = !s.reverse
	case "enter", "right":
		if row := s.selected(m); row != nil {
			m.open(&topicScreen{topic: row.GetTopic()})
		}
	default:
		return nil, false
	}
	return nil, true
}

func (s *topicsScreen) view(m *Model, w, h int) []string {
	d := m.data()
	s.refresh(d)
	if len(s.rows) == 0 {
		return []string{"", "  " + s.empty(m)}
	}
	return s.table.view(m.theme, s.columns(m), len(s.rows), w, h)
}

func (s *topicsScreen) empty(m *Model) string {
	switch {
	case s.find != "" && len(m.data().topics) > 0:
		return fmt.Sprintf("none of %s contains %q", smq.Count(len(m.data().topics), "topic"), m.theme.clean(s.find))
	case !m.data().complete:
		return "waiting for the leading broker"
	}
	return "no topics; smq-admin topic create NAME makes one"
}

func (s *topicsScreen) columns(m *Model) []column {
	th := m.theme
	row := func(i int) *topicRow { return s.rows[i] }
	text := func(f func(*topicRow) string) func(int) (string, role) {
		return func(i int) (string, role) {
			if row(i).GetError() != nil {
				return "-", faint
			}
			return f(row(i)), normal
		}
	}
	columns := []column{
		{head: "TOPIC", width: 16, flex: 2, cell: func(i int) (string, role) {
			if row(i).GetError() != nil {
				return row(i).GetTopic() + " (damaged)", alarm
			}
			return row(i).GetTopic(), normal
		}},
		{head: "PART", width: 8, right: true, rank: 2, cell: text(func(r *topicRow) string { return fmt.Sprint(r.GetPartitions()) })},
		{head: "SEG", width: 6, right: true, cell: text(func(r *topicRow) string { return fmt.Sprint(r.GetSegments()) })},
		{head: "MSG/s", width: 7, right: true, cell: text(func(r *topicRow) string { return count(r.GetMessagesPerSecond()) })},
		{head: "B/s", width: 7, right: true, cell: text(func(r *topicRow) string { return count(r.GetBytesPerSecond()) })},
		{head: "LATELY", width: 12, flex: 1, rank: 4, draw: func(i, w int) string { return row(i).rates.sparkline(th, w, 0) }},
		{head: "VERSION", width: 9, right: true, rank: 5, cell: text(func(r *topicRow) string { return fmt.Sprint(r.GetLayoutVersion()) })},
		{head: "SCALING", width: 7, rank: 3, cell: text(func(r *topicRow) string { return orNone(r.GetMode()) })},
	}
	for i := range columns {
		if c := &columns[i]; c.head == topicOrders[s.order].name {
			mark := th.rising
			if s.falls() {
				mark = th.falling
			}
			c.head += mark
		}
	}
	return columns
}
