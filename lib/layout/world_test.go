package layout_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// tick is the step in which changes and what they hold back are looked at.
const tick = 200 * time.Millisecond

// world is a topic under traffic in a cluster: publishers offer it, owners
// measure and report it every second, the leader plans every second and carries
// out what was decided, which takes a while that the traffic of those segments
// is held back for.
type world struct {
	t     *testing.T
	shape shape
	rnd   *rand.Rand
	now   time.Duration

	layout  layout.Layout
	brokers []layout.Broker
	offered []float64                // bytes per second, by partition
	held    []float64                // bytes, by partition
	bursts  bool                     // something may be held back
	rates   []float64                // averages of bytes per second, by partition, as the present owner measures
	own     map[smq.BrokerID]float64 // averages of bytes per second

	// The leader's.
	loads    map[smq.SegmentID]layout.SegmentLoad
	deaf     time.Duration // until when no report has come in
	expected layout.Expected
	memory   layout.Memory
	balance  layout.Balance
	flights  []*flight
	busy     map[smq.SegmentID]bool

	changed []time.Duration // by partition, when it was last split, merged or moved
	log     diary
}

// flight is a change that is being carried out.
type flight struct {
	layout.Decision
	began, until time.Duration
}

// shape is a kind of traffic, and what happens to the cluster meanwhile.
type shape struct {
	name       string
	about      string
	partitions int
	brokers    int
	lasts      time.Duration
	averages   time.Duration // of the owners' measurement; 0: 3s
	policy     layout.Policy // what differs from the default
	// traffic writes what publishers offer at a time, in MB/s by partition.
	traffic func(now time.Duration, rnd *rand.Rand, out []float64)
	// at is what happens to the cluster when.
	at map[time.Duration]func(*world)
	// quiet are from when to when nothing may change.
	quiet [][2]time.Duration
	// within is by when after a time there have to be so many segments.
	within []milestone
}

type milestone struct {
	at       time.Duration
	segments int
	brokers  int // that own any; 0: not looked at
}

func newWorld(t *testing.T, s shape) *world {
	first := must(t)(layout.New(int32(s.partitions), layout.Stamp{NowMS: epoch.UnixMilli()}))
	w := &world{
		t: t, shape: s, rnd: rand.New(rand.NewPCG(7, 11)),
		offered: make([]float64, s.partitions), held: make([]float64, s.partitions), rates: make([]float64, s.partitions),
		own:     map[smq.BrokerID]float64{},
		loads:   map[smq.SegmentID]layout.SegmentLoad{},
		busy:    map[smq.SegmentID]bool{},
		changed: make([]time.Duration, s.partitions),
	}
	for p := range w.changed {
		w.changed[p] = -time.Hour
	}
	for range s.brokers {
		w.join()
	}
	w.layout = must(t)(first.Next(layout.Replace(layout.Assign, []layout.Sealed{layout.EmptyOf(first.Segments[0])}, []layout.Member{w.brokers[0].Member()}), w.stamp()))
	w.log.fewest = 1
	return w
}

func (w *world) clock() time.Time { return epoch.Add(w.now) }

func (w *world) stamp() layout.Stamp { return layout.Stamp{NowMS: w.clock().UnixMilli()} }

// join adds a broker.
func (w *world) join() { w.brokers = append(w.brokers, broker(string(rune('a'+len(w.brokers))))) }

// kill ends the broker that owns the first partition. Three seconds later
// others have its segments.
func (w *world) kill() { w.lose(layout.Failover, 3*time.Second) }

// drain makes the broker that owns the first partition leave.
func (w *world) drain() { w.lose(layout.Drain, 0) }

func (w *world) lose(cause layout.Cause, after time.Duration) {
	first, _ := w.layout.Find(0)
	i := slices.IndexFunc(w.brokers, func(b layout.Broker) bool { return b.ID == first.Owner.Broker })
	w.brokers[i].Dead, w.brokers[i].Draining = cause == layout.Failover, cause == layout.Drain
	w.own[first.Owner.Broker] = 0
	for _, s := range w.layout.Segments {
		if s.Owner != first.Owner || w.busy[s.ID] {
			continue
		}
		to, ok := layout.ChooseOwner(w.brokers, "", s.Owner.Broker)
		if !ok {
			w.t.Fatalf("%v: no broker is left", w.now)
		}
		for j := range w.brokers {
			if w.brokers[j].ID == to.ID {
				w.brokers[j].Segments++
			}
		}
		w.begin(layout.Decision{Cause: cause, Segments: []layout.Segment{s}, Ranges: []smq.Range{s.Range}, Owners: []smq.BrokerID{to.ID}})
		w.flights[len(w.flights)-1].until += after
	}
}

