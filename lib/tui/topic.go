package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// topicScreen shows a topic's segments over its partitions, and what changed
// them last.
type topicScreen struct {
	table
	topic  string
	chosen uint64 // the segment that the selection stays with
	lo     int32  // where that began: its successor is selected when it goes
}

func (s *topicScreen) title(m *Model) string {
	d := m.data().detail
	if d == nil || d.TopicDetail == nil || d.GetMissing() {
		return s.topic
	}
	return joined([]string{s.topic, smq.Count(d.GetConfig().GetPartitions(), "partition"), smq.Count(len(d.GetLayout().GetSegments()), "segment"),
		fmt.Sprintf("version %d (%s)", d.GetLayout().GetVersion(), orNone(d.GetLayout().GetCause()))}, " "+m.theme.dot+" ", m.w)
}

// scaling is when a topic's segments split, in words, in w columns if it can be.
func scaling(s *smqpb.Scaling, w int) string {
	if s.GetMode() != "auto" {
		return "scaling " + orNone(s.GetMode())
	}
	var above []string
	if s.GetSplitBytesPerSecond() > 0 {
		above = append(above, inBytes(s.GetSplitBytesPerSecond())+"/s")
	}
	if s.GetSplitMessagesPerSecond() > 0 {
		above = append(above, round(s.GetSplitMessagesPerSecond())+" msg/s")
	}
	splits := "splits above " + strings.Join(above, " or ")
	text := joined([]string{"scaling auto: " + splits, fmt.Sprintf("%d to %s", s.GetMinSegments(), smq.Count(s.GetMaxSegments(), "segment"))}, ", ", w)
	if width(text) > w {
		return splits
	}
	return text
}

func (s *topicScreen) hints(*Model) string {
	return "enter open  S split  M merge with next  y copy  p pause  esc back  ? help"
}

func (s *topicScreen) name(m *Model) string {
	if live := s.selected(m); live != nil {
		return fmt.Sprintf("%s/%d", s.topic, live.GetId())
	}
	return s.topic
}

// segments are the live ones, by range.
func (s *topicScreen) segments(m *Model) []*smqpb.Segment {
	d := m.data().detail
	if d == nil || d.TopicDetail == nil {
		return nil
	}
	return d.GetLayout().GetSegments()
}

// selected is the selected segment. The selection stays with its segment, or
// with the one that has taken its first partition over.
func (s *topicScreen) selected(m *Model) *smqpb.Segment {
	segments := s.segments(m)
	if len(segments) == 0 {
		return nil
	}
	if i := slices.IndexFunc(segments, func(x *smqpb.Segment) bool { return x.GetId() == s.chosen }); i >= 0 {
		s.cursor = i
	} else {
		s.cursor = segmentAt(segments, s.lo)
	}
	s.chosen, s.lo = segments[s.cursor].GetId(), segments[s.cursor].GetLo()
	return segments[s.cursor]
}

func (s *topicScreen) key(m *Model, k string) (tea.Cmd, bool) {
	live, segments := s.selected(m), s.segments(m)
	if live == nil {
		return nil, false
	}
	if s.table.key(k, len(segments)) {
		s.chosen, s.lo = segments[s.cursor].GetId(), segments[s.cursor].GetLo()
		return nil, true
	}
	switch k {
	case "enter", "right":
		m.open(&segmentScreen{topic: s.topic, segment: live.GetId()})
	case "S":
		askSplit(m, s.topic, live)
	case "M":
		askMerge(m, s.topic, segments, s.cursor)
	default:
		return nil, false
	}
	return nil, true
}

// askSplit asks whether to split a segment.
func askSplit(m *Model, topic string, s *smqpb.Segment) {
	what := fmt.Sprintf("segment %d %s of %s", s.GetId(), ranged(s.GetLo(), s.GetHi()), topic)
	if s.GetHi()-s.GetLo() < 2 {
		m.flash, m.bad = what+" has a single partition: there is nothing to split", true
		return
	}
	m.confirm(&dialog{
		question: "Split " + what + "?",
		detail:   "It is sealed, and two follow it, divided where its load halves. Its publishers wait for a moment.",
		doing:    "split " + what,
		done:     what + " is split",
		act: func(ctx context.Context) error {
			return m.o.Backend.SplitSegment(ctx, topic, s.GetId())
		},
	})
}

// askMerge asks whether to merge a segment with the next one, or the last one
// with the one before it.
func askMerge(m *Model, topic string, segments []*smqpb.Segment, at int) {
	if len(segments) < 2 {
		m.flash, m.bad = topic+" has a single segment: there is nothing to merge", true
		return
	}
	at = min(at, len(segments)-2)
	a, b := segments[at], segments[at+1]
	what := fmt.Sprintf("segments %d %s and %d %s of %s", a.GetId(), ranged(a.GetLo(), a.GetHi()), b.GetId(), ranged(b.GetLo(), b.GetHi()), topic)
	m.confirm(&dialog{
		question: "Merge " + what + "?",
		detail:   "They are sealed, and one follows them. Their publishers wait for a moment.",
		doing:    "merge " + what,
		done:     what + " are merged",
		act: func(ctx context.Context) error {
			return m.o.Backend.MergeSegments(ctx, topic, []uint64{a.GetId(), b.GetId()})
		},
	})
}

