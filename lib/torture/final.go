package torture

import (
	"context"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// Verified is what is stored, as catalog.Verify reads it with no broker.
type Verified struct {
	Segments int    `json:"segments"`
	Chunks   uint64 `json:"chunks"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// Changes are the layout versions, by cause.
	Changes map[string]int `json:"changes"`
}

// readBack reads everything from the cluster, which is whole again. It notes
// every partition's end, and why it was not reached if it was not, for which it
// has until ctx ends.
func readBack(ctx context.Context, rec *recorder, c *client.Client, topic smq.Topic, partitions int32) {
	left := make(map[int32]int64) // ends that are not reached
	for p := range partitions {
		left[p] = 0
	}
	err := readTopic(ctx, rec, c, topic, left)
	for p, end := range left {
		e := check.Event{Kind: check.End, Topic: topic.String(), Partition: p, Offset: end}
		if err != nil {
			e.Text = err.Error()
		}
		rec.add(e)
	}
}

// readTopic reads a topic, and takes those partitions out of left that it has
// read to their ends.
func readTopic(ctx context.Context, rec *recorder, c *client.Client, topic smq.Topic, left map[int32]int64) error {
	ends, err := c.Offsets(ctx, topic, nil, smqpb.OffsetsRequest_END, time.Time{})
	if err != nil {
		return err
	}
	r := reader{name: check.Final, recorder: rec, topic: topic, partitions: int32(len(ends)), positions: make([]int64, len(ends))}
	s, err := c.NewSubscriber(ctx, topic, client.SubscriberOptions{Start: client.Earliest()})
	if err != nil {
		return err
	}
	defer s.Close() // only read
	for _, e := range ends {
		left[e.Partition] = e.Offset
		r.position(e.Partition, 0)
	}
	for {
		for p, end := range left {
			if r.positions[p] >= end {
				rec.add(check.Event{Kind: check.End, Topic: topic.String(), Partition: p, Offset: end})
				delete(left, p)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if err := r.poll(ctx, s); err != nil {
			return fmt.Errorf("read topic %s: %w", topic, err)
		}
	}
}

// verify reads what is stored of a topic, and notes what is wrong with it, and
// which seals are unclean. part tells the name of a broker by its address.
func verify(ctx context.Context, rec *recorder, st store.Store, topic smq.Topic, part func(address string) string) (Verified, error) {
	v, err := catalog.Verify(ctx, st, topic, func(seglog.Report) {})
	if err != nil {
		return Verified{}, fmt.Errorf("verify topic %s: %w", topic, err)
	}
	for _, problem := range v.Problems {
		rec.add(check.Event{Kind: check.Damage, Topic: topic.String(), Text: problem})
	}
	changes, err := noteLayouts(ctx, rec, st, v.Config, part)
	if err != nil {
		return Verified{}, err
	}
	return Verified{Segments: v.Segments, Chunks: v.Chunks, Messages: v.Messages, Bytes: v.Bytes, Changes: changes}, nil
}

// noteLayouts notes the topic's unclean seals, with the lives and the replicas of
// their segments, as the layout versions tell them, and counts these by cause.
func noteLayouts(ctx context.Context, rec *recorder, st store.Store, c catalog.Config, part func(address string) string) (map[string]int, error) {
	changes := make(map[string]int)
	h, err := catalog.Extend(ctx, st, c.Topic, c.ID, layout.History{})
	if err != nil {
		return nil, fmt.Errorf("read the layouts of topic %s: %w", c.Topic, err)
	}
	type life struct {
		layout.Segment
		since int64
	}
	live := make(map[smq.SegmentID]life)
	for v := uint64(1); v <= h.Last.Version; v++ {
		l, err := catalog.ReadVersion(ctx, st, c.Topic, c.ID, v)
		if err != nil {
			return nil, err
		}
		changes[string(l.Cause)]++
		at := rec.at(time.UnixMilli(l.Stamp.NowMS))
		for _, sealed := range l.Sealed {
			if s, ok := live[sealed.Segment]; ok && sealed.Unclean {
				addUnclean(rec, c.Topic, s.Segment, s.since, at, part)
			}
		}
		for _, s := range l.Segments {
			if _, known := live[s.ID]; !known {
				live[s.ID] = life{s, at}
			}
		}
	}
	return changes, nil
}

func addUnclean(rec *recorder, topic smq.Topic, s layout.Segment, from, until int64, part func(address string) string) {
	e := check.Event{Kind: check.Unclean, Topic: topic.String(), Called: from, Until: until, Parts: []string{part(s.Owner.Address)}}
	for _, f := range s.Followers {
		e.Parts = append(e.Parts, part(f.Address))
	}
	for p := s.Range.Lo; p < s.Range.Hi; p++ {
		e.Partition = p
		rec.add(e)
	}
}
