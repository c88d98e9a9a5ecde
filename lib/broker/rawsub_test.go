package broker_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// subscriber is a bare subscribe stream.
type subscriber struct {
	t      testing.TB
	stream *rpc.SubscribeClient

	values   map[int32][]string
	next     map[int32]int64
	caughtUp map[int32][]int64 // offsets told, in order
	ends     map[int32]*smqpb.PartitionEnd
}

func (b *bed) openSubscribe(address string, hello *smqpb.SubscribeHello) *subscriber {
	b.t.Helper()
	conn, err := b.cluster().Conn(address)
	if err != nil {
		b.t.Fatal(err)
	}
	stream, err := rpc.OpenSubscribe(within(b.t), conn)
	if err != nil {
		b.t.Fatal(err)
	}
	s := &subscriber{
		t: b.t, stream: stream, values: make(map[int32][]string), next: make(map[int32]int64),
		caughtUp: make(map[int32][]int64), ends: make(map[int32]*smqpb.PartitionEnd),
	}
	if hello != nil {
		s.send(&smqpb.SubscribeHead{Hello: hello})
	}
	return s
}

func (s *subscriber) send(head *smqpb.SubscribeHead) {
	s.t.Helper()
	if err := s.stream.Send(head); err != nil && !errors.Is(err, io.EOF) {
		s.t.Fatal(err)
	}
}

// ask asks for a partition from an offset on.
func (s *subscriber) ask(p int32, offset int64) {
	s.next[p] = offset
	delete(s.values, p)
	delete(s.ends, p)
	s.send(&smqpb.SubscribeHead{Partitions: []int32{p}, Offsets: []int64{offset}})
}

// until takes in frames until the condition holds.
func (s *subscriber) until(condition func() bool) {
	s.t.Helper()
	for !condition() {
		var head smqpb.DeliverHead
		payload, err := s.stream.Recv(&head)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, b := range head.GetBatches() {
			s.take(b.GetPartition(), payload[:b.GetSize()])
			payload = payload[b.GetSize():]
		}
		if len(payload) > 0 {
			s.t.Fatalf("%d bytes are left over", len(payload))
		}
		for i, p := range head.GetCaughtUp() {
			s.caughtUp[p] = append(s.caughtUp[p], head.GetCaughtUpOffsets()[i])
		}
		for _, end := range head.GetEnds() {
			s.ends[end.GetPartition()] = end
			if !condition() {
				s.t.Fatalf("partition %d has ended: %v", end.GetPartition(), end)
			}
		}
	}
}

func (s *subscriber) take(p int32, bytes []byte) {
	s.t.Helper()
	var r record.Reader
	if err := r.Reset(bytes); err != nil {
		s.t.Fatal(err)
	}
	for {
		rec, ok := r.Next()
		if !ok {
			return
		}
		if rec.Offset < s.next[p] {
			continue
		}
		if rec.Offset > s.next[p] {
			s.t.Fatalf("partition %d: offset %d came, %d was due", p, rec.Offset, s.next[p])
		}
		s.values[p] = append(s.values[p], string(rec.Value))
		s.next[p]++
	}
}

