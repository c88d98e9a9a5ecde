package leader_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// loadReport is a broker's next report, made by hand.
func (p *peer) loadReport(full bool, segments ...*smqpb.SegmentLoad) *smqpb.ReportLoadsRequest {
	p.reports++
	return &smqpb.ReportLoadsRequest{Broker: string(p.id), Sequence: p.reports, Full: full, Segments: segments}
}

// loadOf is a segment's load in which partition p has the rate given in bytes, and
// a thousandth of that in messages.
func loadOf(c catalog.Config, s *smqpb.Segment, rates map[int32]float64) *smqpb.SegmentLoad {
	l := &smqpb.SegmentLoad{Topic: c.Topic.String(), TopicId: string(c.ID), Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi()}
	for p := s.GetHi() - 1; p >= s.GetLo(); p-- { // in no order that helps
		if r, there := rates[p]; there {
			l.Partitions = append(l.Partitions, p)
			l.PartitionBytes = append(l.PartitionBytes, float32(r))
			l.PartitionMessages = append(l.PartitionMessages, float32(r/1000))
			l.BytesPerSecond += r
			l.MessagesPerSecond += r / 1000
		}
	}
	return l
}

// reportLoads has a leader take a report; it says whether a full one is asked
// for.
func (b *bed) reportLoads(req *smqpb.ReportLoadsRequest) bool {
	b.t.Helper()
	resp, err := b.leader.ReportLoads(b.t.Context(), req)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.GetSendFull()
}

// detail is what a watcher of the topic is told first.
func (b *bed) detail(topicName string) *smqpb.TopicDetail {
	b.t.Helper()
	w := b.watch(&smqpb.WatchRequest{Topic: topicName})
	defer w.stop()
	return w.next(b.t).GetDetail()
}

// rates are the partitions' loads in bytes as a watcher of the topic is told.
func (b *bed) rates(topicName string) map[int32]float64 {
	b.t.Helper()
	rates := make(map[int32]float64)
	for _, l := range b.detail(topicName).GetLoads() {
		for i, p := range l.GetPartitions() {
			rates[p] = float64(l.GetPartitionBytes()[i])
		}
	}
	return rates
}

// Whatever reports say, get lost, come late or twice: what the leader knows is
// what the last one taken in makes it.
func TestReportedLoadsAreTheTruth(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, []string{"a"}, func(b *bed) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			c := b.create("t", 16)
			b.publish("t", 1, "one")
			s, a := b.live("t", 1)[0], b.at("a")
			truth := make(map[int32]float64)
			full := true
			var old []*smqpb.ReportLoadsRequest
			for range 100 {
				changes := make(map[int32]float64)
				for range rnd.IntN(4) {
					p, rate := rnd.Int32N(16), float64(rnd.IntN(3)*1000)
					changes[p], truth[p] = rate, rate
					if rate == 0 {
						delete(truth, p)
					}
				}
				if full {
					changes = truth
				}
				req := a.loadReport(full, loadOf(c, s, changes))
				if rnd.IntN(5) == 0 {
					full = false // it is lost, and the broker does not know
					continue
				}
				full = b.reportLoads(req)
				if old = append(old, req); rnd.IntN(5) == 0 {
					b.reportLoads(old[rnd.IntN(len(old))])
				}
				if full {
					continue
				}
				if got := b.rates("t"); fmt.Sprint(got) != fmt.Sprint(truth) {
					b.t.Fatalf("seed %d: the leader knows %v, the truth is %v", seed, got, truth)
				}
			}
		})
	}
}

func TestReportsAskForMore(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		s, a := b.live("t", 1)[0], b.at("a")
		one := loadOf(c, s, map[int32]float64{1: 1000})
		for i, step := range []struct {
			req  *smqpb.ReportLoadsRequest
			full bool
			want int // partitions known then
		}{
			{&smqpb.ReportLoadsRequest{Broker: "0123456789abcdef", Sequence: 1, Full: true, Segments: []*smqpb.SegmentLoad{one}}, true, 0},
			{a.loadReport(false, one), true, 0}, // there has been none before
			{a.loadReport(true, one), false, 1},
			{a.loadReport(false, loadOf(c, s, map[int32]float64{2: 1000})), false, 2},
			{&smqpb.ReportLoadsRequest{Broker: string(a.id), Sequence: 9, Segments: []*smqpb.SegmentLoad{loadOf(c, s, map[int32]float64{3: 1000})}}, true, 2},
			{&smqpb.ReportLoadsRequest{Broker: string(a.id), Sequence: 10, Full: true, Segments: []*smqpb.SegmentLoad{one}}, false, 1},
		} {
			if full := b.reportLoads(step.req); full != step.full {
				b.t.Errorf("step %d: asked for a full report: %v", i, full)
			}
			if got := b.rates("t"); len(got) != step.want {
				b.t.Errorf("step %d: the leader knows %v", i, got)
			}
		}
	})
}

