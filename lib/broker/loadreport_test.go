package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// audience is a leader as far as loads go: it believes what it is told, and asks
// for all when it has missed something.
type audience struct {
	sequence uint64
	segments map[uint64]map[int32]average // of a segment, under -1 all together
}

func (a *audience) hear(r *smqpb.ReportLoadsRequest) (sendFull bool) {
	switch {
	case r.GetSequence() <= a.sequence:
		return false // it comes late
	case r.GetFull():
		a.segments = make(map[uint64]map[int32]average)
	case a.segments == nil || r.GetSequence() != a.sequence+1:
		a.sequence, a.segments = r.GetSequence(), nil
		return true
	}
	a.sequence = r.GetSequence()
	for _, s := range r.GetSegments() {
		if s.GetGone() {
			delete(a.segments, s.GetSegment())
			continue
		}
		known := a.segments[s.GetSegment()]
		if known == nil {
			known = make(map[int32]average)
			a.segments[s.GetSegment()] = known
		}
		known[-1] = average{s.GetMessagesPerSecond(), s.GetBytesPerSecond()}
		for i, p := range s.GetPartitions() {
			known[p] = average{float64(s.GetPartitionMessages()[i]), float64(s.GetPartitionBytes()[i])}
			if known[p] == (average{}) {
				delete(known, p)
			}
		}
	}
	return false
}

// check compares what the audience believes with how it is.
func (a *audience) check(owned []*rates) error {
	if len(a.segments) != len(owned) {
		return fmt.Errorf("%d segments are known, there are %d", len(a.segments), len(owned))
	}
	for _, r := range owned {
		known, ok := a.segments[uint64(r.ident.Segment)]
		if !ok {
			return fmt.Errorf("segment %d is not known", r.ident.Segment)
		}
		truth := map[int32]average{-1: r.total}
		for _, p := range r.active {
			truth[p.partition] = p.now
		}
		for p := int32(-1); p < r.ident.Range.Hi; p++ {
			told, now := known[p], truth[p]
			if !within(told.messages, now.messages, 1.001) || !within(told.bytes, now.bytes, 1025) {
				return fmt.Errorf("segment %d, partition %d: %v are known, it is %v", r.ident.Segment, p, told, now)
			}
			if _, listed := known[p]; listed && now == (average{}) && p >= 0 {
				return fmt.Errorf("segment %d, partition %d is silent, and is known as %v", r.ident.Segment, p, told)
			}
		}
	}
	return nil
}

// within reports whether two rates are a tenth, or least, apart at most.
func within(a, b, least float64) bool { return math.Abs(a-b) <= max(least, 0.1001*max(a, b)) }

