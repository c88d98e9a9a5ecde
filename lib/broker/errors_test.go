package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// repeated is what an error says twice: the first words of one of its clauses.
func repeated(err error) string {
	seen := make(map[string]bool)
	for clause := range strings.SplitSeq(err.Error(), ": ") {
		words := strings.Fields(clause)
		start := strings.Join(words[:min(len(words), 2)], " ")
		if seen[start] {
			return start
		}
		seen[start] = true
	}
	return ""
}

// What was tried is said by who tried it, and by nobody else on the way.
func TestErrorsSayOnceWhatWasTried(t *testing.T) {
	b := newBed(t, "a")
	c := b.connect(4)
	_, s := b.live(0)
	none := smq.Topic{Namespace: smq.DefaultNamespace, Name: "none"}
	ctx := within(t)
	topic := func(_ any, err error) error { return err }
	for name, test := range map[string]struct{ got, want error }{
		"split nothing":       {topic(c.SplitSegment(ctx, topicT, 99, 0)), smq.ErrNotFound},
		"split of no topic":   {topic(c.SplitSegment(ctx, none, 99, 0)), smq.ErrNotFound},
		"split outside":       {topic(c.SplitSegment(ctx, topicT, s.GetId(), 77)), smq.ErrInvalid},
		"merge one":           {topic(c.MergeSegments(ctx, topicT, []uint64{s.GetId()})), smq.ErrInvalid},
		"create again":        {topic(c.CreateTopic(ctx, topicT, client.TopicOptions{})), smq.ErrExists},
		"create what cannot":  {topic(c.CreateTopic(ctx, none, client.TopicOptions{Replicas: 99})), smq.ErrInvalid},
		"delete nothing":      {c.DeleteTopic(ctx, none), smq.ErrNotFound},
		"alter nothing":       {topic(c.AlterTopic(ctx, none, client.TopicChanges{Replicas: 2})), smq.ErrNotFound},
		"alter into nonsense": {topic(c.AlterTopic(ctx, topicT, client.TopicChanges{Replicas: 99})), smq.ErrInvalid},
		"describe nothing":    {topic(c.DescribeTopic(ctx, none)), smq.ErrNotFound},
		"offsets of nothing":  {topic(c.Offsets(ctx, none, nil, smqpb.OffsetsRequest_END, time.Time{})), smq.ErrNotFound},
		"publish to nothing":  {topic(c.NewPublisher(ctx, none, client.PublisherOptions{})), smq.ErrNotFound},
	} {
		if !errors.Is(test.got, test.want) {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		} else if twice := repeated(test.got); twice != "" {
			t.Errorf("%s: %q says %q twice", name, test.got, twice)
		}
	}
	for _, err := range c.ListTopics(ctx, "no/namespace", client.ListOptions{}) {
		if twice := repeated(err); twice != "" {
			t.Errorf("list: %q says %q twice", err, twice)
		}
	}
	for _, err := range c.Versions(ctx, none) {
		if twice := repeated(err); twice != "" {
			t.Errorf("versions: %q says %q twice", err, twice)
		}
	}
	err := c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		_, err := l.DrainBroker(ctx, &smqpb.DrainBrokerRequest{Broker: "nobody"})
		return err
	})
	if !errors.Is(err, smq.ErrNotFound) || strings.Contains(err.Error(), "drain") {
		t.Errorf("drain of nobody, where the caller says that it drains: %v", err)
	}
}
