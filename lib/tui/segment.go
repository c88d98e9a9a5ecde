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
	return fmt.Sprintf("%s %s segment %d", s.topic, m.theme.dot, s.segment)
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
	facts := s.facts(m, live)
	if w >= wide {
		left := w / 2
		return beside(append(facts, s.changes(m, left)...), s.partitions(m, live, w-left-3, h), left, h, m.theme)
	}
	room := max(h-len(facts), 0)
	partitions := s.partitions(m, live, w, max(room*2/3, min(room, 3)))
	return append(append(facts, partitions...), s.changes(m, w)...)
}

// facts are the segment's own.
func (s *segmentScreen) facts(m *Model, live *liveSegment) []string {
	d := m.data().detail
	part := d.part(live.load)
	owner := m.data().owner(live.Segment)
	if live.GetOwner() != "" {
		owner = m.data().named(owner, live.GetOwner())
	}
	lines := []string{
		fact(m, "range", fmt.Sprintf("%s, %s", ranged(live.GetLo(), live.GetHi()), smq.Count(live.GetHi()-live.GetLo(), "partition"))),
		fact(m, "owner", owner),
	}
	var followers []string
	for _, r := range live.GetReplicas() {
		followers = append(followers, m.data().named(r.GetAddress(), r.GetBroker()))
	}
	lines = append(lines, fact(m, "followers", orNone(strings.Join(followers, ", "))))
	lines = append(lines, predecessors(m, live.Segment)...)
	if live.load == nil {
		return append(lines, fact(m, "load", "not known yet"))
	}
	of := "of the load above which it is split"
	if !d.hasThreshold() {
		of = "of the topic's busiest segment"
	}
	heat := heatOf(part)
	lines = append(lines,
		fact(m, "load", fmt.Sprintf("%s: %.0f%% %s %s", traffic(live.load.GetMessagesPerSecond(), live.load.GetBytesPerSecond()), part*100, m.theme.heat[heat], of)),
		fact(m, "lately", "")+live.rates.sparkline(m.theme, 24, 0))
	return lines
}

// fact is a line of a name and what there is to say.
func fact(m *Model, name, text string) string {
	return m.theme.paint(faint, fit(name, 13, false, "")) + m.theme.clean(text)
}

// predecessors are the segments that this one has followed, and where those
// ended.
func predecessors(m *Model, segment *smqpb.Segment) []string {
	var lines []string
	for _, p := range segment.GetPredecessors() {
		text := fmt.Sprintf("segment %d %s, sealed at chunk %d", p.GetSegment(), ranged(p.GetLo(), p.GetHi()), p.GetSealChunk())
		lines = append(lines, fact(m, "follows", text))
	}
	if len(lines) == 0 {
		return []string{fact(m, "follows", "nothing: it is the first")}
	}
	if len(lines) > 4 {
		lines = append(lines[:3], fact(m, "", fmt.Sprintf("and %d more", len(lines)-3)))
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