// Whatever changes and gets lost, a leader that hears a report, and the full one
// that it may ask for, knows how things are.
func TestLoadReportsTellTheTruth(t *testing.T) {
	for seed := range uint64(200) {
		if err := tellTheTruth(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func tellTheTruth(rng *rand.Rand) error {
	var (
		r      reporter
		a      audience
		to     = destination{self: "b", leader: "l", term: 1}
		owned  []*rates
		latest smq.SegmentID
		late   *smqpb.ReportLoadsRequest
	)
	for range 100 {
		if rng.IntN(4) == 0 && len(owned) < 5 {
			latest++
			owned = append(owned, newRates(latest, 0, 20))
		}
		if rng.IntN(8) == 0 && len(owned) > 0 {
			owned = owned[1:]
		}
		for _, s := range owned {
			s.take(randomTraffic(rng), time.Second/2+time.Duration(rng.Int64N(int64(2*time.Second))))
		}
		if rng.IntN(20) == 0 {
			to.term++
			a = audience{}
		}
		heard := false
		for range 2 {
			report := r.next(to, owned)
			lost, unanswered := rng.IntN(6) == 0, rng.IntN(6) == 0
			if lost {
				late = report
				break
			}
			sendFull := a.hear(report)
			if unanswered {
				break
			}
			r.full = sendFull
			if heard = !sendFull; heard {
				break
			}
		}
		if heard {
			if err := a.check(owned); err != nil {
				return err
			}
		}
		if late != nil && rng.IntN(4) == 0 && late.GetSequence() < a.sequence {
			a.hear(late)
		}
	}
	return nil
}

// randomTraffic is on some of 20 partitions, or on none.
func randomTraffic(rng *rand.Rand) []seglog.Traffic {
	if rng.IntN(3) == 0 {
		return nil
	}
	var some []seglog.Traffic
	for p := range int32(20) {
		if rng.IntN(3) == 0 {
			messages := uint64(1) << rng.IntN(16)
			some = append(some, offered(p, messages, messages<<rng.IntN(10)))
		}
	}
	return some
}

// What does not change is not told again.
func TestLoadReportsOfSteadyTrafficAreEmpty(t *testing.T) {
	var r reporter
	to := destination{self: "b", leader: "l", term: 1}
	s := newRates(1, 0, 20)
	for i := range 60 {
		s.take([]seglog.Traffic{offered(3, 1000, 10_000), offered(4, uint64(1000+i%2*20), 0)}, time.Second)
		switch report := r.next(to, []*rates{s}); {
		case i == 0 && (!report.GetFull() || len(report.GetSegments()) != 1 || len(report.GetSegments()[0].GetPartitions()) != 2):
			t.Fatalf("first report %v", report)
		case i > 0 && (report.GetFull() || len(report.GetSegments()) > 0 || report.GetSequence() != uint64(i+1)):
			t.Fatalf("report %d: %v", i+1, report)
		}
	}
	for range 60 {
		s.take(nil, time.Second)
		r.next(to, []*rates{s})
	}
	if report := r.next(to, []*rates{s}); len(report.GetSegments()) > 0 {
		t.Fatalf("of silence: %v", report)
	}
	gone := r.next(to, nil)
	if len(gone.GetSegments()) != 1 || !gone.GetSegments()[0].GetGone() || gone.GetSegments()[0].GetTopicId() != "t1" {
		t.Fatalf("of a segment that is gone: %v", gone)
	}
	if report := r.next(to, nil); len(report.GetSegments()) > 0 {
		t.Fatalf("once more: %v", report)
	}
}

// listening leads, and hears of loads.
type listening struct {
	Leading
	heard []*smqpb.ReportLoadsRequest
	err   error
	deaf  bool // it wants all, whatever it is told
	audience
}

func (l *listening) ReportLoads(_ context.Context, r *smqpb.ReportLoadsRequest) (*smqpb.ReportLoadsResponse, error) {
	l.heard = append(l.heard, r)
	if l.err != nil {
		return nil, l.err
	}
	return &smqpb.ReportLoadsResponse{SendFull: l.hear(r) || l.deaf}, nil
}

// A broker that leads tells itself, and all at once if it has forgotten. Failures
// are passed over.
func TestTheLeaderReportsToItself(t *testing.T) {
	m, _ := newTestMember()
	b := m.b
	b.log, b.role = slog.New(slog.DiscardHandler), &role{b: b}
	b.owned.Store(newSegments(b, m.id))
	l := &listening{}
	var r reporter
	tell := func() *smqpb.ReportLoadsRequest {
		l.heard = nil
		b.tellLoads(t.Context(), &r)
		if len(l.heard) == 0 {
			return nil
		}
		return l.heard[len(l.heard)-1]
	}
	if tell() != nil {
		t.Error("somebody was told though nobody leads")
	}
	m.observe(&smqpb.ClusterInfo{Leader: &smqpb.LeaderInfo{Broker: string(m.id), Term: 1}})
	if tell() != nil {
		t.Error("the leader was told before it led")
	}
	b.role.reign = &reign{Leading: l, term: 1}
	if got := tell(); len(l.heard) != 2 || !got.GetFull() || got.GetBroker() != string(m.id) {
		t.Errorf("what came first was lost: then %v", l.heard)
	}
	if got := tell(); len(l.heard) != 1 || got.GetFull() {
		t.Errorf("then %v", l.heard)
	}
	l.err = errors.New("not now")
	if tell(); len(l.heard) != 1 {
		t.Errorf("a leader that fails was told %d times", len(l.heard))
	}
	l.err, l.audience = nil, audience{}
	if got := tell(); len(l.heard) != 2 || !got.GetFull() {
		t.Errorf("a leader that has forgotten was told %v", l.heard)
	}
	l.deaf = true
	if tell(); len(l.heard) != 2 {
		t.Errorf("a leader that takes nothing was told %v", l.heard)
	}
	if got := tell(); len(l.heard) != 1 || !got.GetFull() {
		t.Errorf("a leader that takes nothing was told %v", l.heard)
	}
	l.deaf = false
	m.observe(&smqpb.ClusterInfo{Leader: &smqpb.LeaderInfo{Broker: string(m.id), Term: 2}})
	l.audience = audience{}
	if got := tell(); len(l.heard) != 1 || !got.GetFull() || got.GetSequence() != 1 {
		t.Errorf("a new leader was told %v", l.heard)
	}
}
