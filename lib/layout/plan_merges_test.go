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
