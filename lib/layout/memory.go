package layout

import (
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Memory is what the planner remembers of a topic from look to look. The zero
// value remembers nothing; a planner that begins with it is careful: it takes
// every segment to be as young as the layout version. As with append, only the
// Memory that a look returned is good for the next one.
type Memory struct {
	version uint64                // of the layout that the marks are of; 0: none
	marks   []mark                // by the order of the layout's segments
	index   map[smq.SegmentID]int // into marks
	regrets regrets
}

// mark is what is remembered of a live segment. Times are in nanoseconds since
// 1970; 0 is never.
type mark struct {
	segment smq.SegmentID
	span    smq.Range
	changed int64 // when its partitions were last split, merged or given away
	merged  bool  // it came by a merge then
	above   int64 // since when it has been above the threshold
	trend   trend // since then
	below   int64 // since when it and its right neighbour have been below half
	tried   int64 // when a decision about it was last made
	adds    int   // the segments that this decision adds to the layout, while it is carried out
}

// settled reports whether the segment's load means something.
func (k *mark) settled(now int64) bool { return k.changed == 0 || now-k.changed >= int64(settle) }

// settle is how long a changed segment's load means nothing: what was held back
// comes at once, and a new owner's averages start from nothing.
const settle = 5 * time.Second

// retry is the time after which a decision that came to nothing is made again.
const retry = 2 * time.Second

// Changed is when the segment's partitions were last split, merged or moved, as
// far as is remembered; zero when never, or when the segment is not known.
func (m Memory) Changed(id smq.SegmentID) time.Time {
	if i, ok := m.index[id]; ok && m.marks[i].changed != 0 {
		return time.Unix(0, m.marks[i].changed)
	}
	return time.Time{}
}

// follow brings the marks to the given layout.
func (m *Memory) follow(l Layout, now int64) {
	if m.version == l.Version {
		return
	}
	old, known, stepped := m.marks, m.version > 0, m.version+1 == l.Version
	m.version = l.Version
	m.marks, m.index = make([]mark, len(l.Segments)), make(map[smq.SegmentID]int, len(l.Segments))
	for i, s := range l.Segments {
		for len(old) > 0 && old[0].span.Lo < s.Range.Lo {
			old = old[1:]
		}
		k := mark{segment: s.ID, span: s.Range, changed: now, merged: l.Cause == Merge}
		switch {
		case len(old) > 0 && old[0].segment == s.ID:
			k = old[0]
		case len(old) > 0 && old[0].span == s.Range && stepped && !l.Cause.disturbs():
			k = old[0]
			k.segment, k.tried, k.adds = s.ID, 0, 0
		case !known:
			k.changed = l.lastDisturbed()
		}
		m.marks[i], m.index[s.ID] = k, i
	}
}

// disturbs reports whether a change of this cause starts the cool-down of its
// partitions: their owner or their neighbours are others than before.
func (c Cause) disturbs() bool { return c != Create && c != Assign && c != Roll }

// lastDisturbed is the latest time at which a live segment can have been changed,
// when nothing else is known than this version.
func (l Layout) lastDisturbed() int64 {
	const firstAssignment = 2
	if l.Version <= firstAssignment && !l.Cause.disturbs() {
		return 0
	}
	return l.Stamp.NowMS * int64(time.Millisecond)
}

// regrets is how often merges turned out to be wrong: the load came back at
// once. It makes the next merges wait longer.
type regrets struct {
	level uint8
	last  int64
}

const (
	regretWithin = time.Minute      // a split so soon after a merge undoes it
	regretLasts  = 30 * time.Minute // then one level is forgiven
	maxRegrets   = 4                // 16 times as patient
)

// patience is by how much longer than usual merges wait.
func (r *regrets) patience(now int64) int64 {
	for r.level > 0 && now-r.last > int64(regretLasts) {
		r.level--
		r.last += int64(regretLasts)
	}
	return 1 << r.level
}

// split notes that the segment is to be split. However often that has to be
// decided, one merge is regretted once.
func (r *regrets) split(k *mark, now int64) {
	if k.merged && now-k.changed < int64(regretWithin) {
		r.level, r.last = min(r.level+1, maxRegrets), now
	}
	k.merged = false
}
