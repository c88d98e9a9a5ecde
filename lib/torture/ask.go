package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// asker asks for the ends of a topic's partitions, and for the messages before
// them.
type asker struct {
	name       string
	recorder   *recorder
	client     *client.Client
	topic      smq.Topic
	partitions int32
	random     *rand.Rand
	every      time.Duration // on average
}

// askTimeout bounds one question. That there was no answer says nothing.
const askTimeout = 15 * time.Second

// run asks until ctx ends.
func (a *asker) run(ctx context.Context) {
	for pause(ctx, between(a.random, 0, 2*a.every)) == nil {
		p := a.random.Int32N(a.partitions)
		if a.random.IntN(2) == 0 {
			a.askEnd(ctx, p)
		} else {
			a.askLast(ctx, p)
		}
	}
}

// askEnd asks for a partition's end.
func (a *asker) askEnd(ctx context.Context, partition int32) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	called := a.recorder.now()
	ends, err := a.client.Offsets(ctx, a.topic, []int32{partition}, smqpb.OffsetsRequest_END, time.Time{})
	if err == nil && len(ends) == 1 {
		a.recorder.add(a.answer(called, partition, ends[0].Offset))
	}
}

func (a *asker) answer(called int64, partition int32, end int64) check.Event {
	return check.Event{Kind: check.Tail, Who: a.name, Called: called, Topic: a.topic.String(), Partition: partition, Offset: end}
}

// askLast reads a partition's last message. The end was where it lies at some
// time before the answer, since that came after the question where to start.
func (a *asker) askLast(ctx context.Context, partition int32) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	called := a.recorder.now()
	s, err := a.client.NewSubscriber(ctx, a.topic, client.SubscriberOptions{Partitions: []int32{partition}, Start: client.Last(1)})
	if err != nil {
		return
	}
	defer s.Close() // only read
	fetch, err := s.Poll(ctx)
	var failed *client.PartitionError
	if errors.As(err, &failed) {
		a.recorder.add(notReadable(a.name, a.topic, failed))
	}
	if err != nil {
		return
	}
	rec, ok := fetch.Next()
	if !ok {
		// There was no message to start with, or it is damaged, which the
		// readers find too.
		return
	}
	if m, err := decodeMessage(rec.Value, rec.Key); err == nil {
		e := a.answer(called, partition, rec.Offset+1)
		e.Messages = []check.Message{m}
		a.recorder.add(e)
	}
}
