package broker

import (
	"context"
	"math"
	"time"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// loadsTimeout bounds a report of loads. The next one comes anyway.
const loadsTimeout = 2 * time.Second

// A change of a rate is worth telling when it is more than a tenth, and more than
// what could ever matter to where messages go.
const (
	tolerance     = 0.1
	leastMessages = 1
	leastBytes    = 1 << 10
)

// differs reports whether somebody who was told the other average has to be told
// this one.
func (a average) differs(told average) bool {
	return a != told && (a == average{} || differ(a.messages, told.messages, leastMessages) || differ(a.bytes, told.bytes, leastBytes))
}

func differ(a, b, least float64) bool {
	return math.Abs(a-b) > max(least, tolerance*max(a, b))
}

// destination is to whom loads are reported, and by whom: a leader in its term
// knows nothing of what another one was told.
type destination struct {
	self, leader, address string
	term                  uint64
}

// reporter says what the leader has to be told of the loads. What a report says
// counts as told whether it arrives or not: its number is missed if it does
// not, and then all is asked for.
type reporter struct {
	to       destination
	sequence uint64
	full     bool                              // the next report has to be one
	told     map[segmentKey]*smqpb.SegmentLoad // what the leader knows of, as it is told when that is gone
}

// next makes a report of the segments that the broker owns.
func (r *reporter) next(to destination, owned []*rates) *smqpb.ReportLoadsRequest {
	if to != r.to {
		*r = reporter{to: to, full: true}
	}
	r.sequence++
	report := &smqpb.ReportLoadsRequest{Broker: to.self, Sequence: r.sequence, Full: r.full}
	gone := r.told
	r.told = make(map[segmentKey]*smqpb.SegmentLoad, len(owned))
	for _, own := range owned {
		key := segmentKey{own.ident.TopicID, own.ident.Segment}
		load := own.report(r.full)
		if load != nil {
			report.Segments = append(report.Segments, load)
		}
		switch was := gone[key]; {
		case was != nil:
			r.told[key] = was
			delete(gone, key)
		case load != nil:
			r.told[key] = &smqpb.SegmentLoad{Topic: load.Topic, TopicId: load.TopicId, Segment: load.Segment, Gone: true}
		}
	}
	if !r.full {
		for _, load := range gone {
			report.Segments = append(report.Segments, load)
		}
	}
	r.full = false
	return report
}

// rates are those of the segments that are open.
func (ss *segments) rates() []*rates {
	var all []*rates
	for _, s := range ss.snapshot() {
		all = append(all, &s.rates)
	}
	return all
}

// report is what the leader has to be told of the segment, and counts as told
// from then on: all of it when full or when the leader does not know the
// segment, else what has changed. nil: nothing, or nothing is known yet.
func (r *rates) report(full bool) *smqpb.SegmentLoad {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.age == 0 {
		return nil
	}
	full = full || !r.known
	var load *smqpb.SegmentLoad
	if full || r.total.differs(r.told) {
		load = r.describe()
	}
	for i := 0; i < len(r.active); i++ {
		a := &r.active[i]
		if full && a.now != (average{}) || !full && a.now.differs(a.told) {
			if load == nil {
				load = r.describe()
			}
			load.Partitions = append(load.Partitions, a.partition)
			load.PartitionMessages = append(load.PartitionMessages, float32(a.now.messages))
			load.PartitionBytes = append(load.PartitionBytes, float32(a.now.bytes))
			a.told = a.now
		}
		if a.now == (average{}) {
			r.forget(i)
			i--
		}
	}
	return load
}

// describe begins a report with what concerns all of the segment. r.mu is held.
func (r *rates) describe() *smqpb.SegmentLoad {
	r.known, r.told = true, r.total
	return &smqpb.SegmentLoad{
		Topic: r.ident.Topic.String(), TopicId: string(r.ident.TopicID), Segment: uint64(r.ident.Segment),
		Lo: r.ident.Range.Lo, Hi: r.ident.Range.Hi,
		MessagesPerSecond: r.total.messages, BytesPerSecond: r.total.bytes,
	}
}

// reportLoads tells the leader of the loads each time that they have been
// sampled, until ctx ends.
func (b *Broker) reportLoads(ctx context.Context) {
	var r reporter
	for {
		select {
		case <-b.sampled:
			b.tellLoads(ctx, &r)
		case <-ctx.Done():
			return
		}
	}
}

// tellLoads makes a report, and another one at once if the leader wants all. One
// that fails is not tried again: what it said is old by then.
func (b *Broker) tellLoads(ctx context.Context, r *reporter) {
	ctx, cancel := context.WithTimeout(ctx, loadsTimeout)
	defer cancel()
	own := b.segments()
	_, leader, _ := b.member.cluster()
	to := destination{string(own.self), leader.GetBroker(), leader.GetAddress(), leader.GetTerm()}
	if to.leader == "" {
		return
	}
	for range 2 {
		report := r.next(to, own.rates())
		answer, err := b.sendLoads(ctx, to, report)
		if err != nil {
			b.log.Debug("the leader does not take the loads", "leader", to.address, "err", err)
			return
		}
		if r.full = answer.GetSendFull(); !r.full || report.GetFull() {
			return // or it does not know this broker yet: next time
		}
	}
}

// sendLoads takes a report to the leader, which may be this broker.
func (b *Broker) sendLoads(ctx context.Context, to destination, report *smqpb.ReportLoadsRequest) (*smqpb.ReportLoadsResponse, error) {
	if to.leader == to.self {
		l, err := b.role.leader()
		if err != nil {
			return nil, err
		}
		return l.ReportLoads(ctx, report)
	}
	conn, err := b.cfg.Cluster.Conn(to.address)
	if err != nil {
		return nil, err
	}
	return smqpb.NewLeaderClient(conn).ReportLoads(ctx, report)
}