func TestReportsRefused(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		s, a := b.live("t", 1)[0], b.at("a")
		for i, spoil := range []func(l *smqpb.SegmentLoad){
			func(l *smqpb.SegmentLoad) { l.Topic = "a/b/c" },
			func(l *smqpb.SegmentLoad) { l.TopicId = "whim" },
			func(l *smqpb.SegmentLoad) { l.Partitions[0] = 8 },
			func(l *smqpb.SegmentLoad) { l.Partitions[0] = -1 },
			func(l *smqpb.SegmentLoad) { l.Partitions[0] = l.Partitions[1] },
			func(l *smqpb.SegmentLoad) { l.PartitionBytes[0] = -1 },
			func(l *smqpb.SegmentLoad) { l.PartitionMessages[0] = float32(math.NaN()) },
			func(l *smqpb.SegmentLoad) { l.BytesPerSecond = math.Inf(1) },
			func(l *smqpb.SegmentLoad) { l.PartitionBytes = nil },
		} {
			load := loadOf(c, s, map[int32]float64{1: 1000, 2: 1000})
			spoil(load)
			if resp, err := b.leader.ReportLoads(b.t.Context(), a.loadReport(true, load)); err == nil {
				b.t.Errorf("case %d: %v was taken in: %v", i, load, resp)
			}
		}
		if got := b.rates("t"); len(got) > 0 {
			b.t.Errorf("the leader knows %v", got)
		}
	})
}

// What a segment had is expected of its successors until they have reported, by
// partition; and what is reported late of one that is gone does not count.
func TestSuccessorsInheritLoads(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		s, a := b.live("t", 1)[0], b.at("a")
		b.reportLoads(a.loadReport(true, loadOf(c, s, map[int32]float64{1: 1000, 3: 2000, 6: 4000})))
		wantErr(b.t, "split", b.splitAt("t", s.GetId(), 3), nil)
		b.reportLoads(a.loadReport(false, loadOf(c, s, map[int32]float64{1: 9000})))
		loads := b.detail("t").GetLoads()
		if len(loads) != 2 || loads[0].GetBytesPerSecond() != 1000 || loads[1].GetBytesPerSecond() != 6000 {
			b.t.Fatalf("loads: %v", loads)
		}
		w := b.watch(&smqpb.WatchRequest{Topics: true})
		defer w.stop()
		if s := w.next(b.t).GetTopics()[0]; s.GetBytesPerSecond() != 7000 {
			b.t.Errorf("the topic: %v", s)
		}
		resp, err := b.leader.ListVersions(b.t.Context(), &smqpb.ListVersionsRequest{Topic: "t", After: 2})
		if err != nil || len(resp.GetVersions()) != 1 {
			b.t.Fatalf("%v, %v", resp, err)
		}
		if l := resp.GetVersions()[0].GetLoads(); len(l) != 1 || l[0].GetBytesPerSecond() != 7000 || len(l[0].GetPartitions()) != 3 {
			b.t.Errorf("the version tells %v", l)
		}
	})
}

// Brokers' reports bring a new leader to the topics in use when its sweep does
// not.
func TestReportsTellWhichTopicsAreInUse(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		s := b.live("t", 1)[0]
		b.lead(blind{b.st.Handle()})
		b.reportLoads(b.at("a").loadReport(true, loadOf(c, s, map[int32]float64{1: 1000})))
		<-time.After(2 * time.Second)
		b.kill("a")
		synctest.Wait()
		l, _, err := catalog.Latest(b.t.Context(), b.st, c.Topic, c.ID, 0)
		if err != nil || l.Cause != layout.Failover || l.Segments[0].Owner.Broker != id("b") {
			b.t.Fatalf("%+v, %v", l, err)
		}
		if len(l.Loads) != 1 || l.Loads[0].Bytes != 1000 {
			b.t.Errorf("the version tells the loads %v", l.Loads)
		}
	})
}
