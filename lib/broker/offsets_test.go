package broker_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
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
