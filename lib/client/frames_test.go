package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// batchOf makes a batch of messages whose values are their offsets.
func batchOf(t *testing.T, base int64, n int) []byte {
	t.Helper()
	b := record.NewBuilder(record.None)
	for i := range n {
		if err := b.Append(0, nil, fmt.Append(nil, base+int64(i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	bytes, err := b.Finish(nil, record.NoProducerID, record.NoProducerEpoch, record.NoSequence)
	if err != nil {
		t.Fatal(err)
	}
	record.Patch(bytes, base, 1)
	return bytes
}

// What a broker sends is taken for what it is, not for what it should be.
func TestFramesThatAreWrong(t *testing.T) {
	withCluster(t, 1, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		s := newSubscriber(t, c, SubscriberOptions{})
		defer s.Close()
		synctest.Wait()
		s.mu.Lock()
		feed := s.parts.get(0).feed
		in := s.parts.get(0)
		s.mu.Unlock()
		send := func(ends []*smqpb.PartitionEnd, batches ...[]byte) error {
			head := &smqpb.DeliverHead{Ends: ends}
			for _, b := range batches {
				head.Batches = append(head.Batches, &smqpb.DeliverBatch{Partition: 0, Size: uint32(len(b))})
			}
			return s.received(feed, head, slices.Concat(batches...))
		}
		drain := func() (values []string) {
			t.Helper()
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				fetch, err := s.Poll(ctx)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) {
					return values
				} else if err != nil {
					t.Fatal(err)
				}
				values = append(values, fetched(t, fetch)...)
			}
		}
		drain()
		// Repeats and overlaps are left out.
		if err := send(nil, batchOf(t, 0, 5), batchOf(t, 0, 5), batchOf(t, 3, 4), batchOf(t, 2, 2), batchOf(t, 7, 1)); err != nil {
			t.Fatal(err)
		}
		if got := drain(); !slices.Equal(got, numbers(0, 8)) {
			t.Errorf("got %v", got)
		}
		// A gap ends the stream, a lasting one the partition.
		for range maxGaps - 1 {
			if err := send(nil, batchOf(t, 8, 2), batchOf(t, 12, 2)); !errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("a gap: %v", err)
			}
			if got := drain(); in.next != 10 && !slices.Equal(got, numbers(8, 10)) {
				t.Errorf("got %v", got)
			}
		}
		if err := send(nil, batchOf(t, 12, 2)); err != nil {
			t.Error(err)
		}
		var failed *PartitionError
		if _, err := s.Poll(t.Context()); !errors.As(err, &failed) || failed.Offset != 10 || !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("poll: %v", err)
		}
		for name, err := range map[string]error{
			"more bytes than batches": s.received(feed, &smqpb.DeliverHead{}, make([]byte, 1)),
			"fewer":                   s.received(feed, &smqpb.DeliverHead{Batches: []*smqpb.DeliverBatch{{Size: math.MaxUint32}}}, nil),
			"no offsets":              s.received(feed, &smqpb.DeliverHead{CaughtUp: []int32{0}}, nil),
		} {
			if !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// Partitions that nobody asked for, or that do not exist, are no matter.
		if err := s.received(feed, &smqpb.DeliverHead{
			Batches:  []*smqpb.DeliverBatch{{Partition: -1, Size: 1}, {Partition: 7, Size: 1}},
			CaughtUp: []int32{99}, CaughtUpOffsets: []int64{0},
			Ends: []*smqpb.PartitionEnd{{Partition: 1 << 30, Error: rpc.ErrorInfo(smq.ErrCorrupt)}},
		}, []byte("xy")); err != nil {
			t.Error(err)
		}
	})
}

// Damage inside of a batch shows when it is opened, or before.
func TestDamagedBatches(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.fill(0, 0, 30, 10)
		f.mu.Lock()
		f.logs[0].batches[1][record.HeaderSize+3] ^= 1
		f.mu.Unlock()
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest()})
		defer s.Close()
		fetch, err := s.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, ok := fetch.Next(); ok; _, ok = fetch.Next() {
			n++
		}
		var failed *PartitionError
		if n != 10 || !errors.As(fetch.Err(), &failed) || failed.Offset != 10 || !errors.Is(failed, smq.ErrCorrupt) {
			t.Errorf("%d messages, then %v", n, fetch.Err())
		}
		f.mu.Lock()
		f.logs[0].batches[2][16] = 1 // magic
		f.mu.Unlock()
		if err := s.Seek(0, 20); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Poll(t.Context()); !errors.As(err, &failed) || failed.Offset != 20 || !errors.Is(err, smq.ErrCorrupt) {
			t.Errorf("poll: %v", err)
		}
	})
}
