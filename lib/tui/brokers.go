package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// brokerOrders are the orders of the brokers. Where two are alike, addresses
// decide.
var brokerOrders = []struct {
	name    string
	compare func(a, b *smqpb.BrokerInfo) int
}{
	{"ADDRESS", func(a, b *smqpb.BrokerInfo) int { return 0 }},
	{"B/s", func(a, b *smqpb.BrokerInfo) int {
		return -cmp.Compare(a.GetLoad().GetBytesPerSecond(), b.GetLoad().GetBytesPerSecond())
	}},
	{"MSG/s", func(a, b *smqpb.BrokerInfo) int {
		return -cmp.Compare(a.GetLoad().GetMessagesPerSecond(), b.GetLoad().GetMessagesPerSecond())
	}},
	{"SEG", func(a, b *smqpb.BrokerInfo) int {
		return -cmp.Compare(a.GetLoad().GetSegments(), b.GetLoad().GetSegments())
	}},
	{"MEMORY", func(a, b *smqpb.BrokerInfo) int { return -cmp.Compare(memoryPart(a), memoryPart(b)) }},
}

// brokersScreen lists the brokers.
type brokersScreen struct {
	table
	find    string
	order   int
	reverse bool
	chosen  string // id of the broker that the selection stays with
}

func (s *brokersScreen) title(*Model) string { return "" }
func (s *brokersScreen) filter() *string     { return &s.find }

func (s *brokersScreen) hints(*Model) string {
	return "enter open  d drain  / filter  s sort  r reverse  p pause  ? help  q quit"
}

func (s *brokersScreen) name(m *Model) string {
	if b, _ := s.selected(m); b != nil {
		return b.GetId()
	}
	return ""
}

// selected is the selected broker, and all that are shown.
func (s *brokersScreen) selected(m *Model) (*smqpb.BrokerInfo, []*smqpb.BrokerInfo) {
	find := strings.ToLower(s.find)
	var rows []*smqpb.BrokerInfo
	for _, b := range m.data().cluster.GetBrokers() {
		if strings.Contains(strings.ToLower(b.GetId()+" "+b.GetAddress()+" "+b.GetRack()), find) {
			rows = append(rows, b)
		}
	}
	slices.SortFunc(rows, func(a, b *smqpb.BrokerInfo) int {
		c := cmp.Or(brokerOrders[s.order].compare(a, b), cmp.Compare(a.GetAddress(), b.GetAddress()), cmp.Compare(a.GetId(), b.GetId()))
		if s.reverse {
			return -c
		}
		return c
	})
	if i := slices.IndexFunc(rows, func(b *smqpb.BrokerInfo) bool { return b.GetId() == s.chosen }); i >= 0 {
		s.cursor = i
	}
	s.clamp(len(rows))
	if len(rows) == 0 {
		return nil, nil
	}
	s.chosen = rows[s.cursor].GetId()
	return rows[s.cursor], rows
}

func (s *brokersScreen) key(m *Model, k string) (tea.Cmd, bool) {
	b, rows := s.selected(m)
	if b != nil && s.table.key(k, len(rows)) {
		s.chosen = rows[s.cursor].GetId()
		return nil, true
	}
	switch k {
	case "s":
		s.order, s.reverse = (s.order+1)%len(brokerOrders), false
	case "r":
		s.reverse = !s.reverse
	case "d":
		if b != nil {
			askDrain(m, b)
		}
	case "enter", "right":
		if b != nil {
			m.open(&brokerScreen{id: b.GetId()})
		}
	default:
		return nil, false
	}
	return nil, true
}

// askDrain asks whether to drain a broker.
func askDrain(m *Model, b *smqpb.BrokerInfo) {
	what := fmt.Sprintf("broker %s (%s)", b.GetAddress(), short(b.GetId()))
	if b.GetDraining() {
		m.flash, m.bad = what+" is draining already", false
		return
	}
	m.confirm(&dialog{
		question: "Drain " + what + "?",
		detail:   fmt.Sprintf("It hands over %s, and leaves the cluster: its process ends.", handedOver(b)),
		doing:    "drain " + what,
		done:     what + " is draining",
		act:      func(ctx context.Context) error { return m.o.Backend.DrainBroker(ctx, b.GetId()) },
	})
}

