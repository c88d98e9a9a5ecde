package leader_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// latest is the newest version of the topic's layout.
func (b *bed) latest(topicName string) *smqpb.Layout {
	b.t.Helper()
	resp, err := b.leader.DescribeTopic(b.t.Context(), &smqpb.DescribeTopicRequest{Topic: topicName})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.GetLayout()
}

// names are the brokers' short names.
func names(replicas []*smqpb.Replica) string {
	var all []string
	for _, r := range replicas {
		all = append(all, strings.TrimSuffix(r.GetAddress(), ":7310"))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// An owner that has sealed a segment says without which followers it goes on:
// those alone follow nothing for a while, and who leaves is no failure.
func TestTheOwnerNamesTheFollowersItHasLost(t *testing.T) {
	lost := func(name string, leaving bool) *smqpb.LostFollower {
		return &smqpb.LostFollower{Broker: string(id(name)), Leaving: leaving}
	}
	for name, test := range map[string]struct {
		lost      []*smqpb.LostFollower
		cause     layout.Cause
		followers string   // of the successor
		reason    []string // what it says
	}{
		"one of two is lost":           {[]*smqpb.LostFollower{lost("b", false)}, layout.Failover, "c d", []string{"b:7310 was lost"}},
		"one of two leaves":            {[]*smqpb.LostFollower{lost("c", true)}, layout.Drain, "b d", []string{"c:7310 is leaving"}},
		"both leave":                   {[]*smqpb.LostFollower{lost("b", true), lost("c", true)}, layout.Drain, "d e", []string{"b:7310 is leaving", "c:7310 is leaving"}},
		"one leaves, one is lost":      {[]*smqpb.LostFollower{lost("b", true), lost("c", false)}, layout.Failover, "d e", []string{"b:7310 is leaving", "c:7310 was lost"}},
		"an older owner says nothing":  {nil, layout.Failover, "d e", []string{"a follower was lost"}},
		"a broker that did not follow": {[]*smqpb.LostFollower{lost("e", false)}, layout.Failover, "b c", []string{"a follower was lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []string{"a", "b", "c", "d", "e"}, func(b *bed) {
				c := b.createReplicated("t", 8, 3)
				b.publish("t", 1, "one")
				s := b.live("t", 1)[0]
				if s.GetOwnerAddress() != "a:7310" || names(s.GetReplicas()) != "b c" {
					b.t.Fatalf("at first: %v", s)
				}
				b.sealBy("a", c, s.GetId())
				_, err := b.leader.ReportSealed(b.t.Context(), &smqpb.ReportSealedRequest{
					Topic: "t", TopicId: string(c.ID), Segment: s.GetId(), Cause: string(layout.Failover), Broker: string(id("a")), Lost: test.lost,
				})
				if err != nil {
					b.t.Fatal(err)
				}
				now := b.latest("t")
				s = now.GetSegments()[0]
				if s.GetOwnerAddress() != "a:7310" || names(s.GetReplicas()) != test.followers || now.GetCause() != string(test.cause) {
					b.t.Errorf("cause %s, owner %s, followers %s", now.GetCause(), s.GetOwnerAddress(), names(s.GetReplicas()))
				}
				for _, text := range test.reason {
					if !strings.Contains(now.GetReason(), text) {
						b.t.Errorf("the reason is %q, it should say %q", now.GetReason(), text)
					}
				}
			})
		})
	}
}

// A publisher may meet the seal before the owner has told why it made it.
func TestASealIsMetBeforeItIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*bed) // after the topic is in use
		cause  layout.Cause
	}{
		"it was full":            {func(*bed) {}, layout.Roll},
		"its follower leaves":    {func(b *bed) { b.drain("b") }, layout.Drain},
		"its follower has died":  {func(b *bed) { b.kill("b") }, layout.Failover},
		"another broker leaves":  {func(b *bed) { b.drain("c") }, layout.Roll},
		"its owner leaves":       {func(b *bed) { b.drain("a") }, layout.Drain},
		"the owner has died too": {func(b *bed) { b.kill("b"); b.kill("a") }, layout.Failover},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []string{"a", "b", "c"}, func(b *bed) {
				c := b.createReplicated("t", 8, 2)
				b.publish("t", 1, "one")
				s := b.live("t", 1)[0]
				if s.GetOwnerAddress() != "a:7310" || names(s.GetReplicas()) != "b" {
					b.t.Fatalf("at first: %v", s)
				}
				b.sealBy("a", c, s.GetId())
				test.before(b)
				b.lookup("t", smq.SegmentID(s.GetId()), 1)
				b.wantCauses(c, test.cause)
			})
		})
	}
}

// An owner that lives, and holds nothing of its segment any more, is not waited for
// when its followers are dead; one that may still hold something is.
func TestAnOwnerIsEmptyHanded(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		c := b.createReplicated("t", 8, 2)
		b.publish("t", 1, "one")
		s := b.live("t", 1)[0]
		if s.GetOwnerAddress() != "a:7310" || names(s.GetReplicas()) != "b" {
			b.t.Fatalf("at first: %v", s)
		}
		b.expire("b")
		req := &smqpb.ReportSealedRequest{Topic: "t", TopicId: string(c.ID), Segment: s.GetId(), Cause: string(layout.Failover), Broker: string(id("a"))}
		if _, err := b.leader.ReportSealed(b.t.Context(), req); !errors.Is(err, smq.ErrUnavailable) {
			b.t.Errorf("while it may hold something: %v", err)
		}
		req.EmptyHanded = true
		if _, err := b.leader.ReportSealed(b.t.Context(), req); err != nil {
			b.t.Error(err)
		}
		now := b.latest("t")
		if now.GetCause() != string(layout.Failover) || !now.GetSealed()[0].GetUnclean() || now.GetSegments()[0].GetOwnerAddress() != "c:7310" {
			b.t.Errorf("afterwards: %v", now)
		}
		b.publish("t", 1, "two")
		b.check("t")
	})
}

// Nor are followers that live left out: they may hold what it has acked.
func TestAnEmptyHandedOwnerHasFollowers(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		c := b.createReplicated("t", 8, 2)
		b.publish("t", 1, "one")
		s := b.live("t", 1)[0]
		_, err := b.leader.ReportSealed(b.t.Context(), &smqpb.ReportSealedRequest{
			Topic: "t", TopicId: string(c.ID), Segment: s.GetId(), Cause: string(layout.Failover), Broker: string(id("a")), EmptyHanded: true,
		})
		// The bed's followers find nothing to seal.
		if !errors.Is(err, smq.ErrUnavailable) || b.latest("t").GetCause() == string(layout.Failover) {
			b.t.Errorf("sealed without its follower: %v, %v", err, b.latest("t"))
		}
	})
}
