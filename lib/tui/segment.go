package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// segmentScreen shows what is known of one segment.
type segmentScreen struct {
	table
	topic   string
	segment uint64
}

func (s *segmentScreen) title(m *Model) string {
	return titled(m, s.topic, fmt.Sprintf("segment %d", s.segment))
}

// titled is what is shown of a topic. Where both have no room, the topic's name is cut.
func titled(m *Model, topic, what string) string {
	what = " " + m.theme.dot + " " + what
	return m.theme.cut(m.theme.clean(topic), max(m.w-width(what), 1)) + what
}

func (s *segmentScreen) hints(*Model) string {
	return "S split  M merge with next  y copy  p pause  esc back  ? help"
}

func (s *segmentScreen) name(*Model) string { return fmt.Sprintf("%s/%d", s.topic, s.segment) }

// live is the segment while it lives.
func (s *segmentScreen) live(m *Model) *liveSegment {
	d := m.data().detail
	if d == nil || d.TopicDetail == nil {
		return nil
	}
	return d.segments[s.segment]
}

func (s *segmentScreen) key(m *Model, k string) (tea.Cmd, bool) {
	live := s.live(m)
	if live == nil {
		return nil, false
	}
	if s.table.key(k, len(live.load.GetPartitions())) {
		return nil, true
	}
	switch k {
	case "S":
		askSplit(m, s.topic, live.Segment)
	case "M":
		segments := m.data().detail.GetLayout().GetSegments()
		askMerge(m, s.topic, segments, segmentAt(segments, live.GetLo()))
	default:
		return nil, false
	}
	return nil, true
}

func (s *segmentScreen) view(m *Model, w, h int) []string {
	live := s.live(m)
	if live == nil {
		return append([]string{"", "  not among the live segments: it has been sealed", ""}, s.changes(m, w)...)
	}
	if w >= wide {
		left := w / 2
		return beside(append(s.facts(m, live, left), s.changes(m, left)...), s.partitions(m, live, w-left-3, h), left, h, m.theme)
	}
	facts := s.facts(m, live, w)
	room := max(h-len(facts), 0)
	partitions := s.partitions(m, live, w, max(room*2/3, min(room, 3)))
	return append(append(facts, partitions...), s.changes(m, w)...)
}

// facts are the segment's own, in w columns.
func (s *segmentScreen) facts(m *Model, live *liveSegment, w int) []string {
	owner := m.data().owner(live.Segment)
	if live.GetOwner() != "" {
		owner = m.data().named(owner, live.GetOwner())
	}
	lines := facts(m, w, "range", fmt.Sprintf("%s, %s", ranged(live.GetLo(), live.GetHi()), smq.Count(live.GetHi()-live.GetLo(), "partition")))
	lines = append(lines, facts(m, w, "owner", owner)...)
	lines = append(lines, s.loadFacts(m, live, w)...)
	var followers []string
	for _, r := range live.GetReplicas() {
		followers = append(followers, m.data().named(r.GetAddress(), r.GetBroker()))
	}
	lines = append(lines, facts(m, w, "followers", orNone(strings.Join(followers, ", ")))...)
	return append(lines, predecessors(m, live.Segment, w)...)
}

// loadFacts are what the segment takes in, and took in lately.
func (s *segmentScreen) loadFacts(m *Model, live *liveSegment, w int) []string {
	if live.load == nil {
		return facts(m, w, "load", "not known yet")
	}
	d := m.data().detail
	of := "of the load above which it is split"
	if !d.hasThreshold() {
		of = "of the topic's busiest segment"
	}
	part := d.part(live.load)
	text := fmt.Sprintf("%s: %.0f%% %s %s", traffic(live.load.GetMessagesPerSecond(), live.load.GetBytesPerSecond()), part*100, m.theme.heat[heatOf(part)], of)
	return append(facts(m, w, "load", text), fact(m, "lately", "")+live.rates.sparkline(m.theme, 24, 0))
}

// fact is a line of a name and what there is to say.
func fact(m *Model, name, text string) string {
	return m.theme.paint(faint, fit(name, factIndent, false, "")) + m.theme.clean(text)
}

