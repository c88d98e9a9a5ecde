package broker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

func (b *bed) offsets(address string, req *smqpb.OffsetsRequest) (*smqpb.OffsetsResponse, error) {
	b.t.Helper()
	peer, err := b.cluster().Broker(b.t.Context(), address)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Topic = topicT.String()
	return peer.Offsets(within(b.t), req)
}

func TestOffsets(t *testing.T) {
	b := newBed(t, "a", "b")
	b.connect(4)
	for i := range 3 { // two sealed segments and a live one; timestamps are 1
		b.put(1, 5*i, 5)
		if i < 2 {
			b.roll(1)
		}
	}
	_, live := b.live(1)
	owner, other := live.GetOwnerAddress(), "a:7310"
	if owner == other {
		other = "b:7310"
	}
	const (
		earliest = smqpb.OffsetsRequest_EARLIEST
		end      = smqpb.OffsetsRequest_END
		byTime   = smqpb.OffsetsRequest_TIME
		arrival  = smqpb.OffsetsRequest_APPEND_TIME
	)
	for _, test := range []struct {
		address    string
		req        *smqpb.OffsetsRequest
		offsets    string
		timestamps string
		err        error
	}{
		{owner, &smqpb.OffsetsRequest{Kind: earliest}, "[0 0 0 0]", "[-1 -1 -1 -1]", nil},
		{other, &smqpb.OffsetsRequest{Kind: earliest}, "[0 0 0 0]", "[-1 -1 -1 -1]", nil},
		{owner, &smqpb.OffsetsRequest{Kind: end}, "[0 15 0 0]", "[-1 -1 -1 -1]", nil},
		{other, &smqpb.OffsetsRequest{Kind: end}, "", "", smq.ErrNotOwner},
		{owner, &smqpb.OffsetsRequest{Kind: byTime, TimeMs: 1, Partitions: []int32{1, 0}}, "[0 0]", "[1 -1]", nil},
		{other, &smqpb.OffsetsRequest{Kind: byTime, TimeMs: 1, Partitions: []int32{1}}, "[0]", "[1]", nil},
		{owner, &smqpb.OffsetsRequest{Kind: byTime, TimeMs: 2, Partitions: []int32{1}}, "[15]", "[-1]", nil},
		{other, &smqpb.OffsetsRequest{Kind: byTime, TimeMs: 2, Partitions: []int32{1}}, "", "", smq.ErrNotOwner},
		{owner, &smqpb.OffsetsRequest{Kind: arrival, TimeMs: 2, Partitions: []int32{1}}, "[0]", "[1]", nil},
		{owner, &smqpb.OffsetsRequest{Kind: arrival, TimeMs: 1 << 60, Partitions: []int32{1}}, "[15]", "[-1]", nil},
		{owner, &smqpb.OffsetsRequest{Kind: end, Partitions: []int32{4}}, "", "", smq.ErrInvalid},
		{owner, &smqpb.OffsetsRequest{Kind: earliest, Partitions: []int32{-1}}, "", "", smq.ErrInvalid},
		{owner, &smqpb.OffsetsRequest{Kind: 99, Partitions: []int32{1}}, "", "", smq.ErrInvalid},
		{owner, &smqpb.OffsetsRequest{Kind: end, Partitions: []int32{0, 1, 2, 3, 0}}, "", "", smq.ErrInvalid},
		{owner, &smqpb.OffsetsRequest{Kind: end, TopicId: "00"}, "", "", smq.ErrNotFound},
	} {
		resp, err := b.offsets(test.address, test.req)
		if !errors.Is(err, test.err) {
			t.Errorf("%v at %s: %v, want %v", test.req, test.address, err, test.err)
		}
		if err == nil && (fmt.Sprint(resp.GetOffsets()) != test.offsets || fmt.Sprint(resp.GetTimestamps()) != test.timestamps) {
			t.Errorf("%v at %s: %v", test.req, test.address, resp)
		}
	}
}