// put publishes n messages to a partition, by its owner, one by one.
func (b *bed) put(p int32, from, n int) {
	b.t.Helper()
	config, s := b.live(p)
	pub := b.openPublish(s.GetOwnerAddress(), &smqpb.PublishHello{Topic: config.GetTopic(), TopicId: config.GetTopicId()})
	for i := range n {
		bytes := batch(b.t, fmt.Sprint("value ", from+i))
		pub.send(&smqpb.PublishHead{Batches: []*smqpb.PublishBatch{{Segment: s.GetId(), Partition: p, Size: uint32(len(bytes))}}}, bytes)
	}
	for range n {
		if err := rpc.FromErrorInfo(pub.ack().GetError()); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := pub.stream.CloseSend(); err != nil {
		b.t.Fatal(err)
	}
}

// roll has the segment of partition p sealed and replaced.
func (b *bed) roll(p int32) {
	b.t.Helper()
	config, s := b.live(p)
	peer, err := b.cluster().Broker(b.t.Context(), s.GetOwnerAddress())
	if err == nil {
		_, err = peer.SealSegment(within(b.t), &smqpb.SealSegmentRequest{Topic: config.GetTopic(), TopicId: config.GetTopicId(), Segment: s.GetId()})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.lookup(&smqpb.LookupRequest{Topic: config.GetTopic(), StaleSegment: s.GetId()})
}

func TestSubscribeMessagesThatAreWrong(t *testing.T) {
	b := newBed(t, "a")
	b.connect(8)
	hello := &smqpb.SubscribeHello{Topic: topicT.String()}
	for name, test := range map[string]struct {
		first, second *smqpb.SubscribeHead
		want          error
	}{
		"no hello":             {&smqpb.SubscribeHead{Partitions: []int32{1}, Offsets: []int64{0}}, nil, smq.ErrInvalid},
		"a second hello":       {&smqpb.SubscribeHead{Hello: hello}, &smqpb.SubscribeHead{Hello: hello}, smq.ErrInvalid},
		"no such topic":        {&smqpb.SubscribeHead{Hello: &smqpb.SubscribeHello{Topic: "u"}}, nil, smq.ErrNotFound},
		"an offset is missing": {&smqpb.SubscribeHead{Hello: hello}, &smqpb.SubscribeHead{Partitions: []int32{1, 2}, Offsets: []int64{0}}, smq.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.openSubscribe("a:7310", nil)
			s.send(test.first)
			if test.second != nil {
				s.send(test.second)
			}
			if _, err := s.stream.Recv(&smqpb.DeliverHead{}); !errors.Is(err, test.want) {
				t.Fatalf("the stream ended with %v, want %v", err, test.want)
			}
		})
	}
}

func TestSubscribeRefusesPartitions(t *testing.T) {
	b := newBed(t, "a", "b")
	b.connect(8)
	_, live := b.live(3)
	b.put(3, 0, 10)
	other := "a:7310"
	if live.GetOwnerAddress() == other {
		other = "b:7310"
	}
	for _, test := range []struct {
		address   string
		partition int32
		offset    int64
		want      error
		segment   uint64
	}{
		{live.GetOwnerAddress(), -1, 0, smq.ErrInvalid, 0},
		{live.GetOwnerAddress(), 8, 0, smq.ErrInvalid, 0},
		{live.GetOwnerAddress(), 3, 11, smq.ErrOffsetOutOfRange, 0},
		{live.GetOwnerAddress(), 3, 1 << 62, smq.ErrOffsetOutOfRange, 0},
		{live.GetOwnerAddress(), 3, -1, smq.ErrOffsetOutOfRange, 0},
		{other, 3, 0, smq.ErrNotOwner, live.GetId()},
	} {
		s := b.openSubscribe(test.address, &smqpb.SubscribeHello{Topic: topicT.String()})
		s.ask(test.partition, test.offset)
		s.until(func() bool { return s.ends[test.partition] != nil })
		end := s.ends[test.partition]
		if err := rpc.FromErrorInfo(end.GetError()); !errors.Is(err, test.want) || end.GetNextOffset() != test.offset || end.GetSegment() != test.segment {
			t.Errorf("partition %d from %d at %s: %v", test.partition, test.offset, test.address, end)
		}
	}
}

func TestSubscribeTellsOnceWhoHasCaughtUp(t *testing.T) {
	b := newBed(t, "a")
	b.connect(8)
	b.put(3, 0, 10)
	s := b.openSubscribe("a:7310", &smqpb.SubscribeHello{Topic: topicT.String()})
	s.ask(3, 4)
	s.until(func() bool { return len(s.caughtUp[3]) > 0 })
	if s.next[3] != 10 || s.caughtUp[3][0] != 10 {
		t.Fatalf("next %d, caught up %v", s.next[3], s.caughtUp[3])
	}
	b.put(3, 10, 10)
	s.until(func() bool { return s.next[3] == 20 })
	b.roll(3) // moves on to the next segment
	b.put(3, 20, 10)
	s.until(func() bool { return s.next[3] == 30 })
	s.ask(3, 0)
	s.until(func() bool { return len(s.caughtUp[3]) > 1 })
	if s.next[3] != 30 || len(s.caughtUp[3]) != 2 || s.caughtUp[3][1] != 30 {
		t.Fatalf("next %d, caught up %v", s.next[3], s.caughtUp[3])
	}
}

func TestSubscribeStops(t *testing.T) {
	b := newBed(t, "a")
	b.connect(8)
	b.live(3)
	s := b.openSubscribe("a:7310", &smqpb.SubscribeHello{Topic: topicT.String()})
	s.ask(3, 0)
	s.ask(4, 0)
	s.until(func() bool { return len(s.caughtUp) == 2 })
	s.send(&smqpb.SubscribeHead{Remove: []int32{3, 5}})
	s.ask(4, 0) // answered behind the removal
	s.until(func() bool { return len(s.caughtUp[4]) == 2 })
	b.put(3, 0, 5)
	b.put(4, 0, 5)
	s.until(func() bool { return s.next[4] == 5 })
	if s.next[3] != 0 {
		t.Fatalf("partition 3 is still served: next %d", s.next[3])
	}
	s.ask(3, 0)
	s.until(func() bool { return s.next[3] == 5 })
}

// Any broker serves what is sealed, then points to the live segment.
func TestSubscribeToThePastAnywhere(t *testing.T) {
	b := newBed(t, "a", "b")
	b.connect(8)
	for i := range 12 {
		b.put(3, 10*i, 10)
		b.roll(3)
	}
	b.put(3, 120, 10)
	_, live := b.live(3)
	for _, address := range []string{"a:7310", "b:7310"} {
		for _, from := range []int64{0, 1, 59, 60, 119} {
			s := b.openSubscribe(address, &smqpb.SubscribeHello{Topic: topicT.String()})
			s.ask(3, from)
			if address == live.GetOwnerAddress() {
				s.until(func() bool { return s.next[3] == 130 })
				continue
			}
			s.until(func() bool { return s.ends[3] != nil })
			end := s.ends[3]
			if end.GetNextOffset() != 120 || end.GetSegment() != live.GetId() || len(s.values[3]) != 120-int(from) {
				t.Errorf("from %d: %v after %d values", from, end, len(s.values[3]))
			}
		}
	}
}

func TestSubscribeToAHundredThousandPartitions(t *testing.T) {
	const n = 100_000
	b := newBed(t, "a")
	b.connect(n)
	for _, p := range []int32{0, 777, n - 1} { // also has the only segment assigned
		b.put(p, 0, 3)
	}
	s := b.openSubscribe("a:7310", &smqpb.SubscribeHello{Topic: topicT.String()})
	head := &smqpb.SubscribeHead{}
	for p := range int32(n) {
		head.Partitions = append(head.Partitions, p)
		head.Offsets = append(head.Offsets, 0)
	}
	s.send(head)
	s.until(func() bool { return len(s.caughtUp) == n })
	b.put(777, 3, 3)
	s.until(func() bool { return s.next[777] == 6 })
	if s.next[0] != 3 || s.next[n-1] != 3 {
		t.Fatalf("next %d and %d", s.next[0], s.next[n-1])
	}
}

// A subscriber that does not read holds up nobody, and little of the broker's
// memory.
func TestP10ASubscriberThatDoesNotRead(t *testing.T) {
	b := newBed(t)
	b.limits = seglog.Limits{ChunkBytes: 1 << 20}
	b.start("a")
	c := b.connect(1)
	b.live(0)
	slow := b.openSubscribe("a:7310", &smqpb.SubscribeHello{Topic: topicT.String()})
	slow.ask(0, 0)
	w := b.write(c, 1)
	w.padding = 100_000
	w.send(500)
	w.flush()
	b.read(c).check(w)
	slow.until(func() bool { return slow.next[0] == int64(w.n) })
}