// handedOver are the segments that a broker hands over, in words.
func handedOver(b *smqpb.BrokerInfo) string {
	if b.GetLoad() == nil {
		return "its segments"
	}
	return smq.Count(b.GetLoad().GetSegments(), "segment")
}

func (s *brokersScreen) view(m *Model, w, h int) []string {
	_, rows := s.selected(m)
	if len(rows) == 0 {
		return []string{"", "  no brokers" + map[bool]string{true: " that match"}[s.find != ""]}
	}
	return s.table.view(m.theme, s.columns(m, rows), len(rows), w, h)
}

func (s *brokersScreen) columns(m *Model, rows []*smqpb.BrokerInfo) []column {
	d, th := m.data(), m.theme
	text := func(f func(*smqpb.BrokerInfo) string) func(int) (string, role) {
		return func(i int) (string, role) { return f(rows[i]), normal }
	}
	load := func(f func(*smqpb.Load) string) func(int) (string, role) {
		return func(i int) (string, role) {
			if rows[i].GetLoad() == nil {
				return "-", faint
			}
			return f(rows[i].GetLoad()), normal
		}
	}
	top := 0.0
	for _, b := range rows {
		top = max(top, b.GetLoad().GetBytesPerSecond())
	}
	columns := []column{
		{head: "ADDRESS", width: 15, flex: 1, address: true, cell: text(func(b *smqpb.BrokerInfo) string { return b.GetAddress() })},
		{head: "ID", width: 8, rank: 7, cell: text(func(b *smqpb.BrokerInfo) string { return short(b.GetId()) })},
		{head: "STATE", width: 9, cell: func(i int) (string, role) { return brokerState(d, rows[i]) }},
		{head: "RACK", width: 8, rank: 6, cell: text(func(b *smqpb.BrokerInfo) string { return orNone(b.GetRack()) })},
		{head: "SEG", width: 5, right: true, rank: 2, cell: load(func(l *smqpb.Load) string { return fmt.Sprint(l.GetSegments()) })},
		{head: "MSG/s", width: 6, right: true, rank: 3, cell: load(func(l *smqpb.Load) string { return count(l.GetMessagesPerSecond()) })},
		{head: "B/s", width: 6, right: true, cell: load(func(l *smqpb.Load) string { return count(l.GetBytesPerSecond()) })},
		{head: "MEMORY", width: 7, right: true, rank: 1, cell: func(i int) (string, role) {
			if rows[i].GetLoad() == nil {
				return "-", faint
			}
			return fmt.Sprintf("%.0f%%", memoryPart(rows[i])*100), memoryRole(rows[i])
		}},
		{head: "LATELY", width: 12, flex: 1, rank: 8, draw: func(i, w int) string {
			if h := d.brokers[rows[i].GetId()]; h != nil {
				return h.sparkline(th, w, top)
			}
			return ""
		}},
		{head: "UP", width: 4, right: true, rank: 5, cell: text(func(b *smqpb.BrokerInfo) string { return ago(d.timeMS, b.GetJoinedMs()) })},
		{head: "VERSION", width: 10, rank: 9, cell: text(func(b *smqpb.BrokerInfo) string { return orNone(b.GetVersion()) })},
	}
	for i := range columns {
		if c := &columns[i]; c.head == brokerOrders[s.order].name {
			mark := th.falling
			if s.reverse != (s.order == 0) {
				mark = th.rising
			}
			c.head += mark
		}
	}
	return columns
}

// brokerState is whether a broker is well, in words; a question mark while no
// master leads, who would know.
func brokerState(d *state, b *smqpb.BrokerInfo) (string, role) {
	switch {
	case b.GetSilent():
		return "SILENT", alarm
	case b.GetDraining():
		return "draining", warning
	case d.masterless() && d.cluster.GetLeader().GetBroker() == b.GetId():
		return "? leads", warning
	case d.masterless():
		return "?", warning
	case d.cluster.GetLeader().GetBroker() == b.GetId():
		return "ok leads", good
	}
	return "ok", good
}

