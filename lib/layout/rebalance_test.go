package layout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// cluster is brokers and segments of steady loads, which the moves change.
type cluster struct {
	brokers  []layout.Broker
	segments []layout.Candidate
	expected layout.Expected
	memory   layout.Balance
	now      time.Time
	asked    int // for candidates
}

// newCluster has brokers a, b, c, … with segments of the given MB/s.
func newCluster(loads ...[]float64) *cluster {
	c := &cluster{now: epoch}
	for i, of := range loads {
		id := string(rune('a' + i))
		c.brokers = append(c.brokers, broker(id))
		for _, mb := range of {
			n := smq.SegmentID(len(c.segments) + 1)
			c.segments = append(c.segments, layout.Candidate{
				Topic: "topic", Load: layout.Load{Bytes: mb * 1e6},
				Segment: layout.Segment{ID: n, Range: smq.Range{Lo: smq.Partition(n), Hi: smq.Partition(n) + 1}, Owner: broker(id).Member()},
			})
		}
	}
	return c
}

func (c *cluster) candidates(yield func(layout.Candidate) bool) {
	c.asked++
	for _, s := range c.segments {
		if !yield(s) {
			return
		}
	}
}

// look looks once, a second after the last time, and says what is moved.
func (c *cluster) look() string {
	for i := range c.brokers {
		b := &c.brokers[i]
		b.Segments, b.BytesPerSecond = 0, 0
		for _, s := range c.segments {
			if s.Segment.Owner.Broker == b.ID {
				b.Segments++
				b.BytesPerSecond += s.Load.Bytes
			}
		}
	}
	c.expected.Update(c.brokers, c.now)
	moves, next := layout.Rebalance(&c.expected, c.candidates, c.memory, c.now)
	c.memory, c.now = next, c.now.Add(time.Second)
	var words []string
	for _, m := range moves {
		i := slices.IndexFunc(c.segments, func(s layout.Candidate) bool { return s.Segment.ID == m.Segment.ID })
		words = append(words, fmt.Sprintf("%s→%s %.3g", m.From, m.To, c.segments[i].Load.Bytes/1e6))
		c.segments[i].Segment.Owner = broker(string(m.To)).Member()
		c.expected = layout.Expected{} // what was expected has come true
	}
	return strings.Join(words, " ")
}

// wait looks for so long and says what was moved, round by round.
func (c *cluster) wait(d time.Duration) string {
	var rounds []string
	for end := c.now.Add(d); c.now.Before(end); {
		if said := c.look(); said != "" {
			rounds = append(rounds, said)
		}
	}
	return strings.Join(rounds, "; ")
}

func TestRebalance(t *testing.T) {
	silent := make([]float64, 1000)
	for _, test := range []struct {
		name string
		c    *cluster
		with func(*cluster)
		want string
	}{
		{"nobody", newCluster(), nil, ""},
		{"one broker", newCluster([]float64{10, 20}), nil, ""},
		{"equal", newCluster([]float64{10, 10}, []float64{20}, []float64{5, 14}), nil, ""},
		{"not unequal enough", newCluster([]float64{10, 15}, []float64{15}), nil, ""},
		{"not worth it", newCluster([]float64{0.5, 0.5, 0.5}, []float64{}), nil, ""},
		{"a broker has joined", newCluster([]float64{10, 10, 10}, []float64{10, 10, 10}, nil), nil, "a→c 10 b→c 10"},
		{"the heaviest that fits first", newCluster([]float64{30, 8, 12, 5}, []float64{10}), nil, "a→b 12 a→b 8"},
		{"none fits", newCluster([]float64{50}, []float64{3}), nil, ""},
		{"too light to help", newCluster([]float64{50, 1, 1, 1}, []float64{3}), nil, ""},
		{"few at a time", newCluster([]float64{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, nil, nil), nil, "a→b 4 a→c 4 a→b 4 a→c 4; a→b 4 a→c 4 a→b 4"},
		{"silent segments stay", newCluster(silent, nil), nil, ""},
		{"not from or to a broker that leaves", newCluster([]float64{10, 10}, []float64{10, 10}, []float64{30, 9}, nil), func(c *cluster) {
			c.brokers[2].Draining, c.brokers[3].Dead = true, true
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.with != nil {
				test.with(test.c)
			}
			if got := test.c.wait(5 * time.Minute); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRebalanceTakesItsTime(t *testing.T) {
	c := newCluster([]float64{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, nil, nil)
	for range 10 {
		if got := c.look(); got != "" || c.asked != 0 {
			t.Fatalf("%v after it began: %q, %d times asked for candidates", c.now.Sub(epoch), got, c.asked)
		}
	}
	c.segments[0].Load.Bytes *= 3 // all traffic changes: averages say nothing
	if got := c.look(); got != "" {
		t.Fatalf("while the traffic changes: %s", got)
	}
	if got := c.wait(9 * time.Second); got != "" {
		t.Fatalf("before it has been unequal again for long enough: %s", got)
	}
	if got := c.look(); got == "" {
		t.Fatal("nothing after it has been unequal for long enough")
	}
	if got := c.wait(9 * time.Second); got != "" {
		t.Fatalf("right after a round: %s", got)
	}
	if got := c.look(); got == "" {
		t.Fatal("no second round")
	}
}

// Brokers of which none has anything to give are not searched every second.
func TestRebalanceDoesNotSearchInVain(t *testing.T) {
	c := newCluster([]float64{50}, []float64{3})
	if got := c.wait(time.Minute); got != "" || c.asked != 5 {
		t.Errorf("in a minute: %q, %d times asked for candidates, want 5", got, c.asked)
	}
}

func TestTransferDecision(t *testing.T) {
	s := layout.Segment{ID: 3, Range: smq.Range{Lo: 0, Hi: 8}, Owner: broker("a").Member()}
	l := layout.Layout{Version: 5, Cause: layout.Split, NextSegment: 4, Segments: []layout.Segment{s}}
	d := layout.Transfer{Segment: s, From: "a", To: "b", Reason: "why"}.Decision()
	if got := next(t, l, d); got.Cause != layout.Move || got.Segments[0].Owner.Broker != "b" || got.Segments[0].Range != s.Range || got.Reason != "why" {
		t.Errorf("got %+v", got)
	}
}

// Whatever the cluster: it comes to rest, and no segment is moved twice.
func TestRebalanceComesToRest(t *testing.T) {
	moved := 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		loads := make([][]float64, 1+rnd.IntN(6))
		for i := range loads {
			for range rnd.IntN(12) {
				loads[i] = append(loads[i], 20*rnd.Float64()*rnd.Float64())
			}
		}
		c := newCluster(loads...)
		first := make([]smq.BrokerID, len(c.segments))
		for i, s := range c.segments {
			first[i] = s.Segment.Owner.Broker
		}
		moves := strings.Count(c.wait(10*time.Minute), "→")
		away := 0
		for i, s := range c.segments {
			if s.Segment.Owner.Broker != first[i] {
				away++
			}
		}
		if moves != away {
			t.Errorf("seed %d: %d moves for %d segments", seed, moves, away)
		}
		if got := c.wait(10 * time.Minute); got != "" {
			t.Errorf("seed %d: not at rest: %s", seed, got)
		}
		moved += moves
	}
	if moved < 500 {
		t.Errorf("%d moves in all: too few to say anything", moved)
	}
}