func (s *topicScreen) view(m *Model, w, h int) []string {
	d := m.data().detail
	switch {
	case m.broken != nil:
		return []string{"", "  " + m.theme.clean(m.broken.Error())}
	case d == nil || d.TopicDetail == nil:
		return []string{"", "  waiting for the leading broker"}
	case d.GetError() != nil:
		return damagedLines(m, s.topic, d.GetError().GetMessage(), w)
	case d.GetMissing():
		return []string{"", "  there is no topic " + m.theme.clean(s.topic) + " (any more)"}
	}
	s.selected(m)
	drawing := ring(m, d, s.chosen, w)
	if h < low && len(drawing) > 0 {
		drawing = []string{drawing[ringBar], drawing[ringMarks]}
		return append(drawing, s.below(m, d, w, h-len(drawing))...)
	}
	lines := []string{m.theme.cut(m.theme.clean(scaling(d.GetScaling(), w)), w)}
	lines = append(lines, drawing...)
	return append(lines, s.below(m, d, w, h-len(lines))...)
}

// low is the height below which a topic is its bar and its segments, and no more: what
// belongs to them would leave the segments no room.
const low = 10

// damagedLines say why there is nothing to see of a topic that cannot be read.
func damagedLines(m *Model, topic, why string, w int) []string {
	lines := []string{"", "  " + m.theme.paint(alarm, m.theme.cut("topic "+m.theme.clean(topic)+" cannot be read:", w-2))}
	for _, text := range wrap(m.theme.clean(why), w-4) {
		lines = append(lines, "    "+m.theme.cut(text, w-4))
	}
	return lines
}

// storyLines are left to the story where there are more segments than lines.
const storyLines = 4

// below is the table of segments, and beside it or below it the notes and the
// last changes.
func (s *topicScreen) below(m *Model, d *detail, w, h int) []string {
	columns, rows := s.columns(m, d), len(d.GetLayout().GetSegments())
	if w >= wide {
		left := w * 3 / 5
		return beside(s.table.view(m.theme, columns, rows, left, h), s.story(m, d, w-left-3), left, h, m.theme)
	}
	story := s.story(m, d, w)
	room := max(min(rows+1, h-min(len(story), storyLines)), 2)
	if h < low {
		room = min(rows+1, h)
	}
	lines := s.table.view(m.theme, columns, rows, w, room)
	return append(lines, story...)
}

// columns are those of the table of segments.
func (s *topicScreen) columns(m *Model, d *detail) []column {
	th, data := m.theme, m.data()
	segment := func(i int) *liveSegment { return d.segments[d.GetLayout().GetSegments()[i].GetId()] }
	percent := "OF SPLIT"
	if !d.hasThreshold() {
		percent = "OF MAX"
	}
	top := d.busiest
	return []column{
		{head: "SEG", width: 6, right: true, cell: func(i int) (string, role) { return fmt.Sprint(segment(i).GetId()), normal }},
		{head: "RANGE", width: 13, rank: 1, cell: func(i int) (string, role) { return ranged(segment(i).GetLo(), segment(i).GetHi()), normal }},
		{head: "OWNER", width: 15, flex: 1, address: true, cell: func(i int) (string, role) {
			if segment(i).GetOwner() == "" {
				return data.owner(segment(i).Segment), warning
			}
			return data.marked(data.owner(segment(i).Segment), segment(i).GetOwner())
		}},
		{head: "FOLL", width: 4, right: true, rank: 5, cell: func(i int) (string, role) { return data.followers(segment(i).Segment) }},
		{head: "MSG/s", width: 6, right: true, rank: 3, cell: func(i int) (string, role) {
			return rate(segment(i).load, count(segment(i).load.GetMessagesPerSecond())), normal
		}},
		{head: "B/s", width: 6, right: true, cell: func(i int) (string, role) {
			return rate(segment(i).load, count(segment(i).load.GetBytesPerSecond())), normal
		}},
		{head: percent, width: 9, right: true, rank: 2, cell: func(i int) (string, role) {
			part := d.part(segment(i).load)
			heat := heatOf(part)
			return rate(segment(i).load, fmt.Sprintf("%.0f%% %s", part*100, th.heat[heat])), heatRole(heat)
		}},
		{head: "LATELY", width: 8, flex: 1, rank: 4, draw: func(i, w int) string { return segment(i).rates.sparkline(th, w, top) }},
	}
}

// rate is a rate, or that it is not known.
func rate(load *smqpb.SegmentLoad, text string) string {
	if load == nil {
		return "?"
	}
	return text
}

// story is the planner's notes and the last changes, newest first.
func (s *topicScreen) story(m *Model, d *detail, w int) []string {
	th := m.theme
	var lines []string
	for _, note := range d.GetNotes() {
		for i, text := range wrap("! "+th.clean(note), w) {
			if i > 0 {
				text = "  " + text
			}
			lines = append(lines, th.paint(warning, th.cut(text, w)))
		}
	}
	changes, rolls := withoutRolls(m.data().changes())
	if len(changes) > 0 {
		lines = append(lines, th.paint(head, "LAST CHANGES"))
	}
	for _, e := range changes[:min(len(changes), 6)] {
		lines = append(lines, eventLines(m, e, w)...)
	}
	if len(rolls) > 0 {
		text := smq.Count(len(rolls), "roll") + " besides, the last one at " + m.clock(rolls[0].GetCreatedMs())
		lines = append(lines, th.paint(faint, th.cut(text, w)))
	}
	return lines
}

// withoutRolls takes those changes out that change neither a range nor, as a
// rule, an owner: busy segments roll all the time.
func withoutRolls(changes []*smqpb.LayoutEvent) (others, rolls []*smqpb.LayoutEvent) {
	for _, e := range changes {
		if e.GetCause() == "roll" {
			rolls = append(rolls, e)
		} else {
			others = append(others, e)
		}
	}
	return others, rolls
}

// beside puts two columns side by side.
func beside(left, right []string, w, h int, th *theme) []string {
	var lines []string
	for i := range min(max(len(left), len(right)), h) {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		lines = append(lines, padded(l, w)+" "+th.paint(faint, th.edge)+" "+r)
	}
	return lines
}
