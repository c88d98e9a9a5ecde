package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// reader follows one topic, again and again with a new subscriber of the client
// library, and goes back now and then.
type reader struct {
	name       string
	recorder   *recorder
	client     *client.Client
	topic      smq.Topic
	partitions int32
	random     *rand.Rand
	positions  []int64 // by partition
}

const (
	shortFollow, longFollow = 2 * time.Second, 15 * time.Second
	openTimeout             = 30 * time.Second
	farthestBack            = 2000 // messages
)

// run reads until ctx ends.
func (r *reader) run(ctx context.Context) {
	r.positions = make([]int64, r.partitions)
	for ctx.Err() == nil {
		if err := r.follow(ctx); err != nil && pause(ctx, time.Second) != nil {
			return
		}
	}
}

// follow reads with one subscriber for a while.
func (r *reader) follow(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	o, known := r.start()
	s, err := r.client.NewSubscriber(opening, r.topic, o)
	if err != nil {
		return err
	}
	defer s.Close() // only read
	for p := range r.positions {
		at := int64(-1)
		if known {
			at = r.positions[p]
		}
		r.position(int32(p), at)
	}
	for turns := 1 + r.random.IntN(3); turns > 0 && ctx.Err() == nil; turns-- {
		if err := r.pollFor(ctx, s, between(r.random, shortFollow, longFollow)); err != nil {
			return err
		}
		r.goBack(s)
	}
	return nil
}

// start is where a new subscriber begins, and whether the positions say so:
// mostly where the last one ended.
func (r *reader) start() (o client.SubscriberOptions, known bool) {
	o.Starts = make(map[int32]client.Start)
	switch r.random.IntN(10) {
	case 0:
		o.Start = client.Latest()
		return o, false
	case 1:
		o.Start = client.Last(r.random.Int64N(100))
		return o, false
	case 2:
		o.Start = client.Time(time.Now().Add(-between(r.random, 0, longFollow)))
		return o, false
	}
	for p, at := range r.positions {
		o.Starts[int32(p)] = client.Offset(at)
	}
	return o, true
}

// position notes that the reader goes on from an offset.
func (r *reader) position(partition int32, offset int64) {
	r.recorder.add(check.Event{Kind: check.Position, Who: r.name, Topic: r.topic.String(), Partition: partition, Offset: offset})
	if offset >= 0 {
		r.positions[partition] = offset
	}
}

// seek has the subscriber go on elsewhere.
func (r *reader) seek(s *client.Subscriber, partition int32, offset int64) {
	if s.Seek(partition, offset) == nil {
		r.position(partition, offset)
	}
}

// goBack seeks to an earlier place in some partition.
func (r *reader) goBack(s *client.Subscriber) {
	p := r.random.Int32N(r.partitions)
	r.seek(s, p, max(0, r.positions[p]-r.random.Int64N(farthestBack)))
}

// pollFor polls for a while.
func (r *reader) pollFor(ctx context.Context, s *client.Subscriber, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		err := r.poll(ctx, s)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// poll takes in what the subscriber gives next. The error ends the subscriber.
func (r *reader) poll(ctx context.Context, s *client.Subscriber) error {
	fetch, err := s.Poll(ctx)
	var failed *client.PartitionError
	switch {
	case errors.As(err, &failed):
		r.failed(s, failed)
		return nil
	case err != nil:
		return err
	}
	r.take(fetch)
	if errors.As(fetch.Err(), &failed) {
		r.failed(s, failed)
	}
	return nil
}

// failed notes that a partition cannot be read on, and goes on at its start or
// behind what is broken.
func (r *reader) failed(s *client.Subscriber, failed *client.PartitionError) {
	e := notReadable(r.name, r.topic, failed)
	next := failed.Offset + 1
	if e.Kind == check.Beyond {
		next = 0
	}
	r.recorder.add(e)
	r.seek(s, failed.Partition, next)
}

// notReadable is what somebody notes who cannot read a partition on: something is
// broken there, or nothing is there though it was.
func notReadable(who string, topic smq.Topic, failed *client.PartitionError) check.Event {
	e := check.Event{Kind: check.Broken, Who: who, Topic: topic.String(), Partition: failed.Partition, Offset: failed.Offset, Text: failed.Err.Error()}
	if errors.Is(failed, smq.ErrOffsetOutOfRange) {
		e.Kind = check.Beyond
	}
	return e
}

// take notes what a fetch gives, in runs of consecutive offsets.
func (r *reader) take(fetch *client.Fetch) {
	e := check.Event{Kind: check.Read, Who: r.name, Topic: r.topic.String(), Partition: fetch.Partition}
	for {
		rec, ok := fetch.Next()
		if !ok {
			break
		}
		m, err := r.decode(fetch.Partition, rec)
		if err != nil {
			r.recorder.add(check.Event{
				Kind: check.Broken, Who: r.name, Topic: r.topic.String(), Partition: fetch.Partition, Offset: rec.Offset, Text: err.Error(),
			})
		}
		if len(e.Messages) > 0 && rec.Offset != e.Offset+int64(len(e.Messages)) {
			r.recorder.add(e)
			e.Messages = nil
		}
		if len(e.Messages) == 0 {
			e.Offset = rec.Offset
		}
		e.Messages = append(e.Messages, m)
	}
	if len(e.Messages) > 0 {
		r.recorder.add(e)
		r.positions[fetch.Partition] = e.Offset + int64(len(e.Messages))
	}
}

var errMisplaced = errors.New("its key belongs to another partition")

// decode reads a message and checks that its key belongs there.
func (r *reader) decode(partition int32, rec record.Record) (check.Message, error) {
	m, err := decodeMessage(rec.Value, rec.Key)
	if err == nil && rec.Key != nil && record.Partition(rec.Key, r.partitions) != partition {
		err = errMisplaced
	}
	if err != nil {
		return m, fmt.Errorf("message of %d bytes: %w", len(rec.Value), err)
	}
	return m, nil
}
