package layout_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// Four segments, the first of them too loaded, the others silent: without more
// the first is split and the others are merged.
func TestPlanLeavesAlone(t *testing.T) {
	const (
		split = "split [0,16) into [0,8)@a [8,16)@b"
		merge = "merge [16,32) [32,48) [48,64) into [16,64)@"
	)
	busy := func(id smq.SegmentID) func(*layout.Input) {
		return func(in *layout.Input) { in.Busy = func(s smq.SegmentID) bool { return s == id } }
	}
	unknown := func(id smq.SegmentID) func(*layout.Input) {
		return func(in *layout.Input) {
			l := in.Loads[id]
			l.Known = false
			in.Loads[id] = l
		}
	}
	rated := func(id smq.SegmentID, bytes float64) func(*layout.Input) {
		return func(in *layout.Input) {
			in.Loads[id] = layout.SegmentLoad{Segment: id, Known: true, Load: layout.Load{Bytes: bytes}}
		}
	}
	for _, test := range []struct {
		name string
		with func(*layout.Input)
		want string // of a minute
	}{
		{"nothing", func(*layout.Input) {}, split + "; " + merge + "c"},
		{"a topic that is off", func(in *layout.Input) { in.Policy.Mode = layout.Off }, ""},
		{"a topic that people see to", func(in *layout.Input) { in.Policy.Mode = layout.Manual }, ""},
		{"a topic without thresholds", func(in *layout.Input) { in.Policy.Split = layout.Load{} }, ""},
		{"a cluster that takes nothing", func(in *layout.Input) {
			for i := range in.Brokers {
				in.Brokers[i].Draining = true
			}
		}, ""},
		{"the dead owner's", func(in *layout.Input) { in.Brokers[0].Dead = true }, merge + "b"},
		{"the draining owner's", func(in *layout.Input) { in.Brokers[2].Draining = true }, split},
		{"brokers that would be given something", func(in *layout.Input) { in.Brokers[1].Draining, in.Brokers[2].Dead = true, true },
			"split [0,16) into [0,8)@a [8,16)@d"},
		{"an unknown owner's", func(in *layout.Input) { in.Brokers = in.Brokers[:3] }, split + "; merge [16,32) [32,48) into [16,48)@c"},
		{"a loaded one under change", busy(10), merge + "b"},
		{"a silent one under change", busy(12), split},
		{"a loaded one whose load is not known", unknown(10), merge + "b"},
		{"a silent one whose load is not known", unknown(12), split},
		{"one that is missing", func(in *layout.Input) { delete(in.Loads, 13) }, split + "; merge [16,32) [32,48) into [16,48)@c"},
		{"a load that is no number", rated(10, math.NaN()), merge + "b"},
		{"a load beyond all measure", rated(10, math.Inf(1)), merge + "b"},
		{"a load below nothing", rated(12, -1), split},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newLook(t, "abcd", 16, 32, 48, 64).set(0, map[smq.Partition]float64{3: 12, 12: 12})
			test.with(&k.in)
			if got := k.all(time.Minute); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// all looks for so long and says each decision once.
func (k *look) all(d time.Duration) string {
	k.t.Helper()
	var words []string
	for end := k.in.Now.Add(d); !k.in.Now.After(end); {
		out, _ := k.plan()
		for _, d := range out {
			said := k.tell([]layout.Decision{d}, nil)
			if !strings.Contains(strings.Join(words, "; "), said) {
				words = append(words, said)
			}
		}
	}
	return strings.Join(words, "; ")
}

func TestPlanTakesItsTime(t *testing.T) {
	k := newLook(t, "a", 64).set(0.5, nil)
	look := func(after time.Duration, want int) {
		t.Helper()
		k.in.Now = epoch.Add(after)
		if out, notes := k.plan(); len(out) != want {
			t.Fatalf("after %v: %d decisions, notes %v, want %d", after, len(out), notes, want)
		}
	}
	look(0, 0)
	look(1900*time.Millisecond, 0)
	k.set(0.1, nil)
	look(1950*time.Millisecond, 0) // below for a moment
	k.set(0.5, nil)
	look(2*time.Second, 0)
	look(3900*time.Millisecond, 0)
	look(4*time.Second, 1)
	// The decision comes to nothing.
	look(5900*time.Millisecond, 0)
	look(6*time.Second, 1)
	// The clock is put back: it begins anew.
	look(-time.Hour, 0)
	look(-time.Hour+1900*time.Millisecond, 0)
	look(-time.Hour+2*time.Second, 1)
}

// So it does before it merges.
func TestPlanTakesItsTimeToMerge(t *testing.T) {
	k := newLook(t, "ab", 32, 64).set(0, nil)
	look := func(after time.Duration, want int) {
		t.Helper()
		k.in.Now = epoch.Add(after)
		if out, _ := k.plan(); len(out) != want {
			t.Fatalf("after %v: %d decisions, want %d", after, len(out), want)
		}
	}
	look(0, 0)
	look(19*time.Second, 0)
	k.set(1, nil)
	look(19*time.Second, 0) // traffic for a moment
	k.set(0, nil)
	look(20*time.Second, 0)
	look(39*time.Second, 0)
	look(40*time.Second, 1)
	look(-time.Hour, 0) // the clock is put back
	look(-time.Hour+19*time.Second, 0)
	look(-time.Hour+20*time.Second, 1)
}

// A burst that is over is not followed, though the average is still high.
func TestPlanDoesNotFollowWhatIsOver(t *testing.T) {
	k := newLook(t, "a", 64)
	for sec := range 10 {
		k.set(2*math.Exp(-float64(sec)/3), nil)
		if out, notes := k.plan(); len(out)+len(notes) > 0 {
			t.Fatalf("after %d s: %s", sec, k.tell(out, notes))
		}
	}
}

// Averages lag behind: the number of pieces goes by where the load is heading,
// which is never taken for more than twice what it is.
func TestPlanLooksAhead(t *testing.T) {
	for _, test := range []struct {
		looks []float64 // MB/s, a second apart
		want  int       // pieces
	}{
		{[]float64{28, 28, 28}, 3},
		{[]float64{21, 25, 28}, 4},
		{[]float64{21, 60, 80}, 13},
		{[]float64{40, 30, 23}, 0},
		// It has been so for long, and is over now.
		{append(slices.Repeat([]float64{40}, 60), 29, 21), 0},
	} {
		k := newLook(t, "a", 64)
		k.in.Policy.MaxSegments = 1
		got := 0
		for i, mb := range test.looks {
			if i == len(test.looks)-1 {
				k.in.Policy.MaxSegments = 64
			}
			k.set(mb/64, nil)
			out, _ := k.plan()
			if len(out) > 0 {
				got = len(out[0].Ranges)
			}
		}
		if got != test.want {
			t.Errorf("%v: %d pieces, want %d", test.looks[max(0, len(test.looks)-3):], got, test.want)
		}
	}
}

func TestPlanByMessages(t *testing.T) {
	k := newLook(t, "a", 4).set(0, nil)
	l := layout.SegmentLoad{Segment: 10, Known: true, Load: layout.Load{Messages: 60e3, Bytes: 6e6}}
	for p := range smq.Partition(4) {
		l.Partitions = append(l.Partitions, layout.PartitionLoad{Partition: p, Load: layout.Load{Messages: 1e3}})
	}
	l.Partitions[1].Load = layout.Load{Messages: 28e3}
	l.Partitions[2].Load = layout.Load{Messages: 30e3}
	l.Partitions[3].Load = layout.Load{Messages: 1e3, Bytes: 6e6}
	k.in.Loads[10] = l
	k.plan()
	k.plan()
	out, _ := k.plan()
	if got := k.tell(out, nil); got != "split [0,4) into [0,2)@b [2,4)@a" {
		t.Error(got)
	}
	if want := "60000 msg/s, above 50000 msg/s for 2s"; len(out) != 1 || out[0].Reason != want {
		t.Errorf("got %+v, want the reason %q", out, want)
	}
}

// A load of whose partitions nothing is known is divided by their number.
func TestPlanWithoutPartitions(t *testing.T) {
	k := newLook(t, "a", 64)
	k.in.Loads[10] = layout.SegmentLoad{Segment: 10, Known: true, Load: layout.Load{Bytes: 40e6}}
	k.in.Brokers[1].BytesPerSecond = 5e6
	if got, want := k.wait(time.Minute), "split [0,64) into [0,16)@a [16,32)@c [32,48)@d [48,64)@b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPlanKeepsToTheBounds(t *testing.T) {
	type policy = layout.Policy
	hot := map[smq.Partition]float64{}
	for p := range smq.Partition(16) {
		hot[p] = 2.5 // 40 MB/s in the first quarter
	}
	for _, test := range []struct {
		name   string
		owners string
		ends   []smq.Partition
		base   float64
		hot    map[smq.Partition]float64
		policy policy
		want   string
	}{
		{"room for one more", "abcd", []smq.Partition{16, 32, 48, 64}, 0.2, hot, policy{MaxSegments: 5}, "split [0,16) into [0,8)@a [8,16)@b"},
		{"room for none", "abcd", []smq.Partition{16, 32, 48, 64}, 0.5, hot, policy{MaxSegments: 4},
			"segment 10: 40 MB/s, above 20 MB/s: the largest number of segments, 4, is reached"},
		{"no room to isolate a hot key", "a", []smq.Partition{3}, 0, map[smq.Partition]float64{0: 1.8, 1: 26.4, 2: 1.8}, policy{MaxSegments: 2},
			"segment 10: 30 MB/s, above 20 MB/s: the largest number of segments, 2, is reached"},
		{"no room wasted on a hot key", "ab", []smq.Partition{32, 64}, 0.01, hotHalf(), policy{MaxSegments: 3},
			"split [32,64) into [32,48)@b [48,64)@c; segment 10: 60.3 MB/s, above 20 MB/s: partition 3 alone carries 99 %: a hot key"},
		{"room is shared", "ab", []smq.Partition{32, 64}, 0.8, nil, policy{MaxSegments: 4},
			"split [0,32) into [0,16)@a [16,32)@c; split [32,64) into [32,48)@b [48,64)@d"},
		{"at least so many, unmeasured", "a", []smq.Partition{64}, -1, nil, policy{MinSegments: 4},
			"split [0,64) into [0,16)@a [16,32)@b [32,48)@c [48,64)@d"},
		{"at least so many, the largest first", "ab", []smq.Partition{10, 64}, -1, nil, policy{MinSegments: 3},
			"split [10,64) into [10,37)@b [37,64)@c"},
		{"at least so many, the most loaded first", "ab", []smq.Partition{16, 64}, 0.01, map[smq.Partition]float64{1: 2, 9: 2}, policy{MinSegments: 3},
			"split [0,16) into [0,8)@a [8,16)@c"},
		{"at least so many, though one partition has it all", "a", []smq.Partition{8}, 0.01, hot1(0, 10), policy{MinSegments: 4},
			"split [0,8) into [0,1)@a [1,6)@b [6,7)@c [7,8)@d"},
		{"at least so many, without owner", "-", []smq.Partition{64}, 0, nil, policy{MinSegments: 2}, "split [0,64) into [0,32)@a [32,64)@b"},
		{"no more than partitions", "a", []smq.Partition{3}, -1, nil, policy{MinSegments: 4}, "split [0,3) into [0,1)@a [1,2)@b [2,3)@c"},
		{"never more than at most", "a", []smq.Partition{64}, -1, nil, policy{MinSegments: 6, MaxSegments: 3},
			"split [0,64) into [0,21)@a [21,42)@b [42,64)@c"},
		{"silent, but at least so many", "abcd", []smq.Partition{16, 32, 48, 64}, 0, hot1(50, 4), policy{MinSegments: 3},
			"merge [0,16) [16,32) into [0,32)@a"},
		{"the quietest first", "abcd", []smq.Partition{16, 32, 48, 64}, 0.1, map[smq.Partition]float64{2: 5, 20: 3, 40: 2, 60: 1}, policy{MinSegments: 3},
			"merge [32,48) [48,64) into [32,64)@c"},
		{"too many, whatever their load", "abcd", []smq.Partition{16, 32, 48, 64}, 0.5, map[smq.Partition]float64{2: 9, 60: 9}, policy{MaxSegments: 3},
			"merge [16,32) [32,48) into [16,48)@b"},
		{"too many, but not known", "abcd", []smq.Partition{16, 32, 48, 64}, -1, nil, policy{MaxSegments: 3}, "nothing"},
		{"far too many", "abcd", []smq.Partition{16, 32, 48, 64}, 0.5, nil, policy{MaxSegments: 1},
			"merge [0,16) [16,32) [32,48) [48,64) into [0,64)@a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newLook(t, test.owners, test.ends...)
			if test.base >= 0 {
				k.set(test.base, test.hot)
			}
			k.in.Policy = test.policy.WithDefaults(layout.DefaultPolicy())
			if got := k.wait(time.Minute); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// hotHalf is a hot key in the first half, and 40 MB/s evenly in the second.
func hotHalf() map[smq.Partition]float64 {
	hot := hot1(3, 60)
	for p := smq.Partition(32); p < 64; p++ {
		hot[p] = 1.25
	}
	return hot
}

func hot1(p smq.Partition, mb float64) map[smq.Partition]float64 {
	return map[smq.Partition]float64{p: mb}
}

// There is nowhere to go on one broker: two segments, whose flushes overlap.
func TestPlanOnOneBroker(t *testing.T) {
	one := func(k *look) *look {
		k.in.Brokers = k.in.Brokers[:1]
		return k
	}
	if got, want := one(newLook(t, "a", 64)).set(2, nil).wait(time.Minute), "split [0,64) into [0,32)@a [32,64)@a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	const whole = "above 20 MB/s: there is one broker only, which gets no more than 2 segments of a topic"
	if got, want := one(newLook(t, "a", 32, 64)).set(2, nil).wait(time.Minute), "segment 10: 64 MB/s, "+whole+"; segment 11: 64 MB/s, "+whole; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What is under way counts: a split for the most, a merge for the least.
func TestPlanCountsWhatIsUnderWay(t *testing.T) {
	busy := map[smq.SegmentID]bool{}
	watched := func(k *look) *look {
		k.in.Busy = func(id smq.SegmentID) bool { return busy[id] }
		return k
	}
	k := watched(newLook(t, "ab", 32, 64)).set(0.2, map[smq.Partition]float64{1: 10, 20: 10})
	k.in.Policy.MaxSegments = 3
	if got, want := k.wait(time.Minute), "split [0,32) into [0,16)@a [16,32)@c"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	busy[10] = true
	k.set(0.2, map[smq.Partition]float64{40: 10, 60: 10, 1: 10, 20: 10})
	if got, want := k.all(time.Minute), ""; got != want {
		t.Fatalf("got %s, want nothing", got)
	}
	busy[10] = false // it came to nothing
	if got := k.wait(time.Minute); strings.Count(got, "split") != 1 {
		t.Fatalf("got %s, want one of the two to be split", got)
	}

	k = watched(newLook(t, "abcd", 16, 32, 48, 64)).set(0, hot1(40, 11))
	k.in.Policy.MinSegments = 3
	if got, want := k.wait(time.Minute), "merge [0,16) [16,32) into [0,32)@a"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	busy[10], busy[11] = true, true
	k.set(0, nil)
	if got := k.all(time.Minute); got != "" {
		t.Fatalf("got %s, want nothing", got)
	}
}

// Bounds are kept by all that one look decides.
func TestPlanCountsWhatItDecides(t *testing.T) {
	k := newLook(t, "ab", 32, 64).set(1.25, nil)
	k.in.Policy.MaxSegments = 2
	k.plan()
	k.plan()
	k.in.Policy.MinSegments, k.in.Policy.MaxSegments = 3, 3
	out, notes := k.plan()
	want := "split [0,32) into [0,16)@a [16,32)@c; segment 11: 40 MB/s, above 20 MB/s: the largest number of segments, 3, is reached"
	if got := k.tell(out, notes); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A decision that came to nothing is not counted, though another change of its
// segment is under way then.
func TestPlanForgetsWhatCameToNothing(t *testing.T) {
	k := newLook(t, "ab", 32, 64).set(0, map[smq.Partition]float64{3: 12, 4: 12})
	k.in.Policy.MaxSegments = 3
	if got, want := k.wait(time.Minute), "split [0,32) into [0,4)@a [4,32)@c"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	k.set(0, map[smq.Partition]float64{3: 6, 4: 6, 40: 12, 41: 12})
	k.plan()
	k.in.Busy = func(id smq.SegmentID) bool { return id == 10 }
	if got, want := k.wait(time.Minute), "split [32,64) into [32,41)@b [41,64)@c"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// To have enough segments, those are split that may be.
func TestPlanFillsWithWhatMayBeSplit(t *testing.T) {
	k := newLook(t, "ab", 10, 64)
	k.in.Policy.MinSegments = 4
	k.in.Busy = func(id smq.SegmentID) bool { return id == 11 }
	if got, want := k.wait(time.Minute), "split [0,10) into [0,3)@a [3,6)@c [6,10)@d"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What is light stays with one of its owners, unless that has much more to carry.
func TestPlanMergesWithinAnOwner(t *testing.T) {
	for _, test := range []struct {
		others float64 // that a carries besides, in bytes per second
		want   string
	}{{5e5, "merge [0,32) [32,64) into [0,64)@a"}, {5e6, "merge [0,32) [32,64) into [0,64)@b"}} {
		k := newLook(t, "a", 32, 64).set(0, nil)
		k.in.Brokers[0].BytesPerSecond = test.others
		if got := k.wait(time.Minute); got != test.want {
			t.Errorf("with %v besides: got %s, want %s", test.others, got, test.want)
		}
	}
}

// The third invariant: an empty segment is only merged with what it does not
// contradict.
func TestPlanMergesSegmentsWithoutOwner(t *testing.T) {
	halves := func(l layout.Layout, first, second layout.Member) layout.Layout {
		s := l.Segments[0]
		seal := layout.EmptyOf(s)
		if s.Assigned() {
			seal = sealOf(s)
		}
		return must(t)(l.Next(layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{seal}, Successors: []layout.Successor{
			{Range: smq.Range{Lo: 0, Hi: 4}, Owner: first}, {Range: smq.Range{Lo: 4, Hi: 8}, Owner: second}}}, layout.Stamp{}))
	}
	fresh := must(t)(layout.New(8, layout.Stamp{}))
	a, nobody := broker("a").Member(), layout.Member{}
	for _, test := range []struct {
		name string
		l    layout.Layout
		want string
	}{
		{"both continue from the same", halves(assigned(t), nobody, nobody), "merge [0,4) [4,8) into [0,8)@a"},
		{"one continues from what the other's predecessor had too", halves(assigned(t), nobody, a), "nothing"},
		{"neither continues from anything", halves(fresh, nobody, nobody), "merge [0,4) [4,8) into [0,8)@a"},
		{"one would continue in half of its partitions", halves(fresh, nobody, a), "nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newLook(t, "a", 8)
			k.in.Layout = test.l
			k.set(0, nil)
			if got := k.wait(time.Minute); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// The cool-down of a segment counts from the change that made it.
func TestPlanCoolsDown(t *testing.T) {
	change := func(l layout.Layout, cause layout.Cause, at time.Time) layout.Layout {
		s := l.Segments[0]
		return must(t)(l.Next(layout.Replace(cause, []layout.Sealed{sealOf(s)}, []layout.Member{broker("a").Member()}), layout.Stamp{NowMS: at.UnixMilli()}))
	}
	young := must(t)(must(t)(layout.New(64, layout.Stamp{NowMS: epoch.UnixMilli()})).Next(layout.Replace(layout.Assign,
		[]layout.Sealed{{Segment: 1, Range: smq.Range{Hi: 64}, Empty: true}}, []layout.Member{broker("a").Member()}), layout.Stamp{NowMS: epoch.UnixMilli()}))
	since := func(k *look) time.Duration {
		for range 60 {
			if out, _ := k.plan(); len(out) > 0 {
				return k.in.Now.Sub(epoch) - time.Second
			}
		}
		return -1
	}
	for _, test := range []struct {
		name string
		do   func(k *look)
		want time.Duration
	}{
		{"a new topic", func(k *look) { k.in.Layout = young }, 2 * time.Second},
		{"a leader that knows no more than the version's time", func(k *look) {
			k.in.Layout = change(young, layout.Failover, epoch.Add(-3*time.Second))
		}, 7 * time.Second},
		{"a version from the future", func(k *look) {
			k.in.Layout = change(young, layout.Failover, epoch.Add(time.Hour))
		}, 10 * time.Second},
		{"a roll is no change", func(k *look) {
			k.in.Layout = young
			k.plan()
			k.in.Layout = change(young, layout.Roll, epoch.Add(time.Second))
		}, 3 * time.Second},
		{"a move is", func(k *look) {
			k.in.Layout = young
			k.plan()
			k.in.Layout = change(young, layout.Move, epoch.Add(time.Second))
		}, 11 * time.Second},
		{"a roll after a move", func(k *look) {
			k.in.Layout = young
			k.plan()
			k.in.Layout = change(young, layout.Move, epoch.Add(time.Second))
			k.set(0.5, nil)
			k.plan()
			k.in.Layout = change(k.in.Layout, layout.Roll, epoch.Add(2*time.Second))
		}, 11 * time.Second},
		{"two versions since the last look", func(k *look) {
			k.in.Layout = young
			k.plan()
			k.in.Layout = change(change(young, layout.Move, epoch), layout.Roll, epoch)
		}, 11 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newLook(t, "a", 64)
			test.do(k)
			k.set(0.5, nil)
			if got := since(k); got != test.want {
				t.Errorf("split after %v, want %v", got, test.want)
			}
		})
	}
}

// A roll, which seals and goes on with the same range, changes nothing in how
// long a segment has been above.
func TestPlanGoesOnWaitingThroughARoll(t *testing.T) {
	k := newLook(t, "a", 64).set(0.5, nil)
	k.plan()
	k.plan()
	s := k.in.Layout.Segments[0]
	k.in.Layout = must(t)(k.in.Layout.Next(layout.Replace(layout.Roll, []layout.Sealed{sealOf(s)}, []layout.Member{s.Owner}), layout.Stamp{}))
	k.set(0.5, nil)
	out, notes := k.plan()
	if got := k.tell(out, notes); !strings.HasPrefix(got, "split") {
		t.Errorf("got %q", got)
	}
}

// One change is better than two: what is nearly due goes along.
func TestPlanMergesWhatIsNearlyDue(t *testing.T) {
	for _, test := range []struct {
		later int // seconds
		want  string
	}{
		{4, "merge [0,16) [16,32) [32,48) [48,64) into [0,64)@a"},
		{9, "merge [0,16) [16,32) into [0,32)@a"},
	} {
		k := newLook(t, "abcd", 16, 32, 48, 64)
		for range test.later {
			k.set(0, map[smq.Partition]float64{40: 11, 60: 11})
			k.plan()
		}
		k.set(0, nil)
		if got := k.wait(time.Minute); got != test.want {
			t.Errorf("%d s later: got %s, want %s", test.later, got, test.want)
		}
	}
}

// Each of the merged has to be sealed before traffic goes on.
func TestPlanBoundsAMerge(t *testing.T) {
	ends := make([]smq.Partition, 200)
	for i := range ends {
		ends[i] = smq.Partition(i + 1)
	}
	k := newLook(t, "abcd", ends...).set(0, nil)
	k.in.Policy.MaxSegments = 200
	out := []layout.Decision{}
	for len(out) == 0 {
		out, _ = k.plan()
	}
	var sizes []int
	for _, d := range out {
		sizes = append(sizes, len(d.Segments))
	}
	if !slices.Equal(sizes, []int{64, 64, 64, 8}) {
		t.Errorf("merged %v", sizes)
	}
}

// A merge that has to be undone makes the next ones wait longer: once, however
// often the split is decided, and not for ever.
func TestPlanRegretsMerges(t *testing.T) {
	k := newLook(t, "a", 64)
	merge := func() {
		var seals []layout.Sealed
		for _, s := range k.in.Layout.Segments {
			seals = append(seals, sealOf(s))
		}
		k.in.Layout = must(t)(k.in.Layout.Next(layout.Change{Cause: layout.Merge, Sealed: seals,
			Successors: []layout.Successor{{Range: smq.Range{Lo: 0, Hi: 64}, Owner: broker("a").Member()}}}, layout.Stamp{}))
	}
	split := func() {
		s := k.in.Layout.Segments[0]
		k.in.Layout = must(t)(k.in.Layout.Next(layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{sealOf(s)},
			Successors: []layout.Successor{{Range: smq.Range{Lo: 0, Hi: 32}, Owner: s.Owner}, {Range: smq.Range{Lo: 32, Hi: 64}, Owner: s.Owner}}}, layout.Stamp{}))
	}
	// cycle splits at once or later, decides it more than once, and says how long
	// the silence after it lasts until the merge.
	cycle := func(later time.Duration) time.Duration {
		t.Helper()
		k.in.Now = k.in.Now.Add(later)
		for range 20 { // the decisions come to nothing
			k.set(0.5, nil)
			k.plan()
		}
		split()
		k.set(0, nil)
		began := k.in.Now
		if got := k.wait(10 * time.Minute); !strings.HasPrefix(got, "merge") {
			t.Fatalf("got %s", got)
		}
		waited := k.in.Now.Sub(began)
		merge()
		k.set(0, nil)
		k.plan()
		return waited.Truncate(10 * time.Second)
	}
	for i, step := range []struct{ later, want time.Duration }{
		{0, 20 * time.Second}, // nothing to regret yet
		{0, 40 * time.Second},
		{2 * time.Minute, 40 * time.Second}, // the traffic was away long enough
		{0, 80 * time.Second},
		{0, 160 * time.Second},
		{0, 320 * time.Second},
		{0, 320 * time.Second},
		{30 * time.Minute, 160 * time.Second},
		{24 * time.Hour, 20 * time.Second},
	} {
		if got := cycle(step.later); got != step.want {
			t.Errorf("step %d: merged after %v, want %v", i, got, step.want)
		}
	}
}

// A change elsewhere does not make neighbours wait anew.
func TestPlanGoesOnWaitingThroughOtherChanges(t *testing.T) {
	k := newLook(t, "abcd", 16, 32, 48, 64).set(0, map[smq.Partition]float64{40: 11, 60: 11})
	for range 15 {
		k.plan()
	}
	s := k.in.Layout.Segments[3]
	k.in.Layout = must(t)(k.in.Layout.Next(layout.Replace(layout.Roll, []layout.Sealed{sealOf(s)}, []layout.Member{s.Owner}), layout.Stamp{}))
	k.set(0, map[smq.Partition]float64{40: 11, 60: 11})
	start := k.in.Now
	if got, want := k.wait(time.Minute), "merge [0,16) [16,32) into [0,32)@a"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if waited := k.in.Now.Sub(start); waited != 6*time.Second {
		t.Errorf("it took another %v", waited)
	}
}

// Topics that are looked at in one round know of each other's decisions, and
// those of the next round do.
func TestPlanSharesExpectations(t *testing.T) {
	var e layout.Expected
	given := map[smq.BrokerID]int{}
	now := epoch
	for range 2 {
		var brokers []layout.Broker
		for _, id := range []string{"a", "b", "c", "d"} {
			brokers = append(brokers, broker(id))
		}
		brokers[0].BytesPerSecond = 145e6 // 24 from each topic's segment
		e.Update(brokers, now)
		for range 3 {
			k := newLook(t, "a", 64).set(0.375, nil)
			k.in.Expected, k.in.Brokers = &e, nil
			k.plan()
			k.plan()
			out, _ := k.plan()
			if len(out) != 1 || len(out[0].Owners) != 2 {
				t.Fatalf("got %+v", out)
			}
			for _, id := range out[0].Owners {
				given[id]++
			}
		}
		now = now.Add(time.Second)
	}
	for _, id := range []smq.BrokerID{"a", "b", "c", "d"} {
		if given[id] < 2 || given[id] > 4 {
			t.Errorf("of 12 segments the brokers got %v", given)
		}
	}
	if cost, ok := e.Cost("a"); !ok || cost < 10e6 {
		t.Errorf("a is expected to carry %v, %v", cost, ok)
	}
	e.Update([]layout.Broker{broker("a")}, now.Add(time.Minute))
	if cost, ok := e.Cost("a"); !ok || cost > 1 {
		t.Errorf("a minute later a is still expected to carry %v, %v", cost, ok)
	}
	if _, ok := e.Cost("b"); ok {
		t.Error("b has left, and is still known")
	}
}

func TestMemoryChanged(t *testing.T) {
	k := newLook(t, "a", 64)
	if at := k.in.Memory.Changed(10); !at.IsZero() {
		t.Errorf("nothing is remembered, but %v", at)
	}
	k.in.Layout.Stamp.NowMS = epoch.Add(-time.Hour).UnixMilli()
	k.plan()
	if at := k.in.Memory.Changed(10); !at.Equal(epoch.Add(-time.Hour)) {
		t.Errorf("changed at %v", at)
	}
	if at := k.in.Memory.Changed(11); !at.IsZero() {
		t.Errorf("there is no segment 11, changed at %v", at)
	}
}

// Whatever brokers tell, decisions can be carried out.
func TestPlanSurvivesNonsense(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	number := func() float64 {
		return []float64{0, 1, -1, 1e7, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64}[rnd.IntN(9)]
	}
	load := func() layout.Load { return layout.Load{Messages: number(), Bytes: number()} }
	decisions := 0
	var e layout.Expected
	for range 3000 {
		k := newLook(t, "ab-cd", 3, 16, 32, 50, 64)
		k.in.Expected = &e
		for _, s := range k.in.Layout.Segments {
			l := layout.SegmentLoad{Segment: s.ID, Known: true, Load: layout.Load{Bytes: []float64{0, 1e7, 1e8}[rnd.IntN(3)]}}
			if rnd.IntN(4) == 0 {
				l.Load = load()
			}
			for range rnd.IntN(20) {
				l.Partitions = append(l.Partitions, layout.PartitionLoad{Partition: rnd.Int32N(70) - 3, Load: load()})
			}
			if rnd.IntN(2) == 0 {
				slices.SortFunc(l.Partitions, func(a, b layout.PartitionLoad) int { return int(a.Partition - b.Partition) })
			}
			k.in.Loads[s.ID] = l
		}
		k.in.Policy.MaxSegments = 1 + rnd.IntN(70)
		for _, after := range []time.Duration{0, 2 * time.Second, 20 * time.Second} {
			k.in.Now = epoch.Add(after)
			e.Update(k.in.Brokers, k.in.Now)
			out, notes := k.plan()
			k.tell(out, notes)
			decisions += len(out)
		}
	}
	if decisions < 1000 {
		t.Errorf("%d decisions in all: too few to say anything", decisions)
	}
	e.Update([]layout.Broker{broker("a")}, epoch.Add(time.Hour))
	if cost, _ := e.Cost("a"); cost != 0 {
		t.Errorf("after all of this, and an hour, a is expected to carry %v", cost)
	}
}
