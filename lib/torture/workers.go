package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/client"
)

// The use of the topic that is checked for linearizability is bounded, because
// the check takes more than linear time: so many messages at most are published
// to it in a run, and at most so many a second.
const (
	linearMessages = 10_000
	linearRate     = 20
	linearAskers   = 2
)

// workers are those who use the cluster, each a client of its own.
func (r *run) workers(ctx context.Context) (publishers []*publisher, others []worker, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Settle)
	defer cancel()
	number := 0
	for _, t := range r.topics {
		for range r.Publishers {
			number++
			w, err := r.newPublisher(ctx, t, number)
			if err != nil {
				return nil, nil, err
			}
			publishers = append(publishers, w)
		}
	}
	for _, t := range r.topics {
		for i := range r.Readers {
			w, err := r.newReader(ctx, t, i)
			if err != nil {
				return nil, nil, err
			}
			others = append(others, w)
		}
		if !t.linear {
			continue
		}
		for i := range linearAskers {
			w, err := r.newAsker(ctx, t, i)
			if err != nil {
				return nil, nil, err
			}
			others = append(others, w)
		}
	}
	if r.ScaleEvery > 0 {
		w, err := r.newScaler(ctx)
		if err != nil {
			return nil, nil, err
		}
		others = append(others, w)
	}
	return publishers, others, nil
}

func (r *run) newScaler(ctx context.Context) (*scaler, error) {
	c, err := r.connect(ctx, "scaler")
	if err != nil {
		return nil, err
	}
	return &scaler{client: c, topics: r.topics, random: r.random(3000), every: r.ScaleEvery, detail: r.detail}, nil
}

func (r *run) newPublisher(ctx context.Context, t topicPlan, number int) (*publisher, error) {
	name := fmt.Sprintf("publisher-%d", number)
	c, err := r.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	acks := r.Acks[number%len(r.Acks)]
	p := &publisher{
		name: name, recorder: r.recorder, client: c, topic: t.topic, partitions: r.Partitions,
		options: variety(number/len(r.Acks), acks), keyed: number%3 != 0,
		rate: r.Rate / float64(r.Topics*r.Publishers), random: r.random(number), settle: r.Settle,
	}
	if t.linear {
		p.keyed, p.explicit = false, true
		p.options.Linger = client.NoLinger
		p.rate = r.linearRate() / float64(r.Publishers)
	}
	return p, nil
}

// linearRate is how many messages a second go to the topic that is checked for
// linearizability.
func (r *run) linearRate() float64 {
	return min(linearRate, linearMessages/max(r.Duration.Seconds(), 1))
}

func (r *run) newReader(ctx context.Context, t topicPlan, i int) (*reader, error) {
	name := fmt.Sprintf("reader-%s-%d", t.topic.Name, i+1)
	c, err := r.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	return &reader{name: name, recorder: r.recorder, client: c, topic: t.topic, partitions: r.Partitions, random: r.random(1000 + len(r.clients))}, nil
}

func (r *run) newAsker(ctx context.Context, t topicPlan, i int) (*asker, error) {
	name := fmt.Sprintf("asker-%d", i+1)
	c, err := r.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	every := time.Duration(linearAskers * float64(time.Second) / r.linearRate())
	return &asker{
		name: name, recorder: r.recorder, client: c, topic: t.topic, partitions: r.Partitions,
		random: r.random(2000 + i), every: every,
	}, nil
}