// memoryPart is how full a broker's memory is, 1 when it is full.
func memoryPart(b *smqpb.BrokerInfo) float64 {
	if b.GetLoad().GetMemoryLimit() == 0 {
		return 0
	}
	return float64(b.GetLoad().GetMemoryUsed()) / float64(b.GetLoad().GetMemoryLimit())
}

func memoryRole(b *smqpb.BrokerInfo) role {
	switch part := memoryPart(b); {
	case part >= 0.9:
		return alarm
	case part >= 0.7:
		return warning
	}
	return normal
}

// brokerScreen shows what is known of one broker.
type brokerScreen struct{ id string }

func (s *brokerScreen) title(m *Model) string { return "broker " + m.data().address(s.id) }
func (s *brokerScreen) name(*Model) string    { return s.id }

func (s *brokerScreen) hints(*Model) string {
	return "d drain  y copy  p pause  esc back  ? help"
}

func (s *brokerScreen) key(m *Model, k string) (tea.Cmd, bool) {
	b := m.data().broker(s.id)
	if k != "d" || b == nil {
		return nil, false
	}
	askDrain(m, b)
	return nil, true
}

func (s *brokerScreen) view(m *Model, w, _ int) []string {
	d := m.data()
	b := d.broker(s.id)
	if b == nil {
		return []string{"", "  broker " + m.theme.clean(s.id) + " has left"}
	}
	state, r := brokerState(d, b)
	load := b.GetLoad()
	lines := facts(m, w, "state", state+stateHint(d, b))
	lines[0] = fact(m, "state", "") + m.theme.paint(r, state) + strings.TrimPrefix(lines[0], fact(m, "state", state))
	if load == nil {
		lines = append(lines, fact(m, "load", "not known"))
	} else {
		lines = append(lines,
			fact(m, "segments", fmt.Sprint(load.GetSegments())),
			fact(m, "load", traffic(load.GetMessagesPerSecond(), load.GetBytesPerSecond())),
			fact(m, "memory", fmt.Sprintf("%s of %s (%.0f%%)", memory(load.GetMemoryUsed()), memory(load.GetMemoryLimit()), memoryPart(b)*100)))
	}
	if h := d.brokers[s.id]; h != nil {
		lines = append(lines, fact(m, "lately", "")+h.sparkline(m.theme, max(min(w-14, 60), 1), 0))
	}
	lines = append(lines, facts(m, w, "id", b.GetId())...)
	lines = append(lines, facts(m, w, "address", b.GetAddress())...)
	lines = append(lines, facts(m, w, "http", orNone(b.GetHttpAddress()))...)
	lines = append(lines, facts(m, w, "rack", orNone(b.GetRack()))...)
	lines = append(lines, facts(m, w, "version", orNone(b.GetVersion()))...)
	lines = append(lines, facts(m, w, "joined", m.clock(b.GetJoinedMs())+", "+ago(d.timeMS, b.GetJoinedMs())+" ago")...)
	return append(lines, s.changes(m, w)...)
}

// stateHint says what it means that a broker is silent, or that nobody knows.
func stateHint(d *state, b *smqpb.BrokerInfo) string {
	switch {
	case b.GetSilent():
		return ": its connection to the leading master has ended; its segments move when its lease has run out"
	case d.masterless():
		return ": no master leads, so that nobody knows"
	}
	return ""
}

// changes are the events that gave the broker segments.
func (s *brokerScreen) changes(m *Model, w int) []string {
	lines := []string{"", m.theme.paint(head, "SEGMENTS TAKEN OVER LATELY")}
	for _, e := range slices.Backward(m.data().events) {
		if len(lines) < 12 && slices.ContainsFunc(e.GetOpened(), func(o *smqpb.Segment) bool { return o.GetOwner() == s.id }) {
			what := m.clock(e.GetCreatedMs()) + " " + m.theme.fit(m.theme.clean(cause(e)), 8, false) + " " + e.GetTopic() + " " + change(m.theme, e)
			lines = append(lines, m.theme.cut(m.theme.clean(what), w))
		}
	}
	if len(lines) == 2 {
		return nil
	}
	return lines
}
