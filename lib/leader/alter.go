package leader

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// AlterTopic changes what may change in a topic's configuration: its scaling, and
// how many replicas its segments to come have. It can be repeated.
func (l *Leader) AlterTopic(ctx context.Context, req *smqpb.AlterTopicRequest) (*smqpb.AlterTopicResponse, error) {
	t, err := l.requested(ctx, req.GetTopic(), req.GetTopicId())
	if err != nil {
		return nil, err
	}
	alter, err := alteration(req)
	if err == nil {
		err = l.alter(ctx, t, alter)
	}
	if err != nil {
		return nil, err
	}
	return &smqpb.AlterTopicResponse{Config: t.config().Proto()}, nil
}

// alter changes the configuration in the store, one alteration of the topic at a
// time, and then takes over what is there.
func (l *Leader) alter(ctx context.Context, t *topic, alteration func(catalog.Config) catalog.Config) error {
	select {
	case t.altering <- struct{}{}:
		defer func() { <-t.altering }()
	case <-ctx.Done():
		return fmt.Errorf("another alteration is under way: %w: %w", smq.ErrTimeout, ctx.Err())
	}
	for wait := (background.Backoff{}); ; {
		e, err := catalog.Read(ctx, l.Store, t.Topic)
		if err != nil {
			return err
		}
		if e.Deleted || e.ID != t.ID {
			return t.gone()
		}
		c := alteration(e.Config)
		if c != e.Config {
			err = catalog.Alter(ctx, l.Store, e, c)
		}
		switch {
		case err == nil:
			t.setConfig(c)
			l.hub.publish(t, nil)
			l.Logger.Info("topic altered", "topic", t.Topic.String(), "scaling", c.Scaling, "replicas", c.Replicas)
			return nil
		case !errors.Is(err, smq.ErrConflict) || wait.Next(ctx) != nil:
			return err
		}
	}
}

func (t *topic) setConfig(c catalog.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = c
}

// alteration is what the request does to a configuration.
func alteration(req *smqpb.AlterTopicRequest) (func(catalog.Config) catalog.Config, error) {
	scaling, err := catalog.ParseScaling(req.GetScaling())
	if err != nil {
		return nil, err
	}
	for _, field := range req.GetReset_() {
		if err := reset(new(catalog.Config), field); err != nil {
			return nil, err
		}
	}
	return func(c catalog.Config) catalog.Config {
		for _, field := range req.GetReset_() {
			_ = reset(&c, field) // it has been tried
		}
		bounds := c.Scaling
		c.Scaling = scaling.WithDefaults(bounds)
		// Bounds that do not fit together are refused, not adapted.
		if scaling.MinSegments == 0 {
			c.Scaling.MinSegments = bounds.MinSegments
		}
		if scaling.MaxSegments == 0 {
			c.Scaling.MaxSegments = bounds.MaxSegments
		}
		if req.GetReplicas() != 0 {
			c.Replicas = req.GetReplicas()
		}
		return c
	}, nil
}

// reset sets a field of the configuration, as AlterTopicRequest names it, back to
// the default.
func reset(c *catalog.Config, field string) error {
	p := &c.Scaling
	switch field {
	case "replicas":
		c.Replicas = 0
	case "mode":
		p.Mode = ""
	case "split_bytes_per_second":
		p.Split.Bytes = 0
	case "split_messages_per_second":
		p.Split.Messages = 0
	case "min_segments":
		p.MinSegments = 0
	case "max_segments":
		p.MaxSegments = 0
	case "cool_down_ms":
		p.CoolDown = 0
	default:
		return fmt.Errorf("%w field to reset, %q", smq.ErrInvalid, field)
	}
	return nil
}
