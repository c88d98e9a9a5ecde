package tui

import (
	"fmt"
	"sort"
	"strings"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// ring draws a topic's partitions from the first to the last as a bar, in which
// each segment is as long as its range: a line of numbers, the load of the
// partitions, the segments with their heat, their owners, and a mark below the
// one that is selected. Where there are more segments or partitions than columns,
// a column shows the busiest of its own.
func ring(m *Model, d *detail, selected uint64, w int) []string {
	segments := d.GetLayout().GetSegments()
	partitions := int(d.GetConfig().GetPartitions())
	if len(segments) == 0 || partitions == 0 || w < 4 {
		return nil
	}
	r := &ringLines{theme: m.theme, d: d, w: w, partitions: partitions, selected: selected}
	for i, s := range segments {
		from, to := r.column(s.GetLo()), r.column(s.GetHi())
		if i+1 == len(segments) {
			to = w
		}
		r.segment(s, from, max(to, from), m.data())
	}
	return []string{r.numbers(), r.loads(), r.bar.String(), r.owners.String(), strings.TrimRight(r.marks.String(), " ")}
}

// Two of the lines of a ring.
const (
	ringBar   = 2
	ringMarks = 4
)

// ringLines are the lines while they are drawn.
type ringLines struct {
	theme         *theme
	d             *detail
	w, partitions int
	selected      uint64
	bar, owners   strings.Builder
	marks         strings.Builder
	drawn         int              // columns that are full
	hidden        []*smqpb.Segment // that share the next column
}

// column is where a partition begins.
func (r *ringLines) column(partition int32) int { return int(partition) * r.w / r.partitions }

// segment draws one segment into the columns from, from+1, …, to-1.
func (r *ringLines) segment(s *smqpb.Segment, from, to int, data *state) {
	if to <= from || to <= r.drawn {
		r.hidden = append(r.hidden, s)
		return
	}
	th, width := r.theme, to-r.drawn
	var load *smqpb.SegmentLoad // of the busiest
	mine := false
	for _, other := range append(r.hidden, s) {
		if l := r.d.segments[other.GetId()].load; l != nil && (load == nil || r.d.part(l) > r.d.part(load)) {
			load = l
		}
		mine = mine || other.GetId() == r.selected
	}
	r.hidden, r.drawn = nil, to
	heat, colour := "?", faint
	if load != nil {
		n := heatOf(r.d.part(load))
		heat, colour = th.heat[n], heatRole(n)
	}
	r.bar.WriteString(r.bars(s, heat, colour, width))
	owner := ""
	if width >= 6 {
		owner = th.clean(data.owner(s))
	}
	r.owners.WriteString(th.paint(faint, th.edge) + th.address(owner, width-1))
	mark := " "
	if mine {
		mark = th.point
	}
	r.marks.WriteString(th.paint(strong, strings.Repeat(mark, width)))
}

// bars is a segment in the bar: its edge, its heat and, if there is room, its
// id. Where there is room for one column only, the heat counts.
func (r *ringLines) bars(s *smqpb.Segment, heat string, colour role, width int) string {
	th := r.theme
	fill := func(n int) string { return th.paint(colour, strings.Repeat(heat, n)) }
	if width == 1 {
		return fill(1)
	}
	label := fmt.Sprint(s.GetId())
	if len(label)+3 > width {
		label = ""
	}
	before := (width - 1 - len(label)) / 2
	return th.paint(faint, th.edge) + fill(before) + th.paint(strong, label) + fill(width-1-len(label)-before)
}

// numbers is the line of the partitions at which segments begin, as far as there
// is room.
func (r *ringLines) numbers() string {
	line := []byte(strings.Repeat(" ", r.w))
	end := fmt.Sprint(r.partitions)
	copy(line[r.w-len(end):], end)
	free := 0
	for _, s := range r.d.GetLayout().GetSegments() {
		label := fmt.Sprint(s.GetLo())
		if at := r.column(s.GetLo()); at >= free && at+len(label) < r.w-len(end) {
			copy(line[at:], label)
			free = at + len(label) + 1
		}
	}
	return r.theme.paint(faint, string(line))
}

// loads is a sparkline over the partitions: each column is as high as the
// busiest of its partitions.
func (r *ringLines) loads() string {
	columns := make([]float64, r.w)
	top := 0.0
	for _, l := range r.d.GetLoads() {
		for i, p := range l.GetPartitions() {
			if i >= len(l.GetPartitionBytes()) || int(p) >= r.partitions || p < 0 {
				break
			}
			rate := float64(l.GetPartitionBytes()[i])
			at := r.column(p)
			for c := at; c < max(r.column(p+1), at+1) && c < r.w; c++ {
				columns[c] = max(columns[c], rate)
			}
			top = max(top, rate)
		}
	}
	var line strings.Builder
	for _, rate := range columns {
		line.WriteString(r.theme.bar(rate / max(top, 1e-9)))
	}
	return line.String()
}

// segmentAt is the index of the segment that has a partition.
func segmentAt(segments []*smqpb.Segment, partition int32) int {
	i := sort.Search(len(segments), func(i int) bool { return segments[i].GetHi() > partition })
	return min(i, len(segments)-1)
}
