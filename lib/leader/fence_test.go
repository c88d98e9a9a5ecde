package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// FenceReplica finds nothing to fence.
func (p *peer) FenceReplica(context.Context, *smqpb.FenceReplicaRequest, ...grpc.CallOption) (*smqpb.FenceReplicaResponse, error) {
	return nil, fmt.Errorf("segment: %w", smq.ErrNotFound)
}

// HeldBatches finds nothing to hand over.
func (p *peer) HeldBatches(context.Context, *smqpb.HeldBatchesRequest, ...grpc.CallOption) (*smqpb.HeldBatchesResponse, error) {
	return nil, fmt.Errorf("segment: %w", smq.ErrNotFound)
}

// What a follower does not find is not what the leader was asked for: a client
// that was told so would take its topic for deleted.
func TestAFollowerThatFindsNothingIsNoMissingTopic(t *testing.T) {
	b := newBed(t, "a", "b")
	l := b.lead(b.st)
	if _, err := l.CreateTopic(t.Context(), &smqpb.CreateTopicRequest{Topic: "t", Partitions: 1, Replicas: 2}); err != nil {
		t.Fatal(err)
	}
	req := &smqpb.LookupRequest{Topic: "t", Assign: true, Partitions: []int32{0}}
	resp, err := l.Lookup(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	owner := "a"
	if resp.GetLayout().GetSegments()[0].GetOwnerAddress() != "a:7310" {
		owner = "b"
	}
	b.leader = l
	b.publish("t", 0, "one") // what was never opened is sealed without followers
	b.kill(owner)
	if _, err := l.Lookup(t.Context(), req); !errors.Is(err, smq.ErrUnavailable) || errors.Is(err, smq.ErrNotFound) {
		t.Errorf("a lookup while no follower can seal: %v", err)
	}
}

// A segment that its owner never opened waits for nobody's lease.
func TestASegmentThatWasNeverOpenedIsReplacedAtOnce(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.createReplicated("t", 1, 2)
		owner := b.lookup("t", 0, 0).GetLayout().GetSegments()[0].GetOwnerAddress()
		b.kill(strings.TrimSuffix(owner, ":7310"))
		if s := b.lookup("t", 0, 0).GetLayout().GetSegments()[0]; s.GetOwnerAddress() == owner {
			b.t.Errorf("it is %v still", s)
		}
		b.wantCauses(c, layout.Failover)
	})
}

// The end of the last lease is what a segment waits for whose replicas are all
// lost, and nothing longer.
func TestASegmentWithoutReplicasIsReplacedWhenTheLastLeaseEnds(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		c := b.createReplicated("t", 1, 2)
		b.publish("t", 0, "one") // which is stored
		s := b.live("t", 1)[0]
		owner, follower := strings.TrimSuffix(s.GetOwnerAddress(), ":7310"), strings.TrimSuffix(s.GetReplicas()[0].GetAddress(), ":7310")
		b.kill(follower)
		b.kill(owner)
		<-time.After(time.Second / 3)
		b.expire(owner)
		<-time.After(time.Second / 3)
		synctest.Wait()
		b.wantCauses(c)
		b.expire(follower)
		synctest.Wait()
		b.wantCauses(c, layout.Failover)
		b.check("t")
	})
}

// sealBy has an owner seal a segment.
func (b *bed) sealBy(owner string, c catalog.Config, segment uint64) {
	b.t.Helper()
	_, err := b.at(owner).SealSegment(b.t.Context(), &smqpb.SealSegmentRequest{Topic: c.Topic.String(), TopicId: string(c.ID), Segment: segment})
	if err != nil {
		b.t.Fatal(err)
	}
}

// Owner and follower that have lost one another do not meet again at once.
func TestBrokersThatLoseOneAnotherAreKeptApart(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.createReplicated("t", 8, 2)
		b.publish("t", 1, "one")
		s := b.live("t", 1)[0]
		owner := strings.TrimSuffix(s.GetOwnerAddress(), ":7310")
		b.sealBy(owner, c, s.GetId())
		if _, err := b.report(c, s.GetId(), layout.Failover, owner); err != nil {
			b.t.Fatal(err)
		}
		s = b.live("t", 1)[0]
		if s.GetOwnerAddress() != owner+":7310" || len(s.GetReplicas()) > 0 {
			b.t.Errorf("after its follower was lost: %v", s)
		}
		traffic := map[catalog.Config]map[int32]float64{c: even(8, 1e3)}
		b.publish("t", 1, "two")
		b.rush(time.Minute, traffic)
		if s = b.live("t", 1)[0]; len(s.GetReplicas()) != 1 {
			b.t.Errorf("after a minute: %v", s)
		}
		follower := strings.TrimSuffix(s.GetReplicas()[0].GetAddress(), ":7310")
		b.publish("t", 1, "three")
		b.sealBy(owner, c, s.GetId())
		if _, err := b.report(c, s.GetId(), layout.Failover, follower); err != nil {
			b.t.Fatal(err)
		}
		if s = b.live("t", 1)[0]; s.GetOwnerAddress() == owner+":7310" || len(s.GetReplicas()) > 0 {
			b.t.Errorf("after its owner was lost: %v", s)
		}
		b.check("t")
	})
}

// A split by hand goes by the measured load.
func TestSplitByHandHalvesTheLoad(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 6, "one")
		b.rush(5*time.Second, map[catalog.Config]map[int32]float64{c: {6: 1e3, 7: 1e3}})
		if _, err := b.leader.SplitSegment(b.t.Context(), &smqpb.SplitSegmentRequest{Topic: "t", Segment: b.live("t", 1)[0].GetId()}); err != nil {
			b.t.Fatal(err)
		}
		if s := b.live("t", 2)[1]; s.GetLo() != 7 {
			b.t.Errorf("the second half is %v", s)
		}
	})
}
