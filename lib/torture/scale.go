package torture

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// scaler splits and merges segments by hand, again and again, while topics also
// do so by themselves.
type scaler struct {
	client *client.Client
	topics []topicPlan
	random *rand.Rand
	every  time.Duration // how often, on average
	detail func(format string, args ...any)
}

// changeTimeout bounds a change by hand: its answer is of no interest, for what has
// become of it shows in the layouts.
const changeTimeout = 5 * time.Second

func (s *scaler) run(ctx context.Context) {
	for pause(ctx, between(s.random, s.every/2, s.every*3/2)) == nil {
		topic := s.topics[s.random.IntN(len(s.topics))].topic
		if err := s.change(ctx, topic); err != nil {
			s.detail("topic %s keeps its segments: %v", topic, err)
		}
	}
}

func (s *scaler) change(ctx context.Context, topic smq.Topic) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	d, err := s.client.DescribeTopic(ctx, topic)
	if err != nil {
		return err
	}
	segments := d.GetLayout().GetSegments()
	i := s.random.IntN(len(segments))
	if n := segments[i].GetHi() - segments[i].GetLo(); n > 1 && s.random.IntN(2) == 0 {
		_, err = s.client.SplitSegment(ctx, topic, segments[i].GetId(), s.at(segments[i]))
	} else if n := i + 2 + s.random.IntN(2); n <= len(segments) {
		var ids []uint64
		for _, one := range segments[i:n] {
			ids = append(ids, one.GetId())
		}
		_, err = s.client.MergeSegments(ctx, topic, ids)
	}
	return err
}

// at is where to split a segment; 0 leaves it to its load.
func (s *scaler) at(segment *smqpb.Segment) int32 {
	if n := segment.GetHi() - segment.GetLo(); s.random.IntN(2) == 0 {
		return segment.GetLo() + 1 + s.random.Int32N(n-1)
	}
	return 0
}

// scaling is a policy by which a topic of the run splits and merges all the time,
// as publishers come and go.
func (o Options) scaling() *smqpb.Scaling {
	if o.ScaleEvery == 0 {
		return &smqpb.Scaling{Mode: "off"}
	}
	return &smqpb.Scaling{
		Mode: "auto", SplitMessagesPerSecond: max(1, o.Rate/float64(3*o.Topics)), MaxSegments: o.Partitions,
		CoolDownMs: time.Second.Milliseconds(),
	}
}
