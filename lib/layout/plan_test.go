package layout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// look is a topic and its cluster as the planner sees them, a second apart.
type look struct {
	t  *testing.T
	in layout.Input
}

// epoch is when the tests begin, long after any layout was made.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func broker(id string) layout.Broker {
	return layout.Broker{ID: smq.BrokerID(id), Address: id + ":7310"}
}

// newLook is a topic of unknown load whose segments end at the given partitions and belong to
// a, b, c, d, a, … in turn; "-" is none.
func newLook(t *testing.T, owners string, ends ...smq.Partition) *look {
	l := layout.Layout{Version: 9, Cause: layout.Split, NextSegment: smq.SegmentID(len(ends) + 10)}
	lo := smq.Partition(0)
	for i, hi := range ends {
		s := layout.Segment{ID: smq.SegmentID(i + 10), Range: smq.Range{Lo: lo, Hi: hi}}
		if id := owners[i%len(owners) : i%len(owners)+1]; id != "-" {
			s.Owner = broker(id).Member()
		}
		l.Segments = append(l.Segments, s)
		lo = hi
	}
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	k := &look{t: t, in: layout.Input{
		Layout:  l,
		Loads:   map[smq.SegmentID]layout.SegmentLoad{},
		Policy:  layout.DefaultPolicy(),
		Now:     epoch,
		Brokers: []layout.Broker{broker("a"), broker("b"), broker("c"), broker("d")},
	}}
	k.set(0, nil)
	clear(k.in.Loads)
	return k
}

// set gives every segment the load of its partitions, in MB/s: those given,
// and a background of even traffic; and the brokers what theirs add up to.
func (k *look) set(background float64, hot map[smq.Partition]float64) *look {
	for i := range k.in.Brokers {
		b := &k.in.Brokers[i]
		b.Segments, b.BytesPerSecond, b.MessagesPerSecond = 0, 0, 0
		for _, s := range k.in.Layout.Segments {
			if s.Owner.Broker == b.ID {
				l := measured(s, background, hot)
				b.Segments++
				b.BytesPerSecond += l.Bytes
				b.MessagesPerSecond += l.Messages
			}
		}
	}
	for _, s := range k.in.Layout.Segments {
		k.in.Loads[s.ID] = measured(s, background, hot)
	}
	return k
}

func measured(s layout.Segment, background float64, hot map[smq.Partition]float64) layout.SegmentLoad {
	l := layout.SegmentLoad{Segment: s.ID, Known: true}
	for p := s.Range.Lo; p < s.Range.Hi; p++ {
		mb, ok := hot[p]
		if !ok {
			mb = background
		}
		if mb == 0 {
			continue
		}
		load := layout.Load{Bytes: mb * 1e6, Messages: mb * 1e3}
		l.Partitions = append(l.Partitions, layout.PartitionLoad{Partition: p, Load: load})
		l.Load = l.Load.Add(load)
	}
	return l
}

// plan looks once, a second after the last time.
func (k *look) plan() ([]layout.Decision, []layout.Note) {
	out, notes, next := layout.Plan(k.in)
	k.in.Memory = next
	k.in.Now = k.in.Now.Add(time.Second)
	return out, notes
}

// wait looks again and again until there is a decision or a note, for at most
// so long, and says them.
func (k *look) wait(d time.Duration) string {
	k.t.Helper()
	end := k.in.Now.Add(d)
	for !k.in.Now.After(end) {
		out, notes := k.plan()
		if len(out)+len(notes) > 0 {
			return k.tell(out, notes)
		}
	}
	return "nothing"
}

// tell says what was decided, and checks that the layout can become so.
func (k *look) tell(out []layout.Decision, notes []layout.Note) string {
	k.t.Helper()
	var words []string
	for _, d := range out {
		var from, to []string
		for _, s := range d.Segments {
			from = append(from, s.Range.String())
		}
		for i, r := range d.Ranges {
			to = append(to, fmt.Sprintf("%v@%s", r, d.Owners[i]))
		}
		words = append(words, fmt.Sprintf("%s %s into %s", d.Cause, strings.Join(from, " "), strings.Join(to, " ")))
		next(k.t, k.in.Layout, d)
	}
	for _, n := range notes {
		words = append(words, fmt.Sprintf("segment %d: %s", n.Segment, n.Text))
	}
	return strings.Join(words, "; ")
}

