package layout_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// model walks a topic's layout through random changes.
type model struct {
	t       *testing.T
	rnd     *rand.Rand
	history layout.History
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 1))}
	first, err := layout.New(1+m.rnd.Int32N(40), m.stamp())
	if err != nil {
		t.Fatal(err)
	}
	m.accept(first)
	return m
}

func (m *model) now() layout.Layout { return m.history.Last }

func (m *model) stamp() layout.Stamp {
	return layout.Stamp{Leader: "00000000000000aa", Term: m.rnd.Uint64N(9), NowMS: m.rnd.Int64N(1 << 40)}
}

func (m *model) member() layout.Member {
	id := fmt.Sprintf("%016x", m.rnd.IntN(5))
	return layout.Member{Broker: smq.BrokerID(id), Address: "broker-" + id + ":7310"}
}

// seal makes up what sealing a live segment gives.
func (m *model) seal(s layout.Segment) layout.Sealed {
	if !s.Assigned() {
		return layout.EmptyOf(s)
	}
	return layout.Sealed{
		Segment: s.ID, Range: s.Range, Chunk: m.rnd.Uint64N(5000), Hash: layout.Hash{byte(s.ID), byte(s.ID >> 8), 1},
		Unclean: m.rnd.IntN(9) == 0, Messages: m.rnd.Uint64N(1 << 50), Bytes: m.rnd.Uint64N(1 << 60),
	}
}

// run picks a run of neighbouring live segments.
func (m *model) run() []layout.Segment {
	all := m.now().Segments
	lo := m.rnd.IntN(len(all))
	return all[lo : lo+1+m.rnd.IntN(min(len(all)-lo, 3))]
}

// change makes a random valid change: runs of neighbours become anything from
// one segment to one for each partition.
func (m *model) change() layout.Change {
	run := m.run()
	c := layout.Change{Cause: []layout.Cause{
		layout.Assign, layout.Split, layout.Merge, layout.Failover, layout.Drain, layout.Move, layout.Roll,
	}[m.rnd.IntN(7)]}
	for _, s := range run {
		c.Sealed = append(c.Sealed, m.seal(s))
	}
	lo, hi := run[0].Range.Lo, run[len(run)-1].Range.Hi
	for lo < hi {
		succ := layout.Successor{Range: smq.Range{Lo: lo, Hi: lo + 1 + m.rnd.Int32N(hi-lo)}}
		if m.rnd.IntN(4) > 0 {
			succ.Owner = m.member()
		}
		c.Successors = append(c.Successors, succ)
		lo = succ.Range.Hi
	}
	m.rnd.Shuffle(len(c.Successors), func(i, j int) {
		c.Successors[i], c.Successors[j] = c.Successors[j], c.Successors[i]
	})
	return c
}

func (m *model) accept(l layout.Layout) {
	m.t.Helper()
	if err := l.Validate(); err != nil {
		m.t.Fatal(err)
	}
	h, err := m.history.Add(l)
	if err != nil {
		m.t.Fatal(err)
	}
	m.history = h
	m.checkTiling()
	m.checkChains()
	m.checkForms()
}

// checkTiling looks every partition up: exactly one live segment holds it.
func (m *model) checkTiling() {
	m.t.Helper()
	for p := range m.now().Partitions() {
		holders := 0
		for _, s := range m.now().Segments {
			if s.Range.Contains(p) {
				holders++
			}
		}
		if s, ok := m.now().Find(p); !ok || !s.Range.Contains(p) || holders != 1 {
			m.t.Fatalf("version %d: partition %d lies in %d live segments, Find says %v %v", m.now().Version, p, holders, s.Range, ok)
		}
	}
}

// checkChains follows every partition's history: ids rise, and the live
// segment continues from the last of them.
func (m *model) checkChains() {
	m.t.Helper()
	for p := range m.now().Partitions() {
		last := smq.SegmentID(0)
		for _, s := range m.history.Chain(p) {
			if s.Segment <= last {
				m.t.Fatalf("partition %d: segment %d after %d", p, s.Segment, last)
			}
			next, ok := m.history.After(p, last)
			if !ok || next.Segment != s.Segment {
				m.t.Fatalf("partition %d: After(%d) is %d, the chain goes on with %d", p, last, next.Segment, s.Segment)
			}
			last = s.Segment
		}
		live, _ := m.now().Find(p)
		from := smq.SegmentID(0)
		for _, pred := range live.Predecessors {
			if pred.Range.Contains(p) {
				from = pred.Segment
			}
		}
		if from != last || live.ID <= last {
			m.t.Fatalf("partition %d: segment %d continues from %d, the chain ends with %d", p, live.ID, from, last)
		}
	}
}

// checkForms takes the version through its stored and its wire form.
func (m *model) checkForms() {
	m.t.Helper()
	data := layout.Encode(m.now())
	back, err := layout.Decode(data)
	if err != nil {
		m.t.Fatalf("decoding %s: %v", data, err)
	}
	if again := layout.Encode(back); !bytes.Equal(data, again) {
		m.t.Fatalf("encoded again it differs:\n%s\n%s", data, again)
	}
	wire, err := proto.Marshal(layout.ToProto(m.now()))
	if err != nil {
		m.t.Fatal(err)
	}
	var msg smqpb.Layout
	if err := proto.Unmarshal(wire, &msg); err != nil {
		m.t.Fatal(err)
	}
	fromWire, err := layout.FromProto(&msg)
	if err != nil {
		m.t.Fatal(err)
	}
	if !reflect.DeepEqual(fromWire, back) {
		m.t.Fatalf("wire and stored forms differ:\n%+v\n%+v", fromWire, back)
	}
}

// Some of the model's changes merge an unassigned segment with one that cannot
// take it in; those are refused.
func TestP6LiveSegmentsTileThePartitions(t *testing.T) {
	refused, applied := 0, 0
	for seed := range uint64(60) {
		m := newModel(t, seed)
		for range 40 {
			next, err := m.now().Next(m.change(), m.stamp())
			if err != nil {
				refused++
				continue
			}
			applied++
			m.accept(next)
		}
	}
	if applied < 4*refused {
		t.Fatalf("%d changes applied, %d refused: the model makes too few valid ones", applied, refused)
	}
}

// Whatever a change says, the result is refused or valid.
func TestP6HoldsUnderChangesThatAreWrong(t *testing.T) {
	for seed := range uint64(200) {
		m := newModel(t, seed)
		for range 20 {
			c := m.change()
			m.spoil(&c)
			next, err := m.now().Next(c, m.stamp())
			if err != nil {
				continue
			}
			m.accept(next)
		}
	}
}

// spoil breaks a change in one of the ways that a confused caller might.
func (m *model) spoil(c *layout.Change) {
	succ := &c.Successors[m.rnd.IntN(len(c.Successors))]
	switch m.rnd.IntN(7) {
	case 0:
		succ.Range.Hi += m.rnd.Int32N(3) - 1
	case 1:
		succ.Range.Lo -= m.rnd.Int32N(3) - 1
	case 2:
		c.Sealed = append(c.Sealed, c.Sealed[0])
	case 3:
		c.Sealed = c.Sealed[1:]
	case 4:
		c.Successors = c.Successors[1:]
	case 5:
		c.Sealed[0].Segment += smq.SegmentID(m.rnd.IntN(3))
	case 6:
		c.Successors = append(c.Successors, *succ)
	}
}
