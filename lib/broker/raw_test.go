package broker_test

import (
	"errors"
	"io"
	"testing"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// batch encodes values as a batch without a producer.
func batch(t testing.TB, values ...string) []byte {
	t.Helper()
	b := record.NewBuilder(record.None)
	for _, v := range values {
		if err := b.Append(1, nil, []byte(v), nil); err != nil {
			t.Fatal(err)
		}
	}
	bytes, err := b.Finish(nil, -1, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// publisher is a bare publish stream.
type publisher struct {
	t      testing.TB
	stream *rpc.PublishClient
	acks   []*smqpb.PublishAck // received and not taken
}

func (b *bed) openPublish(address string, hello *smqpb.PublishHello) *publisher {
	b.t.Helper()
	conn, err := b.cluster().Conn(address)
	if err != nil {
		b.t.Fatal(err)
	}
	stream, err := rpc.OpenPublish(within(b.t), conn)
	if err != nil {
		b.t.Fatal(err)
	}
	p := &publisher{t: b.t, stream: stream}
	if hello != nil {
		p.send(&smqpb.PublishHead{Hello: hello})
	}
	return p
}

// send sends a frame. That the broker has ended the stream is for who receives.
func (p *publisher) send(head *smqpb.PublishHead, payload ...[]byte) {
	p.t.Helper()
	if err := p.stream.Send(head, payload...); err != nil && !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
}

// ack waits for the next ack.
func (p *publisher) ack() *smqpb.PublishAck {
	p.t.Helper()
	for len(p.acks) == 0 {
		var frame smqpb.PublishAcks
		if err := p.stream.Recv(&frame); err != nil {
			p.t.Fatal(err)
		}
		p.acks = frame.GetAcks()
	}
	ack := p.acks[0]
	p.acks = p.acks[1:]
	return ack
}

// ended waits for the stream's end, which is an error of the given kind.
func (p *publisher) ended(want error) {
	p.t.Helper()
	for {
		var frame smqpb.PublishAcks
		if err := p.stream.Recv(&frame); err != nil {
			if !errors.Is(err, want) {
				p.t.Fatalf("the stream ended with %v, want %v", err, want)
			}
			return
		}
	}
}

// live is the topic's configuration, and the live segment that partition p
// lies in, owner and all.
func (b *bed) live(p smq.Partition) (*smqpb.TopicConfig, *smqpb.Segment) {
	b.t.Helper()
	b.owner(p)
	resp := b.lookup(&smqpb.LookupRequest{Topic: topicT.String()})
	for _, s := range resp.GetLayout().GetSegments() {
		if s.GetLo() <= p && p < s.GetHi() {
			return resp.GetConfig(), s
		}
	}
	b.t.Fatalf("partition %d is nowhere", p)
	return nil, nil
}

func TestPublishFramesThatAreWrong(t *testing.T) {
	b := newBed(t, "a")
	b.connect(8)
	config, s := b.live(0)
	hello := &smqpb.PublishHello{Topic: config.GetTopic(), TopicId: config.GetTopicId()}
	good := batch(t, "one")
	describe := func(sizes ...uint32) *smqpb.PublishHead {
		head := &smqpb.PublishHead{}
		for i, n := range sizes {
			head.Batches = append(head.Batches, &smqpb.PublishBatch{Id: uint64(i), Segment: s.GetId(), Size: n})
		}
		return head
	}
	size := uint32(len(good))
	for name, test := range map[string]struct {
		hello   *smqpb.PublishHello
		head    *smqpb.PublishHead
		payload []byte
		want    error
	}{
		"no hello":            {nil, describe(size), good, smq.ErrInvalid},
		"a second hello":      {hello, &smqpb.PublishHead{Hello: hello}, nil, smq.ErrInvalid},
		"no such topic":       {&smqpb.PublishHello{Topic: "u"}, describe(), nil, smq.ErrNotFound},
		"another incarnation": {&smqpb.PublishHello{Topic: "t", TopicId: "00"}, describe(), nil, smq.ErrNotFound},
		"no topic":            {&smqpb.PublishHello{Topic: "../t"}, describe(), nil, smq.ErrInvalid},
		"too few bytes":       {hello, describe(size, 1), good, smq.ErrInvalid},
		"too many bytes":      {hello, describe(size - 1), good, smq.ErrInvalid},
		"sizes that overflow": {hello, describe(1<<32-1, 1<<32-1, size), good, smq.ErrInvalid},
		"an empty batch":      {hello, describe(size, 0), good, smq.ErrInvalid},
		"bytes of no batch":   {hello, describe(), good, smq.ErrInvalid},
		"too many batches":    {hello, describe(make([]uint32, 1<<16+1)...), nil, smq.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.openPublish("a:7310", test.hello)
			p.send(test.head, test.payload)
			p.ended(test.want)
		})
	}
}

func TestPublishBatchesThatAreWrong(t *testing.T) {
	b := newBed(t, "a", "b")
	b.connect(8)
	config, s := b.live(0)
	other := "a:7310"
	if s.GetOwnerAddress() == other {
		other = "b:7310"
	}
	hello := &smqpb.PublishHello{Topic: config.GetTopic(), TopicId: config.GetTopicId(), Acks: smqpb.AckLevel_REPLICATED}
	broken := batch(t, "one")
	broken[len(broken)-1]++
	for name, test := range map[string]struct {
		address   string
		segment   uint64
		partition int32
		bytes     []byte
		want      error
	}{
		"partition -1":        {s.GetOwnerAddress(), s.GetId(), -1, batch(t, "one"), smq.ErrInvalid},
		"partition 8 of 8":    {s.GetOwnerAddress(), s.GetId(), 8, batch(t, "one"), smq.ErrInvalid},
		"the last partition":  {s.GetOwnerAddress(), s.GetId(), 1<<31 - 1, batch(t, "one"), smq.ErrInvalid},
		"a segment gone":      {s.GetOwnerAddress(), 1, 0, batch(t, "one"), smq.ErrSegmentSealed},
		"a segment to come":   {s.GetOwnerAddress(), 1 << 60, 0, batch(t, "one"), smq.ErrNotOwner},
		"segment 0":           {s.GetOwnerAddress(), 0, 0, batch(t, "one"), smq.ErrNotOwner},
		"not the owner":       {other, s.GetId(), 0, batch(t, "one"), smq.ErrNotOwner},
		"a byte has flipped":  {s.GetOwnerAddress(), s.GetId(), 0, broken, smq.ErrCorrupt},
		"one byte":            {s.GetOwnerAddress(), s.GetId(), 0, []byte{1}, smq.ErrCorrupt},
		"half a batch":        {s.GetOwnerAddress(), s.GetId(), 0, batch(t, "one")[:62], smq.ErrCorrupt},
		"nothing wrong there": {s.GetOwnerAddress(), s.GetId(), 7, batch(t, "one"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.openPublish(test.address, hello)
			head := &smqpb.PublishHead{Batches: []*smqpb.PublishBatch{
				{Id: 77, Segment: test.segment, Partition: test.partition, Size: uint32(len(test.bytes))},
			}}
			p.send(head, test.bytes)
			ack := p.ack()
			if err := rpc.FromErrorInfo(ack.GetError()); ack.GetId() != 77 || !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", ack, test.want)
			}
			if test.want == nil && (ack.GetLevel() == smqpb.AckLevel_DEFAULT || ack.GetBaseOffset() != 0) {
				t.Fatalf("got %v", ack)
			}
		})
	}
}

// Whoever has said that no more follows gets the rest of the acks, and then the
// end.
func TestPublishToTheEnd(t *testing.T) {
	b := newBed(t, "a")
	b.connect(8)
	config, s := b.live(0)
	p := b.openPublish("a:7310", &smqpb.PublishHello{Topic: config.GetTopic()})
	const n = 5000
	for i := range uint64(n) {
		bytes := batch(t, "value")
		p.send(&smqpb.PublishHead{Batches: []*smqpb.PublishBatch{{Id: i, Segment: s.GetId(), Partition: 3, Size: uint32(len(bytes))}}}, bytes)
	}
	if err := p.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(n) {
		if ack := p.ack(); ack.GetId() != i || ack.GetBaseOffset() != int64(i) || ack.GetError() != nil {
			t.Fatalf("ack %d: %v", i, ack)
		}
	}
	if err := p.stream.Recv(&smqpb.PublishAcks{}); !errors.Is(err, io.EOF) || len(p.acks) > 0 {
		t.Fatalf("after the last ack: %v", err)
	}
}
