package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// TopicChanges are what AlterTopic changes.
type TopicChanges struct {
	Scaling  *smqpb.Scaling // fields that are 0 or empty stay as they are
	Reset    []string       // fields of smqpb.Scaling, by their names there, to set back to the cluster's default
	Replicas int32          // of segments to come; 0: as they are
}

// AlterTopic changes what may change in a topic's configuration, and returns it
// as it is then. smq.ErrNotFound when there is no topic of this name,
// smq.ErrInvalid for what does not fit together.
func (c *Client) AlterTopic(ctx context.Context, topic smq.Topic, changes TopicChanges) (*smqpb.TopicConfig, error) {
	var config *smqpb.TopicConfig
	err := c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		resp, err := l.AlterTopic(ctx, &smqpb.AlterTopicRequest{
			Topic: topic.String(), Scaling: changes.Scaling, Reset_: changes.Reset, Replicas: changes.Replicas,
		})
		config = resp.GetConfig()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("alter topic %s: %w", topic, err)
	}
	return config, nil
}

// SplitSegment replaces a live segment of a topic by two, the second of which
// begins with partition at; 0: where the measured load halves. It returns the
// layout that has the successors. smq.ErrNotFound when there is no such topic
// or live segment, smq.ErrConflict when the segment is being changed.
//
// When the answer was lost on the way and the split was made, it counts as made.
func (c *Client) SplitSegment(ctx context.Context, topic smq.Topic, segment uint64, at int32) (*smqpb.Layout, error) {
	l, err := c.changeLayout(ctx, topic, "split", []uint64{segment},
		func(ctx context.Context, l smqpb.LeaderClient, topicID string) (*smqpb.Layout, error) {
			resp, err := l.SplitSegment(ctx, &smqpb.SplitSegmentRequest{Topic: topic.String(), TopicId: topicID, Segment: segment, At: at})
			return resp.GetLayout(), err
		})
	if err != nil {
		return nil, fmt.Errorf("split segment %d of topic %s: %w", segment, topic, err)
	}
	return l, nil
}

// MergeSegments replaces live segments of a topic, neighbours, by one. Answer
// and errors are as for SplitSegment; smq.ErrInvalid when they are no
// neighbours.
func (c *Client) MergeSegments(ctx context.Context, topic smq.Topic, segments []uint64) (*smqpb.Layout, error) {
	l, err := c.changeLayout(ctx, topic, "merge", segments,
		func(ctx context.Context, l smqpb.LeaderClient, topicID string) (*smqpb.Layout, error) {
			resp, err := l.MergeSegments(ctx, &smqpb.MergeSegmentsRequest{Topic: topic.String(), TopicId: topicID, Segments: segments})
			return resp.GetLayout(), err
		})
	if err != nil {
		return nil, fmt.Errorf("merge segments %d of topic %s: %w", segments, topic, err)
	}
	return l, nil
}

// changeLayout has the leader replace segments of a topic, as it is at first:
// what is created under its name meanwhile is left alone.
func (c *Client) changeLayout(ctx context.Context, topic smq.Topic, cause string, segments []uint64,
	call func(ctx context.Context, l smqpb.LeaderClient, topicID string) (*smqpb.Layout, error),
) (*smqpb.Layout, error) {
	before, err := c.describe(ctx, topic)
	if err != nil {
		return nil, err
	}
	var layout *smqpb.Layout
	tries := 0
	err = c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) (err error) {
		tries++
		layout, err = call(ctx, l, before.GetConfig().GetTopicId())
		if tries > 1 && isAny(err, smq.ErrNotFound, smq.ErrConflict) {
			layout, err = changedBefore(ctx, l, before, cause, segments, err)
		}
		return err
	})
	return layout, err
}

// changedBefore looks for the version, later than one known, in which the
// segments were replaced by an earlier try; refused is returned if there is
// none.
func changedBefore(ctx context.Context, l smqpb.LeaderClient, before *smqpb.DescribeTopicResponse, cause string, segments []uint64, refused error) (*smqpb.Layout, error) {
	req := &smqpb.ListVersionsRequest{
		Topic: before.GetConfig().GetTopic(), TopicId: before.GetConfig().GetTopicId(), After: before.GetLayout().GetVersion(),
	}
	for {
		resp, err := l.ListVersions(ctx, req)
		switch {
		case errors.Is(err, smq.ErrNotFound):
			return nil, refused
		case err != nil:
			return nil, err
		}
		for _, v := range resp.GetVersions() {
			if v.GetCause() == cause && sealsAll(v, segments) {
				return v, nil
			}
			req.After = v.GetVersion()
		}
		if !resp.GetMore() || len(resp.GetVersions()) == 0 {
			return nil, refused
		}
	}
}

func sealsAll(v *smqpb.Layout, segments []uint64) bool {
	for _, id := range segments {
		if !slices.ContainsFunc(v.GetSealed(), func(s *smqpb.SealedSegment) bool { return s.GetId() == id }) {
			return false
		}
	}
	return true
}

// Versions goes through the versions of a topic's layout, oldest first. It asks
// for them page by page. An error that comes with a version, of which no more is
// known than its number then, is about that one alone, which is damaged; others
// follow. Any other error ends it: smq.ErrNotFound when there is no topic of this
// name, or when another one has taken its place meanwhile.
func (c *Client) Versions(ctx context.Context, topic smq.Topic) iter.Seq2[*smqpb.Layout, error] {
	return func(yield func(*smqpb.Layout, error) bool) {
		req := &smqpb.ListVersionsRequest{Topic: topic.String()}
		for {
			resp, err := c.versionsPage(ctx, req)
			if err != nil {
				yield(nil, fmt.Errorf("list layout versions of topic %s: %w", topic, err))
				return
			}
			before := req.After
			for v, err := range inOrder(resp) {
				if !yield(v, err) {
					return
				}
				req.After = v.GetVersion()
			}
			if !resp.GetMore() || req.After == before {
				return
			}
			req.TopicId = resp.GetConfig().GetTopicId()
		}
	}
}

// inOrder goes through a page of versions, the damaged ones in their places.
func inOrder(page *smqpb.ListVersionsResponse) iter.Seq2[*smqpb.Layout, error] {
	return func(yield func(*smqpb.Layout, error) bool) {
		damaged := page.GetDamaged()
		next := func(below uint64) bool {
			for len(damaged) > 0 && damaged[0].GetVersion() < below {
				d := damaged[0]
				damaged = damaged[1:]
				if !yield(&smqpb.Layout{Version: d.GetVersion()}, rpc.FromErrorInfo(d.GetError())) {
					return false
				}
			}
			return true
		}
		for _, v := range page.GetVersions() {
			if !next(v.GetVersion()) || !yield(v, nil) {
				return
			}
		}
		next(math.MaxUint64)

	}
}

func (c *Client) versionsPage(ctx context.Context, req *smqpb.ListVersionsRequest) (*smqpb.ListVersionsResponse, error) {
	var resp *smqpb.ListVersionsResponse
	err := c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) (err error) {
		resp, err = l.ListVersions(ctx, req)
		return err
	})
	return resp, err
}
