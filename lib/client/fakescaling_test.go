package client

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// fakeScaling is what the fake cluster knows of changes by hand.
type fakeScaling struct {
	versions   []*smqpb.Layout // those that SplitSegment and MergeSegments made
	damaged    map[uint64]bool // of the versions
	altered    *smqpb.AlterTopicRequest
	lostChange bool   // the next change is applied and its answer lost
	lostBefore bool   // the next change is not applied, and nobody says so
	meanwhile  func() // happens then, with the lock held; may be nil
	calls      int
}

// ready begins a change of the topic, with the lock held.
func (b *fakeBroker) ready(topic, id string) error {
	c := b.cluster
	if err := b.lead(); err != nil {
		return err
	}
	c.scaling.calls++
	if c.scaling.lostBefore {
		c.scaling.lostBefore = false
		if c.scaling.meanwhile != nil {
			c.scaling.meanwhile()
		}
		return smq.ErrUnavailable
	}
	return b.known(topic, id)
}

// made notes a change that was made, with the lock held.
func (c *fakeCluster) made(cause string, sealed []*smqpb.Segment) (*smqpb.Layout, error) {
	c.layout.Cause = cause
	v := proto.Clone(c.layout).(*smqpb.Layout)
	for _, s := range sealed {
		v.Sealed = append(v.Sealed, &smqpb.SealedSegment{Id: s.Id, Lo: s.Lo, Hi: s.Hi})
	}
	c.scaling.versions = append(c.scaling.versions, v)
	c.touch()
	if c.scaling.lostChange {
		c.scaling.lostChange = false
		return nil, smq.ErrUnavailable
	}
	return v, nil
}

func (b *fakeBroker) SplitSegment(_ context.Context, req *smqpb.SplitSegmentRequest) (*smqpb.SplitSegmentResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.ready(req.Topic, req.TopicId); err != nil {
		return nil, err
	}
	s := c.segment(req.Segment)
	if s == nil {
		return nil, fmt.Errorf("segment %d: %w", req.Segment, smq.ErrNotFound)
	}
	at := req.At
	if at == 0 {
		at = (s.Lo + s.Hi) / 2
	}
	c.change(func(o *smqpb.Segment) bool { return o.Id == s.Id })
	c.place(s.Lo, at)
	c.place(at, s.Hi)
	layout, err := c.made("split", []*smqpb.Segment{s})
	return &smqpb.SplitSegmentResponse{Layout: layout}, err
}

func (b *fakeBroker) MergeSegments(_ context.Context, req *smqpb.MergeSegmentsRequest) (*smqpb.MergeSegmentsResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.ready(req.Topic, req.TopicId); err != nil {
		return nil, err
	}
	for _, id := range req.Segments {
		if c.segment(id) == nil {
			return nil, fmt.Errorf("segment %d: %w", id, smq.ErrConflict)
		}
	}
	gone := c.change(func(o *smqpb.Segment) bool { return slices.Contains(req.Segments, o.Id) })
	c.place(gone[0].Lo, gone[len(gone)-1].Hi)
	layout, err := c.made("merge", gone)
	return &smqpb.MergeSegmentsResponse{Layout: layout}, err
}

func (b *fakeBroker) ListVersions(_ context.Context, req *smqpb.ListVersionsRequest) (*smqpb.ListVersionsResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.lead(); err != nil {
		return nil, err
	}
	if err := b.known(req.Topic, req.TopicId); err != nil {
		return nil, err
	}
	resp := &smqpb.ListVersionsResponse{Config: proto.Clone(c.config).(*smqpb.TopicConfig)}
	for _, v := range c.scaling.versions {
		if v.Version <= req.After {
			continue
		}
		if len(resp.Versions)+len(resp.Damaged) == 2 {
			resp.More = true
			break
		}
		if c.scaling.damaged[v.Version] {
			resp.Damaged = append(resp.Damaged, &smqpb.DamagedVersion{Version: v.Version, Error: rpc.ErrorInfo(fmt.Errorf("version %d: %w", v.Version, smq.ErrCorrupt))})
			continue
		}
		resp.Versions = append(resp.Versions, v)
	}
	return resp, nil
}

func (b *fakeBroker) AlterTopic(_ context.Context, req *smqpb.AlterTopicRequest) (*smqpb.AlterTopicResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.ready(req.Topic, req.TopicId); err != nil {
		return nil, err
	}
	c.scaling.altered = proto.Clone(req).(*smqpb.AlterTopicRequest)
	config := proto.Clone(c.config).(*smqpb.TopicConfig)
	config.Scaling, config.Replicas = req.Scaling, req.Replicas
	return &smqpb.AlterTopicResponse{Config: config}, nil
}