// depose makes another leader, which knows nothing yet. What the old one had
// begun gets plain successors.
func (w *world) depose() {
	w.memory, w.balance, w.expected = layout.Memory{}, layout.Balance{}, layout.Expected{}
	w.loads, w.deaf = map[smq.SegmentID]layout.SegmentLoad{}, w.now+2*time.Second
	for _, f := range w.flights {
		if !planned(f.Cause) {
			continue
		}
		f.Cause, f.Ranges, f.Owners = layout.Roll, nil, nil
		for _, s := range f.Segments {
			f.Ranges, f.Owners = append(f.Ranges, s.Range), append(f.Owners, s.Owner.Broker)
		}
		f.until += 2 * time.Second
	}
}

// run lives through the shape.
func (w *world) run() {
	for w.now < w.shape.lasts {
		if happens := w.shape.at[w.now]; happens != nil {
			happens(w)
		}
		w.shape.traffic(w.now, w.rnd, w.offered)
		w.second()
		w.report()
		w.lead()
		w.log.second(w)
	}
}

// second lets a second pass, in one step if nothing happens in it.
func (w *world) second() {
	for end := w.now + time.Second; w.now < end; {
		w.land()
		step := tick
		if len(w.flights) == 0 && !w.bursts {
			step = end - w.now
		}
		w.flow(step)
		w.now += step
	}
}

// flow lets a tick of traffic pass, and owners measure it.
func (w *world) flow(step time.Duration) {
	keep := math.Exp(-step.Seconds() / cmp.Or(w.shape.averages, 3*time.Second).Seconds())
	slow := math.Exp(-step.Seconds() / 5)
	for id := range w.own {
		w.own[id] *= slow
	}
	w.bursts = false
	for _, s := range w.layout.Segments {
		busy, sum := w.busy[s.ID], 0.0
		w.bursts = w.bursts || busy
		for p := s.Range.Lo; p < s.Range.Hi; p++ {
			rate := w.offered[p]*1e6 + w.held[p]/step.Seconds()
			if w.held[p] = 0; busy {
				w.held[p], rate = rate*step.Seconds(), 0
			}
			sum += rate
			if w.rates[p] = w.rates[p]*keep + rate*(1-keep); w.rates[p] < 1 {
				w.rates[p] = 0
			}
		}
		w.own[s.Owner.Broker] += sum * (1 - slow)
	}
}

// report brings the owners' measurements to the leader.
func (w *world) report() {
	for i := range w.brokers {
		b := &w.brokers[i]
		b.BytesPerSecond, b.MessagesPerSecond, b.Segments = w.own[b.ID], w.own[b.ID]/1000, 0
		for _, s := range w.layout.Segments {
			if s.Owner.Broker == b.ID {
				b.Segments++
			}
		}
	}
	if w.now < w.deaf {
		return
	}
	for _, s := range w.layout.Segments {
		l := layout.SegmentLoad{Segment: s.ID, Known: true, Partitions: w.loads[s.ID].Partitions[:0]}
		for p := s.Range.Lo; p < s.Range.Hi; p++ {
			if w.rates[p] > 0 {
				load := layout.Load{Bytes: w.rates[p], Messages: w.rates[p] / 1000}
				l.Partitions = append(l.Partitions, layout.PartitionLoad{Partition: p, Load: load})
				l.Load = l.Load.Add(load)
			}
		}
		w.loads[s.ID] = l
	}
}

