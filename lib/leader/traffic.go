package leader

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// traffic is what is known of the loads of one topic's segments, and what the
// planner remembers of them.
type traffic struct {
	name smq.Topic
	rev  atomic.Uint64 // see hub
	// tried: the topic has been loaded because of what was told, or could not
	// be. It is guarded by loads.mu.
	tried bool

	mu      sync.Mutex
	at      time.Time                            // of the last report, or since when there is nothing
	version uint64                               // of the layout that has been followed; 0: none
	next    smq.SegmentID                        // that layout's
	live    map[smq.SegmentID]bool               // in that layout
	loads   map[smq.SegmentID]layout.SegmentLoad // slices in it are never changed
	by      map[smq.SegmentID]smq.BrokerID       // who has told it; missing when it is only expected
	memory  layout.Memory
	notes   []layout.Note
}

func newTraffic(name smq.Topic, now time.Time) *traffic {
	return &traffic{name: name, at: now, loads: make(map[smq.SegmentID]layout.SegmentLoad), by: make(map[smq.SegmentID]smq.BrokerID)}
}

func (tr *traffic) toldAt() time.Time {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.at
}

// tell takes in what a broker says of a segment: all of it, or what has changed
// since it said something. It reports whether anything has.
func (tr *traffic) tell(broker smq.BrokerID, load layout.SegmentLoad, all bool, now time.Time) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.at = now
	if tr.version > 0 && load.Segment < tr.next && !tr.live[load.Segment] {
		return false // the broker does not know yet that it has been replaced
	}
	before, told := tr.loads[load.Segment], tr.by[load.Segment] == broker
	var base []layout.PartitionLoad
	if told && !all {
		base = before.Partitions
	}
	load.Partitions = update(base, load.Partitions)
	load.Known = true
	tr.loads[load.Segment], tr.by[load.Segment] = load, broker
	return !told || before.Load != load.Load || !slices.Equal(before.Partitions, load.Partitions)
}

// update is the loads of partitions with the changes made, both rising: one that
// is zero is taken out.
func update(base, changes []layout.PartitionLoad) []layout.PartitionLoad {
	if len(changes) == 0 {
		return base
	}
	out := make([]layout.PartitionLoad, 0, len(base)+len(changes))
	for _, c := range changes {
		for len(base) > 0 && base[0].Partition < c.Partition {
			out = append(out, base[0])
			base = base[1:]
		}
		if len(base) > 0 && base[0].Partition == c.Partition {
			base = base[1:]
		}
		if !c.Load.IsZero() {
			out = append(out, c)
		}
	}
	return append(out, base...)
}

// lose takes in that a broker does not own a segment any more. What it told
// stays as a hint.
func (tr *traffic) lose(id smq.SegmentID, broker smq.BrokerID) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.by[id] == broker {
		delete(tr.by, id)
		load := tr.loads[id]
		load.Known = false
		tr.loads[id] = load
	}
}

// follow keeps the loads of the layout's live segments only, and expects of new
// ones what their predecessors had.
func (tr *traffic) follow(l layout.Layout) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if l.Version <= tr.version {
		return
	}
	tr.version, tr.next = l.Version, l.NextSegment
	tr.live = make(map[smq.SegmentID]bool, len(l.Segments))
	sealed := l.Sealed
	for _, s := range l.Segments {
		tr.live[s.ID] = true
		if _, known := tr.loads[s.ID]; known {
			continue
		}
		for len(sealed) > 0 && sealed[0].Range.Hi <= s.Range.Lo {
			sealed = sealed[1:]
		}
		var before []layout.SegmentLoad
		for _, p := range sealed {
			if !p.Range.Overlaps(s.Range) {
				break
			}
			if load, known := tr.loads[p.Segment]; known {
				before = append(before, load)
			}
		}
		if len(before) > 0 {
			tr.loads[s.ID] = layout.Expect(s.ID, s.Range, before...)
		}
	}
	for id := range tr.loads {
		if !tr.live[id] && id < l.NextSegment {
			delete(tr.loads, id)
			delete(tr.by, id)
		}
	}
}

// settle says which loads are known: those that the segments' owners have told
// lately. tr.mu is held.
func (tr *traffic) settle(l layout.Layout, fresh map[smq.BrokerID]bool) {
	for _, s := range l.Segments {
		load, there := tr.loads[s.ID]
		known := there && tr.by[s.ID] == s.Owner.Broker && s.Assigned() && fresh[s.Owner.Broker]
		if there && known != load.Known {
			load.Known = known
			tr.loads[s.ID] = load
		}
	}
}

// of is the segment's load, or what is expected of it.
func (tr *traffic) of(id smq.SegmentID) layout.SegmentLoad {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.loads[id]
}

// expect is the load that a successor over r of the sealed segments will have.
func (tr *traffic) expect(r smq.Range, sealed []layout.Sealed) layout.Load {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	before := make([]layout.SegmentLoad, len(sealed))
	for i, s := range sealed {
		before[i] = tr.loads[s.Segment]
	}
	return layout.Expect(0, r, before...).Load
}

// busiest bounds the partitions that a layout version tells apart.
const busiest = 8

// briefs are what is known of the loads of segments that are to be replaced; see
// brief.
func (tr *traffic) briefs(partitions int, segments ...layout.Segment) (all []layout.SegmentLoad) {
	for _, s := range segments {
		if load, known := tr.brief(s.ID, partitions); known {
			all = append(all, load)
		}
	}
	return all
}

// brief is the segment's load as a layout version keeps it, in whole numbers; it
// reports false when nothing is known. partitions is how many of them it tells
// apart, the busiest.
func (tr *traffic) brief(id smq.SegmentID, partitions int) (layout.SegmentLoad, bool) {
	load := tr.of(id)
	if load.IsZero() {
		return layout.SegmentLoad{}, false
	}
	parts := slices.Clone(load.Partitions)
	slices.SortStableFunc(parts, func(a, b layout.PartitionLoad) int { return cmp.Compare(b.Cost(), a.Cost()) })
	parts = parts[:min(len(parts), partitions)]
	slices.SortFunc(parts, func(a, b layout.PartitionLoad) int { return cmp.Compare(a.Partition, b.Partition) })
	out := layout.SegmentLoad{Segment: id, Load: whole(load.Load)}
	for _, p := range parts {
		out.Partitions = append(out.Partitions, layout.PartitionLoad{Partition: p.Partition, Load: whole(p.Load)})
	}
	return out, true
}

func whole(l layout.Load) layout.Load {
	return layout.Load{Messages: math.Round(l.Messages), Bytes: math.Round(l.Bytes)}
}

// total is the topic's load, as far as it is known or expected.
func (tr *traffic) total() layout.Load {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var sum layout.Load
	for _, load := range tr.loads {
		sum = sum.Add(load.Load)
	}
	return sum
}
