package layout_test

import (
	"math"
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
	if want := "60000msg/s, above 50000msg/s for 2s"; len(out) != 1 || out[0].Reason != want {
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
		hot[p] = 2.5 // 40MB/s in the first quarter
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
			"segment 10: 40MB/s, above 20MB/s: the largest number of segments, 4, is reached"},
		{"no room to isolate a hot key", "a", []smq.Partition{3}, 0, map[smq.Partition]float64{0: 1.8, 1: 26.4, 2: 1.8}, policy{MaxSegments: 2},
			"segment 10: 30MB/s, above 20MB/s: the largest number of segments, 2, is reached"},
		{"no room wasted on a hot key", "ab", []smq.Partition{32, 64}, 0.01, hotHalf(), policy{MaxSegments: 3},
			"split [32,64) into [32,48)@b [48,64)@c; segment 10: 60.3MB/s, above 20MB/s: partition 3 alone carries 99 %: a hot key"},
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

// hotHalf is a hot key in the first half, and 40MB/s evenly in the second.
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
	const whole = "above 20MB/s: there is one broker only, which gets no more than 2 segments of a topic"
	if got, want := one(newLook(t, "a", 32, 64)).set(2, nil).wait(time.Minute), "segment 10: 64MB/s, "+whole+"; segment 11: 64MB/s, "+whole; got != want {
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
	want := "split [0,32) into [0,16)@a [16,32)@c; segment 11: 40MB/s, above 20MB/s: the largest number of segments, 3, is reached"
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