// Partitions that nobody owns end where the sealed segments do.
func TestOffsetsWithoutOwner(t *testing.T) {
	b := newBed(t, "a")
	b.connect(4)
	resp, err := b.offsets("a:7310", &smqpb.OffsetsRequest{Kind: smqpb.OffsetsRequest_END})
	if err != nil || fmt.Sprint(resp.GetOffsets()) != "[0 0 0 0]" {
		t.Fatalf("%v, %v", resp, err)
	}
}

// touched notes which segments' files are read or listed.
type touched struct {
	store.Store
	mu       sync.Mutex
	segments map[string]bool
}

func (s *touched) note(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, rest, ok := strings.Cut(path, "/segments/"); ok {
		id, _, _ := strings.Cut(rest, "/")
		s.segments[id] = true
	}
}

// reset forgets, and returns how many there were.
func (s *touched) reset() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.segments)
	s.segments = make(map[string]bool)
	return n
}

func (s *touched) ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error) {
	s.note(path)
	return s.Store.ReadAt(ctx, path, p, off)
}

func (s *touched) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	s.note(dir + "/")
	return s.Store.List(ctx, dir, after, limit)
}

// A seek by time opens few of many segments, though timestamps go up and down.
func TestTimeSeeksOpenFewSegments(t *testing.T) {
	const rolls = 32
	b := newBed(t, "a")
	var reads *touched
	b.wrap = func(_ string, st store.Store) store.Store {
		reads = &touched{Store: st, segments: make(map[string]bool)}
		return reads
	}
	b.connect(2)
	// Timestamps that fall as often as they rise, and come to 1000 for the first
	// time in the twentieth segment.
	times := make([]int64, rolls+1)
	for i := range times {
		times[i] = int64(10*i + 50*(i%2) - 3*(i%5))
	}
	times[20] = 1000
	first := func(ms int64) (offset, timestamp int64) {
		for i, at := range times {
			if at >= ms {
				return int64(i), at
			}
		}
		return int64(len(times)), -1
	}
	for i, at := range times {
		b.putAt(0, at)
		if i < rolls {
			b.roll(0)
		}
	}
	seek := func(ms int64) (segments int) {
		t.Helper()
		owner := b.owner(0)
		reads.reset()
		resp, err := b.offsets(owner, &smqpb.OffsetsRequest{Kind: smqpb.OffsetsRequest_TIME, TimeMs: ms, Partitions: []int32{0}})
		if err != nil {
			t.Fatal(err)
		}
		if offset, timestamp := first(ms); resp.GetOffsets()[0] != offset || resp.GetTimestamps()[0] != timestamp {
			t.Fatalf("time %d: got offset %d at %d, want %d at %d", ms, resp.GetOffsets()[0], resp.GetTimestamps()[0], offset, timestamp)
		}
		return reads.reset()
	}
	last := "a"
	for i, ms := range []int64{1000, 1010, 200, 0} {
		b.kill(last + ":7310")
		last = fmt.Sprint("b", i)
		b.start(last)             // it has opened none of them yet
		if n := seek(ms); n > 9 { // log2(32), and where the search ends
			t.Errorf("time %d: %d segments were opened", ms, n)
		}
	}
	for ms := int64(0); ms <= 1010; ms += 5 {
		seek(ms)
	}
}

// putAt publishes a message of the given time to a partition.
func (b *bed) putAt(p int32, ms int64) {
	b.t.Helper()
	config, s := b.live(p)
	pub := b.openPublish(s.GetOwnerAddress(), &smqpb.PublishHello{Topic: config.GetTopic(), TopicId: config.GetTopicId()})
	builder := record.NewBuilder(record.None)
	if err := builder.Append(ms, nil, []byte("value"), nil); err != nil {
		b.t.Fatal(err)
	}
	bytes, err := builder.Finish(nil, -1, -1, -1)
	if err != nil {
		b.t.Fatal(err)
	}
	pub.send(&smqpb.PublishHead{Batches: []*smqpb.PublishBatch{{Segment: s.GetId(), Partition: p, Size: uint32(len(bytes))}}}, bytes)
	if err := rpc.FromErrorInfo(pub.ack().GetError()); err != nil {
		b.t.Fatal(err)
	}
	if err := pub.stream.CloseSend(); err != nil {
		b.t.Fatal(err)
	}
}