// next is the layout with the decision carried out.
func next(t *testing.T, l layout.Layout, d layout.Decision) layout.Layout {
	t.Helper()
	var sealed []layout.Sealed
	for _, s := range d.Segments {
		if s.Assigned() {
			sealed = append(sealed, sealOf(s))
		} else {
			sealed = append(sealed, layout.EmptyOf(s))
		}
	}
	successors := make([]layout.Successor, len(d.Ranges))
	for i, id := range d.Owners {
		if id != "" {
			successors[i].Owner = broker(string(id)).Member()
		}
	}
	return must(t)(l.Next(d.Change(sealed, successors), layout.Stamp{}))
}

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		name   string
		owners string
		ends   []smq.Partition
		base   float64
		hot    map[smq.Partition]float64
		with   func(*layout.Input)
		want   string
	}{
		{name: "in order", ends: []smq.Partition{64}, base: 0.3, want: "nothing"},
		{name: "just above", ends: []smq.Partition{64}, base: 0.32, want: "split [0,64) into [0,32)@a [32,64)@b"},
		{name: "twice the threshold", ends: []smq.Partition{64}, base: 0.625,
			want: "split [0,64) into [0,16)@a [16,32)@b [32,48)@c [48,64)@d"},
		{name: "the load halves early", ends: []smq.Partition{64}, base: 0.15, hot: map[smq.Partition]float64{0: 3, 1: 3, 2: 3, 3: 3},
			want: "split [0,64) into [0,4)@a [4,64)@b"},
		{name: "silent partitions in between are shared", ends: []smq.Partition{64}, hot: map[smq.Partition]float64{10: 12, 50: 12},
			want: "split [0,64) into [0,30)@a [30,64)@b"},
		{name: "a hot key with some others", ends: []smq.Partition{64}, base: 0.2, hot: map[smq.Partition]float64{17: 30},
			want: "split [0,64) into [0,17)@c [17,18)@a [18,64)@b"},
		{name: "a hot key alone", ends: []smq.Partition{64}, base: 0.02, hot: map[smq.Partition]float64{17: 30},
			want: "segment 10: 31.3MB/s, above 20MB/s: partition 17 alone carries 96 %: a hot key"},
		{name: "a hot key with much besides it", ends: []smq.Partition{64}, base: 0.16, hot: map[smq.Partition]float64{17: 190},
			want: "split [0,64) into [0,17)@c [17,18)@a [18,64)@b"},
		{name: "a hot key and what does not matter beside it", ends: []smq.Partition{64}, base: 0.2, hot: map[smq.Partition]float64{1: 30},
			want: "split [0,64) into [0,2)@a [2,64)@b"},
		{name: "one partition", ends: []smq.Partition{1, 64}, hot: map[smq.Partition]float64{0: 30},
			want: "segment 10: 30MB/s, above 20MB/s: partition 0 is all that it has: a hot key"},
		{name: "silence", ends: []smq.Partition{16, 32, 48, 64}, want: "merge [0,16) [16,32) [32,48) [48,64) into [0,64)@a"},
		{name: "no more than half together", ends: []smq.Partition{16, 32, 48, 64}, base: 0.15,
			want: "merge [0,16) [16,32) [32,48) [48,64) into [0,64)@a"},
		{name: "no more than half in twos", ends: []smq.Partition{16, 32, 48, 64}, base: 0.25,
			want: "merge [0,16) [16,32) into [0,32)@a; merge [32,48) [48,64) into [32,64)@c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			owners := test.owners
			if owners == "" {
				owners = "abcd"
			}
			k := newLook(t, owners, test.ends...).set(test.base, test.hot)
			if test.with != nil {
				test.with(&k.in)
			}
			if got := k.wait(time.Minute); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
