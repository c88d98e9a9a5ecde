package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func (m fakeMaster) Cluster(context.Context, *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	c := m.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	info := &smqpb.ClusterInfo{LeadingMaster: "master:7300", Leader: &smqpb.LeaderInfo{}}
	for _, b := range c.brokers {
		if c.lives(b) {
			info.Brokers = append(info.Brokers, &smqpb.BrokerInfo{Id: b.addr, Address: b.addr})
		}
	}
	if len(info.Brokers) > 0 && !c.noLeader {
		info.Leader.Address = info.Brokers[c.leader%len(info.Brokers)].Address
	}
	return info, nil
}

// lead answers only when this broker leads. The lock is held.
func (b *fakeBroker) lead() error {
	var alive []*fakeBroker
	for _, other := range b.cluster.brokers {
		if b.cluster.lives(other) {
			alive = append(alive, other)
		}
	}
	if len(alive) == 0 || b.cluster.noLeader {
		return smq.ErrUnavailable
	}
	if leader := alive[b.cluster.leader%len(alive)]; leader != b {
		return &rpc.NotLeaderError{Address: leader.addr}
	}
	return nil
}

func (b *fakeBroker) known(topic, id string) error {
	c := b.cluster
	if c.deleted || topic != c.config.Topic || id != "" && id != c.config.TopicId {
		return fmt.Errorf("topic %s: %w", topic, smq.ErrNotFound)
	}
	return nil
}

func (b *fakeBroker) Lookup(ctx context.Context, req *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.lead(); err != nil {
		return nil, err
	}
	if err := b.known(req.Topic, req.TopicId); err != nil {
		return nil, err
	}
	c.lookups = append(c.lookups, req)
	c.wait(ctx, c.slowLookup, func() bool { return false })
	if req.Assign && !c.asItIs {
		c.repair()
	}
	if req.NewerThan > 0 {
		c.wait(ctx, 2*time.Second, func() bool { return c.layout.Version > req.NewerThan })
	}
	return proto.Clone(&smqpb.LookupResponse{Config: c.config, Layout: c.layout}).(*smqpb.LookupResponse), nil
}

// wait waits until something is so, for some time at most. The lock is held, but
// not meanwhile.
func (c *fakeCluster) wait(ctx context.Context, atMost time.Duration, so func() bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for over := false; !over && !so(); {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		c.mu.Lock()
	}
}

func (b *fakeBroker) DescribeTopic(_ context.Context, req *smqpb.DescribeTopicRequest) (*smqpb.DescribeTopicResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.lead(); err != nil {
		return nil, err
	}
	if err := b.known(req.Topic, ""); err != nil {
		return nil, err
	}
	return proto.Clone(&smqpb.DescribeTopicResponse{Config: c.config, Layout: c.layout}).(*smqpb.DescribeTopicResponse), nil
}

func (b *fakeBroker) CreateTopic(_ context.Context, req *smqpb.CreateTopicRequest) (*smqpb.CreateTopicResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.lead(); err != nil {
		return nil, err
	}
	c.creates++
	if !c.deleted && req.Topic == c.config.Topic {
		return nil, fmt.Errorf("topic %s: %w", req.Topic, smq.ErrExists)
	}
	c.deleted = false
	c.config = &smqpb.TopicConfig{Topic: req.Topic, TopicId: fakeTopicID, Partitions: req.Partitions, Key: req.Key}
	if c.lostCreate {
		c.lostCreate = false
		return nil, smq.ErrUnavailable
	}
	return &smqpb.CreateTopicResponse{Config: proto.Clone(c.config).(*smqpb.TopicConfig)}, nil
}

func (b *fakeBroker) DeleteTopic(_ context.Context, req *smqpb.DeleteTopicRequest) (*smqpb.DeleteTopicResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.lead(); err != nil {
		return nil, err
	}
	if err := b.known(req.Topic, req.TopicId); err != nil {
		return nil, err
	}
	c.deleted = true
	for _, s := range c.layout.Segments {
		c.sealed[s.Id] = true
	}
	c.touch()
	return &smqpb.DeleteTopicResponse{}, nil
}

func (b *fakeBroker) ListTopics(_ context.Context, req *smqpb.ListTopicsRequest) (*smqpb.ListTopicsResponse, error) {
	c := b.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := b.lead(); err != nil {
		return nil, err
	}
	resp := &smqpb.ListTopicsResponse{}
	for _, name := range c.names {
		if name <= req.After || req.Namespace != "" && !strings.HasPrefix(name, req.Namespace+"/") {
			continue
		}
		if len(resp.Topics) == 2 {
			resp.More = true
			break
		}
		summary := &smqpb.TopicSummary{Config: &smqpb.TopicConfig{Topic: name}}
		if c.damaged[name] {
			summary.Error = rpc.ErrorInfo(fmt.Errorf("%s: %w", name, smq.ErrCorrupt))
		}
		resp.Topics = append(resp.Topics, summary)
	}
	return resp, nil
}