// factIndent is where what there is to say begins.
const factIndent = 13

// facts are fact in as many lines of w columns as it takes.
func facts(m *Model, w int, name, text string) []string {
	var lines []string
	for _, part := range wrap(m.theme.clean(text), max(w-factIndent, 1)) {
		lines = append(lines, fact(m, name, part))
		name = ""
	}
	return lines
}

// predecessors are the segments that this one has followed, and where those
// ended.
func predecessors(m *Model, segment *smqpb.Segment, w int) []string {
	all := segment.GetPredecessors()
	if len(all) == 0 {
		return facts(m, w, "follows", "nothing: it is the first")
	}
	shown := all
	if len(all) > 4 {
		shown = all[:3]
	}
	var lines []string
	for _, p := range shown {
		text := fmt.Sprintf("segment %d %s, sealed at chunk %d", p.GetSegment(), ranged(p.GetLo(), p.GetHi()), p.GetSealChunk())
		lines = append(lines, facts(m, w, "follows", text)...)
	}
	if len(shown) < len(all) {
		lines = append(lines, fact(m, "", fmt.Sprintf("and %d more", len(all)-len(shown))))
	}
	return lines
}

// partitionRate is what a partition takes in.
type partitionRate struct {
	partition       int32
	messages, bytes float64
}

// partitions is the table of the partitions that are not silent, the busiest
// first.
func (s *segmentScreen) partitions(m *Model, live *liveSegment, w, h int) []string {
	rates := ratesOf(live.load)
	if len(rates) == 0 {
		return []string{"", m.theme.paint(faint, "no partition takes anything in")}[:max(min(h, 2), 0)]
	}
	sum := max(live.load.GetBytesPerSecond(), 1e-9)
	columns := []column{
		{head: "PARTITION", width: 9, right: true, cell: func(i int) (string, role) { return fmt.Sprint(rates[i].partition), normal }},
		{head: "MSG/s", width: 7, right: true, cell: func(i int) (string, role) { return count(rates[i].messages), normal }},
		{head: "B/s", width: 7, right: true, cell: func(i int) (string, role) { return count(rates[i].bytes), normal }},
		{head: "SHARE", width: 5, right: true, cell: func(i int) (string, role) { return fmt.Sprintf("%.0f%%", min(rates[i].bytes/sum, 1)*100), normal }},
		{head: "", width: 4, flex: 1, draw: func(i, w int) string {
			return strings.Repeat(m.theme.heat[4], int(min(rates[i].bytes/sum, 1)*float64(w)+0.5))
		}},
	}
	return s.table.view(m.theme, columns, len(rates), w, h)
}

func ratesOf(load *smqpb.SegmentLoad) []partitionRate {
	var rates []partitionRate
	for i, p := range load.GetPartitions() {
		if i < len(load.GetPartitionBytes()) && i < len(load.GetPartitionMessages()) {
			rates = append(rates, partitionRate{p, float64(load.GetPartitionMessages()[i]), float64(load.GetPartitionBytes()[i])})
		}
	}
	slices.SortFunc(rates, func(a, b partitionRate) int {
		return cmp.Or(-cmp.Compare(a.bytes, b.bytes), -cmp.Compare(a.messages, b.messages), cmp.Compare(a.partition, b.partition))
	})
	return rates
}

// changes are the events that opened or sealed the segment.
func (s *segmentScreen) changes(m *Model, w int) []string {
	var lines []string
	if m.data().detail == nil {
		return nil
	}
	for _, e := range m.data().changes() {
		if concerns(e, s.segment) && len(lines) < 8 {
			lines = append(lines, eventLines(m, e, w)...)
		}
	}
	if len(lines) > 0 {
		lines = append([]string{m.theme.paint(head, "ITS CHANGES")}, lines...)
	}
	return lines
}

func concerns(e *smqpb.LayoutEvent, segment uint64) bool {
	return slices.ContainsFunc(e.GetOpened(), func(o *smqpb.Segment) bool { return o.GetId() == segment }) ||
		slices.ContainsFunc(e.GetSealed(), func(o *smqpb.SealedSegment) bool { return o.GetId() == segment })
}