// lead plans, and begins what was decided.
func (w *world) lead() {
	w.expected.Update(w.brokers, w.clock())
	var out []layout.Decision
	var notes []layout.Note
	out, notes, w.memory = layout.Plan(layout.Input{
		Layout: w.layout, Loads: w.loads, Policy: w.policy(), Memory: w.memory, Now: w.clock(),
		Expected: &w.expected, Busy: func(id smq.SegmentID) bool { return w.busy[id] },
	})
	for _, d := range out {
		for _, s := range d.Segments {
			if i := slices.IndexFunc(w.brokers, func(b layout.Broker) bool { return b.ID == s.Owner.Broker }); !w.brokers[i].Takes() {
				w.t.Fatalf("%v: %s of segment %d, whose owner %s is dead or leaves", w.now, d.Cause, s.ID, s.Owner.Broker)
			}
		}
		w.begin(d)
	}
	for _, n := range notes {
		w.log.note(w.now, n)
	}
	var moves []layout.Transfer
	moves, w.balance = layout.Rebalance(&w.expected, w.candidates, w.balance, w.clock())
	for _, m := range moves {
		if w.busy[m.Segment.ID] || m.Segment.Owner.Broker != m.From {
			w.t.Fatalf("%v: move of segment %d, which is busy or not %s's", w.now, m.Segment.ID, m.From)
		}
		w.begin(m.Decision())
	}
}

func (w *world) policy() layout.Policy { return w.shape.policy.WithDefaults(layout.DefaultPolicy()) }

func (w *world) candidates(yield func(layout.Candidate) bool) {
	for _, s := range w.layout.Segments {
		l := w.loads[s.ID]
		if w.busy[s.ID] || !l.Known || w.clock().Sub(w.memory.Changed(s.ID)) < w.policy().CoolDown {
			continue
		}
		if !yield(layout.Candidate{Topic: "topic", Segment: s, Load: l.Load}) {
			return
		}
	}
}

// begin seals the decision's segments, which takes 0.2 to 1 s.
func (w *world) begin(d layout.Decision) {
	for _, s := range d.Segments {
		if w.busy[s.ID] {
			w.t.Fatalf("%v: segment %d is changed twice at once", w.now, s.ID)
		}
		w.busy[s.ID] = true
	}
	took := tick * time.Duration(1+w.rnd.IntN(int(time.Second/tick)))
	w.flights = append(w.flights, &flight{Decision: d, began: w.now, until: w.now + took})
}

// land makes the next layout version of each change that is done.
func (w *world) land() {
	w.flights = slices.DeleteFunc(w.flights, func(f *flight) bool {
		if f.until > w.now {
			return false
		}
		before := w.layout
		w.layout = w.carryOut(f)
		w.check(f, before)
		w.log.change(w, f)
		return true
	})
}

func (w *world) carryOut(f *flight) layout.Layout {
	w.t.Helper()
	sealed := make([]layout.Sealed, len(f.Segments))
	parents := make([]layout.SegmentLoad, len(f.Segments))
	for i, s := range f.Segments {
		sealed[i], parents[i] = sealOf(s), w.loads[s.ID]
		delete(w.busy, s.ID)
		delete(w.loads, s.ID)
	}
	successors := make([]layout.Successor, len(f.Ranges))
	for i, id := range f.Owners {
		successors[i].Owner = broker(string(id)).Member()
	}
	l, err := w.layout.Next(f.Change(sealed, successors), w.stamp())
	if err != nil {
		w.t.Fatalf("%v: %s is refused: %v", w.now, f.Cause, err)
	}
	for i, r := range f.Ranges {
		s, _ := l.Find(r.Lo)
		w.loads[s.ID] = layout.Expect(s.ID, s.Range, parents...)
		for p := r.Lo; p < r.Hi; p++ {
			if was, _ := w.layout.Find(p); was.Owner.Broker != f.Owners[i] {
				w.rates[p] = 0 // a new owner's averages begin with nothing
			}
		}
	}
	return l
}

// check holds the change against the promises of every policy.
func (w *world) check(f *flight, before layout.Layout) {
	w.t.Helper()
	policy := w.policy()
	if n := len(w.layout.Segments); n > policy.MaxSegments || n < min(policy.MinSegments, len(before.Segments)) {
		w.t.Errorf("%v: %s leaves %d segments, allowed are %d to %d", w.now, f.Cause, n, policy.MinSegments, policy.MaxSegments)
	}
	for _, r := range f.Ranges {
		for p := r.Lo; p < r.Hi && f.Cause != layout.Roll; p++ {
			if since := f.began - w.changed[p]; since < policy.CoolDown && planned(f.Cause) {
				w.t.Fatalf("%v: %s of partition %d, %v after its last change", w.now, f.Cause, p, since)
			}
			w.changed[p] = w.now
		}
	}
	for _, q := range w.shape.quiet {
		if w.now >= q[0] && w.now < q[1] && planned(f.Cause) {
			w.t.Errorf("%v: %s into %v though the traffic is steady: %s", w.now, f.Cause, f.Ranges, f.Reason)
		}
	}
}

