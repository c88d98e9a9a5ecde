package leader_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// rush has every broker report the loads of the segments that it owns of the
// topics, each second for so long; rates are those of a topic's partitions. A
// broker that is named is silent.
func (b *bed) rush(d time.Duration, rates map[catalog.Config]map[int32]float64, silent ...string) {
	b.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); <-time.After(time.Second) {
		loads := make(map[string][]*smqpb.SegmentLoad)
		for c, r := range rates {
			segments, err := b.segments(c.Topic.String())
			if err != nil {
				b.t.Fatal(err)
			}
			for _, s := range segments {
				if s.GetOwner() != "" {
					loads[s.GetOwnerAddress()] = append(loads[s.GetOwnerAddress()], loadOf(c, s, r))
				}
			}
		}
		for address, p := range b.peers {
			if p.dead || len(silent) > 0 && b.at(silent[0]) == p {
				continue
			}
			p.load = layout.Load{}
			for _, l := range loads[address] {
				p.load = p.load.Add(layout.Load{Messages: l.GetMessagesPerSecond(), Bytes: l.GetBytesPerSecond()})
			}
			b.reportLoads(p.loadReport(true, loads[address]...))
		}
		b.leader.SetBrokers(b.brokers())
	}
}

// even is a load that is the same for all partitions.
func even(partitions int32, each float64) map[int32]float64 {
	rates := make(map[int32]float64)
	for p := range partitions {
		rates[p] = each
	}
	return rates
}

func count(causes []layout.Cause, cause layout.Cause) (n int) {
	for _, c := range causes {
		if c == cause {
			n++
		}
	}
	return n
}

// A topic that gets busy is divided among the brokers, and is one segment again
// when nothing happens in it any more.
func TestTopicsScaleByThemselves(t *testing.T) {
	bubble(t, []string{"a", "b", "c", "d"}, func(b *bed) {
		c, quiet := b.create("t", 8), b.create("quiet", 8)
		b.publish("t", 1, "one")
		b.publish("quiet", 1, "one")
		b.rush(30*time.Second, map[catalog.Config]map[int32]float64{c: even(8, 6e6), quiet: even(8, 1e3)})
		segments, err := b.segments("t")
		if err != nil || len(segments) < 3 {
			b.t.Fatalf("%v, %v", segments, err)
		}
		owners := make(map[string]bool)
		for _, s := range segments {
			owners[s.GetOwner()] = true
		}
		if len(owners) < 3 {
			b.t.Errorf("owners: %v", segments)
		}
		b.live("quiet", 1)
		for p := range int32(8) {
			b.publish("t", p, "more")
		}
		resp, err := b.leader.ListVersions(b.t.Context(), &smqpb.ListVersionsRequest{Topic: "t", After: 2, Limit: 1})
		if err != nil {
			b.t.Fatal(err)
		}
		if v := resp.GetVersions()[0]; v.GetCause() != "split" || v.GetReason() == "" || len(v.GetLoads()) != 1 || v.GetLoads()[0].GetBytesPerSecond() != 48e6 || len(v.GetLoads()[0].GetPartitions()) != 8 {
			b.t.Errorf("the first split: %v", v)
		}
		b.rush(3*time.Minute, map[catalog.Config]map[int32]float64{c: nil, quiet: nil})
		b.live("t", 1)
		b.check("t")
	})
}

// By-hand modes leave topics alone, and so does silence about a load.
func TestTopicsThatDoNotScale(t *testing.T) {
	for name, test := range map[string]struct {
		scaling *smqpb.Scaling
		silent  []string
	}{
		"manual":             {scaling: &smqpb.Scaling{Mode: "manual"}},
		"off":                {scaling: &smqpb.Scaling{Mode: "off"}},
		"higher threshold":   {scaling: &smqpb.Scaling{SplitBytesPerSecond: 100e6, SplitMessagesPerSecond: 100e6}},
		"one segment":        {scaling: &smqpb.Scaling{MaxSegments: 1}},
		"its owner is quiet": {silent: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []string{"a", "b"}, func(b *bed) {
				c := b.create("t", 8)
				b.publish("t", 1, "one")
				if test.scaling != nil {
					_, err := b.alter(&smqpb.AlterTopicRequest{Scaling: test.scaling})
					wantErr(b.t, "alter", err, nil)
				}
				b.rush(time.Minute, map[catalog.Config]map[int32]float64{c: even(8, 6e6)}, test.silent...)
				b.wantCauses(c)
			})
		})
	}
}

