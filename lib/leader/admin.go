package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// CreateTopic creates a topic. smq.ErrExists when there is one of the name,
// also when an earlier attempt of the caller made it.
func (l *Leader) CreateTopic(ctx context.Context, req *smqpb.CreateTopicRequest) (*smqpb.CreateTopicResponse, error) {
	if err := l.leading(); err != nil {
		return nil, err
	}
	c, err := newConfig(req)
	if err != nil {
		return nil, err
	}
	if err := catalog.Create(ctx, l.Store, c); err != nil {
		return nil, err
	}
	l.Logger.Info("topic created", "topic", c.Topic.String(), "id", c.ID, "partitions", c.Partitions)
	// The topic exists from now on. Whoever asks for it next makes the layout
	// should this fail.
	if _, err := l.topic(ctx, c.Topic, c.ID); err != nil {
		l.Logger.Warn("a new topic's layout is not written yet", "topic", c.Topic.String(), "err", err)
	}
	return &smqpb.CreateTopicResponse{Config: c.Proto()}, nil
}

func newConfig(req *smqpb.CreateTopicRequest) (catalog.Config, error) {
	name, err := smq.ParseTopic(req.GetTopic())
	if err != nil {
		return catalog.Config{}, err
	}
	c := catalog.Config{Topic: name, ID: smq.NewTopicID(), Partitions: req.GetPartitions(), Replicas: req.GetReplicas(), CreatedMS: time.Now().UnixMilli()}
	if c.Partitions == 0 {
		c.Partitions = smq.DefaultPartitions
	}
	if req.GetKey() != "" {
		if c.Key, err = record.ParseKeySource(req.GetKey()); err != nil {
			return catalog.Config{}, err
		}
	}
	if c.Scaling, err = catalog.ParseScaling(req.GetScaling()); err != nil {
		return catalog.Config{}, err
	}
	return c, c.Validate()
}

// DeleteTopic deletes a topic: from the moment that its configuration says so
// it is gone, and its name free. What it has stored is removed before the
// answer; should that fail, the same request with the topic's id, or the next
// sweep, goes on with it.
func (l *Leader) DeleteTopic(ctx context.Context, req *smqpb.DeleteTopicRequest) (*smqpb.DeleteTopicResponse, error) {
	if err := l.leading(); err != nil {
		return nil, err
	}
	name, err := smq.ParseTopic(req.GetTopic())
	if err != nil {
		return nil, err
	}
	c, err := l.markDeleted(ctx, name, smq.TopicID(req.GetTopicId()))
	if err != nil {
		return nil, err
	}
	err = l.once(ctx, "clean up "+string(c.ID), func(ctx context.Context) error { return l.cleanUp(ctx, c) })
	if err != nil {
		return nil, fmt.Errorf("it is deleted, but not all it has stored is removed: %w", err)
	}
	return &smqpb.DeleteTopicResponse{}, nil
}

// markDeleted writes that the topic is deleted, unless that is written already
// of the incarnation meant.
func (l *Leader) markDeleted(ctx context.Context, name smq.Topic, id smq.TopicID) (catalog.Config, error) {
	for wait := (background.Backoff{}); ; {
		e, err := catalog.Read(ctx, l.Store, name)
		switch {
		case err != nil:
			return catalog.Config{}, err
		case id != "" && e.ID != id, e.Deleted && id == "":
			return catalog.Config{}, fmt.Errorf("topic %v: %w", name, smq.ErrNotFound)
		case e.Deleted:
			return e.Config, nil
		}
		err = catalog.Delete(ctx, l.Store, e, time.Now().UnixMilli())
		if err == nil {
			l.Logger.Info("topic deleted", "topic", name.String(), "id", e.ID)
			return e.Config, nil
		}
		if !errors.Is(err, smq.ErrConflict) || wait.Next(ctx) != nil {
			return catalog.Config{}, err
		}
	}
}

// cleanUp removes all that a deleted topic has stored. It can be repeated from
// any point.
func (l *Leader) cleanUp(ctx context.Context, c catalog.Config) error {
	if err := l.forget(ctx, c.Topic, c.ID); err != nil {
		return err
	}
	if err := l.retire(ctx, c); err != nil {
		return err
	}
	return catalog.RemoveIncarnation(ctx, l.Store, c.Topic, c.ID)
}

// DescribeTopic returns the topic's configuration and layout.
func (l *Leader) DescribeTopic(ctx context.Context, req *smqpb.DescribeTopicRequest) (*smqpb.DescribeTopicResponse, error) {
	t, err := l.requested(ctx, req.GetTopic(), "")
	if err != nil {
		return nil, err
	}
	return &smqpb.DescribeTopicResponse{Config: t.config().Proto(), Layout: layout.ToProto(t.layout())}, nil
}

// DrainBroker has a broker hand over its segments and leave, and says how far
// it is. smq.ErrNotFound when no such broker lives.
func (l *Leader) DrainBroker(ctx context.Context, req *smqpb.DrainBrokerRequest) (*smqpb.DrainBrokerResponse, error) {
	if err := l.leading(); err != nil {
		return nil, err
	}
	b, ok := l.view.get(smq.BrokerID(req.GetBroker()))
	if !ok || b.Dead {
		return nil, smq.ErrNotFound
	}
	out := &smqpb.DrainBrokerResponse{}
	err := l.ask(ctx, b.Address, func(ctx context.Context, peer smqpb.BrokerClient) error {
		resp, err := peer.Drain(ctx, &smqpb.DrainRequest{})
		out.Done, out.SegmentsLeft = resp.GetDone(), resp.GetSegmentsLeft()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask it at %s: %w", b.Address, err)
	}
	return out, nil
}

// each runs f for every item, side by side in bounded number, and returns the
// first error.
func each[T any](ctx context.Context, items []T, f func(ctx context.Context, i int, item T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, item := range items {
		group.Go(func() error { return f(ctx, i, item) })
	}
	return group.Wait()
}