// planned reports whether a change of this cause is the planner's.
func planned(c layout.Cause) bool { return c == layout.Split || c == layout.Merge || c == layout.Move }

// diary is what a person wants to know of it all.
type diary struct {
	lines         []string
	causes        map[layout.Cause]int
	fewest, most  int
	above, longer int // seconds in which a segment was offered more than the threshold; in a row
	row           int
	peak          [2]float64 // of a segment and of a broker, in bytes per second
	peakAt        [2]time.Duration
	noted         map[string]bool
	next          int // milestone
}

func stampOf(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d:%04.1f", int(d.Hours()), int(d.Minutes())%60, math.Mod(d.Seconds(), 60))
}

func (d *diary) change(w *world, f *flight) {
	if d.causes == nil {
		d.causes = map[layout.Cause]int{}
	}
	d.causes[f.Cause]++
	d.fewest, d.most = min(d.fewest, len(w.layout.Segments)), max(d.most, len(w.layout.Segments))
	var from, to []string
	for _, s := range f.Segments {
		from = append(from, fmt.Sprintf("%v@%s", s.Range, s.Owner.Broker))
	}
	for i, r := range f.Ranges {
		to = append(to, fmt.Sprintf("%v@%s", r, f.Owners[i]))
	}
	d.lines = append(d.lines, fmt.Sprintf("%s %-5s %s → %s  %s", stampOf(w.now), f.Cause, strings.Join(from, " "), strings.Join(to, " "), f.Reason))
}

// note takes down each kind of note once.
func (d *diary) note(now time.Duration, n layout.Note) {
	_, kind, _ := strings.Cut(n.Text, ": ")
	kind = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, kind)
	if d.noted[kind] {
		return
	}
	if d.noted == nil {
		d.noted = map[string]bool{}
	}
	d.noted[kind] = true
	d.lines = append(d.lines, fmt.Sprintf("%s note  segment %d: %s", stampOf(now), n.Segment, n.Text))
}

// second takes the measure of a second.
func (d *diary) second(w *world) {
	worst := 0.0
	brokers := map[smq.BrokerID]float64{}
	for _, s := range w.layout.Segments {
		sum := 0.0
		for _, mb := range w.offered[s.Range.Lo:s.Range.Hi] {
			sum += mb * 1e6
		}
		worst = max(worst, sum)
		brokers[s.Owner.Broker] += sum
	}
	most := 0.0
	for _, sum := range brokers {
		most = max(most, sum)
	}
	for i, v := range []float64{worst, most} {
		if v > d.peak[i] {
			d.peak[i], d.peakAt[i] = v, w.now
		}
	}
	if worst > w.policy().Split.Bytes {
		d.above, d.row = d.above+1, d.row+1
		d.longer = max(d.longer, d.row)
	} else {
		d.row = 0
	}
	if d.next < len(w.shape.within) && w.now >= w.shape.within[d.next].at {
		m := w.shape.within[d.next]
		if len(w.layout.Segments) != m.segments || m.brokers != 0 && len(brokers) != m.brokers {
			w.t.Errorf("%v: %d segments of %d brokers, want %d of %d", w.now, len(w.layout.Segments), len(brokers), m.segments, m.brokers)
		}
		d.next++
	}
}

// String is the golden file.
func (d *diary) String(s shape) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%d partitions, %d brokers, %v\n\n", s.about, s.partitions, s.brokers, s.lasts)
	fmt.Fprintf(&b, "changes      %d: %d splits, %d merges, %d moves\n", d.causes[layout.Split]+d.causes[layout.Merge]+d.causes[layout.Move], d.causes[layout.Split], d.causes[layout.Merge], d.causes[layout.Move])
	fmt.Fprintf(&b, "segments     %d to %d\n", d.fewest, d.most)
	fmt.Fprintf(&b, "too loaded   %d s in all, %d s at a time: a segment was offered more than the threshold\n", d.above, d.longer)
	fmt.Fprintf(&b, "worst        a segment %.3g MB/s at %s, a broker %.3g MB/s at %s\n\n", d.peak[0]/1e6, stampOf(d.peakAt[0]), d.peak[1]/1e6, stampOf(d.peakAt[1]))
	for _, l := range d.lines {
		b.WriteString(l + "\n")
	}
	return b.String()
}
