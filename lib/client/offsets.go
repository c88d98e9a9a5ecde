package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// maxQuestions bounds the brokers that are asked for offsets at a time.
const maxQuestions = 8

// PartitionOffset is a position found in a partition.
type PartitionOffset struct {
	Partition int32
	Offset    int64
	Timestamp int64 // of the message there, ms, when asked for by time; -1: there is none
}

// Offsets finds positions in partitions, in all of the topic when there are none
// given: the first message, the end, or the first message at or after a time
// (which counts for the kinds that go by time only). Each partition's owner is
// asked; while one cannot be, this goes on trying until ctx ends. The result is
// sorted by partition.
func (c *Client) Offsets(ctx context.Context, topic smq.Topic, partitions []int32, kind smqpb.OffsetsRequest_Kind, at time.Time) ([]PartitionOffset, error) {
	resp, err := c.lookup(ctx, &smqpb.LookupRequest{Topic: topic.String()})
	if err != nil {
		return nil, fmt.Errorf("offsets: %w", err)
	}
	partitions, err = checkPartitions(resp.GetConfig(), partitions)
	if err != nil {
		return nil, err
	}
	return c.offsets(ctx, resp, partitions, kind, at.UnixMilli())
}

// checkPartitions returns the given partitions, sorted, or all there are.
func checkPartitions(config *smqpb.TopicConfig, partitions []int32) ([]int32, error) {
	n := config.GetPartitions()
	if len(partitions) == 0 {
		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
		}
		return all, nil
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(partitions)))
	if sorted[0] < 0 || sorted[len(sorted)-1] >= n {
		return nil, fmt.Errorf("%w partitions %d to %d: topic %s has 0 to %d", smq.ErrInvalid, sorted[0], sorted[len(sorted)-1], config.GetTopic(), n-1)
	}
	return sorted, nil
}

// offsets is Offsets with a layout at hand and partitions that are checked.
func (c *Client) offsets(ctx context.Context, at *smqpb.LookupResponse, partitions []int32, kind smqpb.OffsetsRequest_Kind, timeMs int64) ([]PartitionOffset, error) {
	q := &question{client: c, topic: at.GetConfig(), layout: at.GetLayout(), left: partitions, kind: kind, timeMs: timeMs}
	var wait time.Duration
	for {
		err := q.ask(ctx)
		if err == nil && len(q.left) == 0 {
			slices.SortFunc(q.found, func(a, b PartitionOffset) int { return cmp.Compare(a.Partition, b.Partition) })
			return q.found, nil
		}
		if !askAgain(err) || ctx.Err() != nil {
			return nil, fmt.Errorf("offsets of topic %s: %w", q.topic.GetTopic(), err)
		}
		wait = min(max(2*wait, minBackoff), maxBackoff)
		if sleep(ctx, wait) != nil {
			return nil, fmt.Errorf("offsets of topic %s: %w: %w", q.topic.GetTopic(), smq.ErrTimeout, err)
		}
		if err := q.refresh(ctx); err != nil {
			return nil, err
		}
	}
}

// askAgain reports whether a later question may be answered.
func askAgain(err error) bool {
	return ownerMoved(err) || isAny(err, smq.ErrUnavailable, smq.ErrTimeout, smq.ErrOverloaded)
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// question is one call of Offsets.
type question struct {
	client *Client
	topic  *smqpb.TopicConfig
	kind   smqpb.OffsetsRequest_Kind
	timeMs int64
	layout *smqpb.Layout

	mu    sync.Mutex
	left  []int32
	stale uint64 // a segment whose owner did not answer
	quiet bool   // some owner gave no sign of life
	found []PartitionOffset
}

// ask asks every owner for what is left, and any broker for what has none. The
// error is one of those that came back, one that will come again if there is one.
func (q *question) ask(ctx context.Context) error {
	groups := make(map[string][]int32)
	segments := make(map[string]uint64)
	i := 0
	for _, s := range slices.SortedFunc(slices.Values(q.layout.GetSegments()), func(a, b *smqpb.Segment) int { return cmp.Compare(a.GetLo(), b.GetLo()) }) {
		for ; i < len(q.left) && q.left[i] < s.GetHi(); i++ {
			groups[s.GetOwnerAddress()] = append(groups[s.GetOwnerAddress()], q.left[i])
			segments[s.GetOwnerAddress()] = s.GetId()
		}
	}
	if i < len(q.left) {
		groups[""] = append(groups[""], q.left[i:]...)
	}
	if lost := groups[""]; len(lost) > 0 {
		addr, err := q.anyBroker(ctx)
		if err != nil {
			return err
		}
		delete(groups, "")
		groups[addr] = append(groups[addr], lost...)
	}
	q.left = nil
	var worst error
	var g errgroup.Group
	g.SetLimit(maxQuestions)
	for addr, partitions := range groups {
		g.Go(func() error {
			err := q.askBroker(ctx, addr, partitions)
			if err != nil {
				q.mu.Lock()
				defer q.mu.Unlock()
				if worst == nil || !askAgain(err) {
					worst = err
				}
				q.left = append(q.left, partitions...)
				q.stale = segments[addr]
				q.quiet = q.quiet || errors.Is(err, errQuiet)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return none
	slices.Sort(q.left)
	return worst
}

// anyBroker is the address of some broker.
func (q *question) anyBroker(ctx context.Context) (string, error) {
	info, err := q.client.Cluster(ctx)
	if err != nil {
		return "", err
	}
	for _, b := range info.GetBrokers() {
		if !b.GetSilent() && !b.GetDraining() {
			return b.GetAddress(), nil
		}
	}
	return "", fmt.Errorf("%w: no broker is there to ask", smq.ErrUnavailable)
}

func (q *question) askBroker(ctx context.Context, addr string, partitions []int32) error {
	b, err := q.client.Broker(ctx, addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer q.client.conns.OnQuiet(addr, func() { cancel(errQuiet) })()
	resp, err := b.Offsets(ctx, &smqpb.OffsetsRequest{
		Topic: q.topic.GetTopic(), TopicId: q.topic.GetTopicId(),
		Partitions: partitions, Kind: q.kind, TimeMs: q.timeMs,
	})
	if err != nil && errors.Is(context.Cause(ctx), errQuiet) {
		err = errQuiet
	}
	if err != nil {
		return fmt.Errorf("broker %s: %w", addr, err)
	}
	if !slices.Equal(resp.GetPartitions(), partitions) || len(resp.GetOffsets()) != len(partitions) {
		return fmt.Errorf("broker %s: %w answer: offsets of %s, asked for %d", addr, smq.ErrInvalid, smq.Count(len(resp.GetOffsets()), "partition"), len(partitions))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, p := range partitions {
		found := PartitionOffset{Partition: p, Offset: resp.GetOffsets()[i], Timestamp: -1}
		if i < len(resp.GetTimestamps()) {
			found.Timestamp = resp.GetTimestamps()[i]
		}
		q.found = append(q.found, found)
	}
	return nil
}

// refresh looks the layout up again, having owners assigned for what is left. If
// one gave no sign of life there may be others soon, which is waited for.
func (q *question) refresh(ctx context.Context) error {
	req := &smqpb.LookupRequest{
		Topic: q.topic.GetTopic(), TopicId: q.topic.GetTopicId(), StaleSegment: q.stale,
		Assign: true, Partitions: q.left[:min(len(q.left), lookupPartitions)],
	}
	if q.quiet {
		req.NewerThan = q.layout.GetVersion()
	}
	resp, err := q.client.lookup(ctx, req)
	if err != nil {
		return err
	}
	q.layout, q.quiet = resp.GetLayout(), false
	return nil
}
