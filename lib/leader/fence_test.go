package leader_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc"

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
	b.kill(owner)
	if _, err := l.Lookup(t.Context(), req); !errors.Is(err, smq.ErrUnavailable) || errors.Is(err, smq.ErrNotFound) {
		t.Errorf("a lookup while no follower can seal: %v", err)
	}
}