// What a broker told before it fell silent is not acted on.
func TestLoadsGrowOld(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		_, err := b.alter(&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{MaxSegments: 1}})
		wantErr(b.t, "alter", err, nil)
		loads := map[catalog.Config]map[int32]float64{c: even(8, 6e6)}
		b.rush(10*time.Second, loads)
		b.rush(10*time.Second, loads, "a")
		_, err = b.alter(&smqpb.AlterTopicRequest{Reset_: []string{"max_segments"}})
		wantErr(b.t, "alter", err, nil)
		b.rush(time.Minute, loads, "a")
		b.wantCauses(c)
		b.rush(time.Minute, loads)
		if n := count(b.causes(c), layout.Split); n == 0 {
			b.t.Error("it is not split when its owner reports again")
		}
	})
}

// Why nothing is done about a segment that is above the threshold is told.
func TestNotesAreTold(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		_, err := b.alter(&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{MaxSegments: 1}})
		wantErr(b.t, "alter", err, nil)
		b.rush(time.Minute, map[catalog.Config]map[int32]float64{c: even(8, 6e6)})
		if notes := b.detail("t").GetNotes(); len(notes) != 1 {
			b.t.Errorf("notes: %q", notes)
		}
	})
}

// A broker's segments go to the others by what they bring.
func TestDrainsSpreadTheLoad(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		for _, name := range []string{"b", "c"} {
			b.drain(name)
		}
		var all []catalog.Config // the heavy one first
		rates := make(map[catalog.Config]map[int32]float64)
		for _, name := range []string{"v", "t", "u", "w"} {
			c := b.create(name, 8)
			b.publish(name, 1, "one")
			all, rates[c] = append(all, c), even(8, 1e3)
		}
		rates[all[0]] = even(8, 1e6)
		b.rush(time.Second, rates)
		for _, name := range []string{"b", "c"} {
			b.at(name).draining = false
		}
		b.drain("a")
		var owners []string
		for _, c := range all {
			if _, err := b.report(c, b.live(c.Topic.String(), 1)[0].GetId(), layout.Drain, "a"); err != nil {
				b.t.Fatal(err)
			}
			owners = append(owners, b.live(c.Topic.String(), 1)[0].GetOwner())
		}
		if slices.Contains(owners[1:], owners[0]) {
			b.t.Errorf("the heavy one went to the first of %v", owners)
		}
	})
}

// A broker that carries more than the others gives segments away.
func TestBrokersAreBalanced(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		rates := make(map[catalog.Config]map[int32]float64)
		var all []catalog.Config
		for _, name := range []string{"t", "u", "v", "w"} {
			c := b.create(name, 8)
			b.publish(name, 1, "one")
			all, rates[c] = append(all, c), even(8, 1e6)
		}
		b.at("b").draining = true
		b.leader.SetBrokers(b.brokers())
		for _, c := range all {
			s := b.live(c.Topic.String(), 1)[0]
			if s.GetOwner() == string(id("b")) {
				if _, err := b.report(c, s.GetId(), layout.Drain, "b"); err != nil {
					b.t.Fatal(err)
				}
			}
		}
		b.at("b").draining = false
		b.rush(2*time.Minute, rates)
		owned, moves := make(map[string]int), 0
		for _, c := range all {
			owned[b.live(c.Topic.String(), 1)[0].GetOwner()]++
			moves += count(b.causes(c), layout.Move)
			b.publish(c.Topic.String(), 1, "two")
			b.check(c.Topic.String())
		}
		if moves != 2 || owned[string(id("a"))] != 2 {
			b.t.Errorf("%d moves, then %v", moves, owned)
		}
	})
}

// A segment in use gets the follower that it lacks once there is a broker for it.
func TestSegmentsGetTheFollowersThatTheyLack(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		b.at("b").draining = true
		b.leader.SetBrokers(b.brokers())
		c, idle := b.createReplicated("t", 8, 2), b.createReplicated("idle", 8, 2)
		b.publish("t", 1, "one")
		b.publish("idle", 1, "one")
		traffic := map[catalog.Config]map[int32]float64{c: even(8, 1e3), idle: nil}
		b.rush(time.Minute, traffic)
		b.wantCauses(c)
		b.at("b").draining = false
		b.rush(time.Minute, traffic)
		b.wantCauses(c, layout.Move)
		b.wantCauses(idle)
		if s := b.live("t", 1)[0]; s.GetOwner() != string(id("a")) || len(s.GetReplicas()) != 1 {
			b.t.Errorf("%v", s)
		}
		b.publish("t", 1, "two")
		b.check("t")
	})
}
