package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// TopicOptions are what a topic is created with.
type TopicOptions struct {
	Partitions int32  // 0: smq.DefaultPartitions
	Replicas   int32  // brokers that hold what is not stored yet; 0: the default
	Key        string // where a message's partition key is, see record.ParseKeySource; empty: key
	// Scaling is when its segments split and merge; what is 0 or empty, or nil,
	// is the cluster's default. AlterTopic changes it.
	Scaling *smqpb.Scaling
}

// CreateTopic creates a topic. smq.ErrExists when there is one of this name.
// When an answer was lost on the way and the topic is there at the next attempt,
// just as asked for, it counts as created.
func (c *Client) CreateTopic(ctx context.Context, topic smq.Topic, o TopicOptions) (*smqpb.TopicConfig, error) {
	if o.Partitions < 0 || o.Partitions > smq.MaxPartitions {
		return nil, fmt.Errorf("create topic %s: %w number of partitions %d: use 1 to %d", topic, smq.ErrInvalid, o.Partitions, smq.MaxPartitions)
	}
	if o.Partitions == 0 {
		o.Partitions = smq.DefaultPartitions
	}
	keys, err := parseKeySource(o.Key)
	if err != nil {
		return nil, fmt.Errorf("create topic %s: %w", topic, err)
	}
	var config *smqpb.TopicConfig
	tries := 0
	err = c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		tries++
		resp, err := l.CreateTopic(ctx, &smqpb.CreateTopicRequest{Topic: topic.String(), Partitions: o.Partitions, Key: keys.String(), Replicas: o.Replicas, Scaling: o.Scaling})
		config = resp.GetConfig()
		if tries > 1 && errors.Is(err, smq.ErrExists) {
			config, err = createdBefore(ctx, l, topic, o.Partitions, keys, err)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create topic %s: %w", topic, err)
	}
	return config, nil
}

// createdBefore returns the configuration of a topic that is there although it
// was to be created, if it is as asked for; otherwise exists.
func createdBefore(ctx context.Context, l smqpb.LeaderClient, topic smq.Topic, partitions int32, keys record.KeySource, exists error) (*smqpb.TopicConfig, error) {
	resp, err := l.DescribeTopic(ctx, &smqpb.DescribeTopicRequest{Topic: topic.String()})
	if err != nil {
		return nil, err
	}
	found, err := parseKeySource(resp.GetConfig().GetKey())
	if err != nil || found != keys || resp.GetConfig().GetPartitions() != partitions {
		return nil, exists
	}
	return resp.GetConfig(), nil
}

// parseKeySource reads the key source of a topic's configuration.
func parseKeySource(s string) (record.KeySource, error) {
	if s == "" {
		return record.KeySource{}, nil
	}
	return record.ParseKeySource(s)
}

// DeleteTopic deletes a topic with everything in it. smq.ErrNotFound when there
// is none of this name.
func (c *Client) DeleteTopic(ctx context.Context, topic smq.Topic) error {
	described, err := c.describe(ctx, topic)
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	// By its id, so that a repeat never deletes a topic created meanwhile.
	req := &smqpb.DeleteTopicRequest{Topic: topic.String(), TopicId: described.GetConfig().GetTopicId()}
	tries := 0
	err = c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		tries++
		_, err := l.DeleteTopic(ctx, req)
		if tries > 1 && errors.Is(err, smq.ErrNotFound) {
			return nil // the answer of an earlier try was lost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return nil
}

// DescribeTopic tells a topic's configuration and layout. smq.ErrNotFound when
// there is none of this name.
func (c *Client) DescribeTopic(ctx context.Context, topic smq.Topic) (*smqpb.DescribeTopicResponse, error) {
	resp, err := c.describe(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("describe topic %s: %w", topic, err)
	}
	return resp, nil
}

// describe is DescribeTopic as a step of something else.
func (c *Client) describe(ctx context.Context, topic smq.Topic) (*smqpb.DescribeTopicResponse, error) {
	var resp *smqpb.DescribeTopicResponse
	err := c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) (err error) {
		resp, err = l.DescribeTopic(ctx, &smqpb.DescribeTopicRequest{Topic: topic.String()})
		return err
	})
	return resp, err
}

// ListOptions say what ListTopics asks for.
type ListOptions struct {
	// NamesOnly leaves everything but the topics' names out, which is much
	// cheaper where there are many.
	NamesOnly bool
}

// ListTopics goes through the topics of a namespace, of all of them when it is
// empty, by name. It asks for them page by page. An error that comes with a topic
// is about that one alone, of which a file is damaged, so that no more may be
// known of it than its name; others follow. Any other error ends it.
func (c *Client) ListTopics(ctx context.Context, namespace string, o ListOptions) iter.Seq2[*smqpb.TopicSummary, error] {
	return func(yield func(*smqpb.TopicSummary, error) bool) {
		req := &smqpb.ListTopicsRequest{Namespace: namespace, NamesOnly: o.NamesOnly}
		for {
			resp, err := c.listPage(ctx, req)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, summary := range resp.GetTopics() {
				if !yield(summary, rpc.FromErrorInfo(summary.GetError())) {
					return
				}
			}
			if !resp.GetMore() || len(resp.GetTopics()) == 0 {
				return
			}
			req.After = resp.GetTopics()[len(resp.GetTopics())-1].GetConfig().GetTopic()
		}
	}
}

func (c *Client) listPage(ctx context.Context, req *smqpb.ListTopicsRequest) (*smqpb.ListTopicsResponse, error) {
	var resp *smqpb.ListTopicsResponse
	err := c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) (err error) {
		resp, err = l.ListTopics(ctx, req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	return resp, nil
}
