package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// sink is a whole cluster on a loopback port that acks everything and stores
// nothing, and serves one batch over and over.
type sink struct {
	smqpb.UnimplementedMasterServer
	smqpb.UnimplementedLeaderServer
	smqpb.UnimplementedBrokerServer
	addr       string
	partitions int32
	batch      []byte // served
	count      int64  // of the messages in it
}

func startSink(tb testing.TB, partitions int32) (*sink, *Client) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &sink{addr: l.Addr().String(), partitions: partitions}
	server := rpc.NewServer(rpc.ServerOptions{})
	smqpb.RegisterMasterServer(server, s)
	smqpb.RegisterLeaderServer(server, s)
	smqpb.RegisterBrokerServer(server, s)
	rpc.RegisterData(grpc.ServiceRegistrar(server), s)
	go server.Serve(l)
	tb.Cleanup(server.Stop)
	c, err := Connect(context.Background(), Config{Masters: []string{s.addr}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return s, c
}

func (s *sink) Cluster(context.Context, *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	return &smqpb.ClusterInfo{LeadingMaster: s.addr, Leader: &smqpb.LeaderInfo{Address: s.addr}}, nil
}

func (s *sink) Lookup(context.Context, *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	return &smqpb.LookupResponse{
		Config: &smqpb.TopicConfig{Topic: fakeTopic.String(), TopicId: fakeTopicID, Partitions: s.partitions},
		Layout: &smqpb.Layout{Version: 1, Segments: []*smqpb.Segment{{Id: 1, Hi: s.partitions, OwnerAddress: s.addr}}},
	}, nil
}

func (s *sink) Publish(stream rpc.PublishStream) error {
	var head smqpb.PublishHead
	offset := int64(0)
	for {
		payload, err := stream.Recv(&head)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		acks := &smqpb.PublishAcks{}
		for _, b := range head.Batches {
			h, err := record.ParseHeader(payload)
			if err != nil {
				return err
			}
			payload = payload[b.Size:]
			acks.Acks = append(acks.Acks, &smqpb.PublishAck{Id: b.Id, BaseOffset: offset, Level: smqpb.AckLevel_STORED})
			offset += int64(h.Count)
		}
		if len(acks.Acks) == 0 {
			continue
		}
		if err := stream.Send(acks); err != nil {
			return err
		}
	}
}

func (s *sink) Subscribe(stream rpc.SubscribeStream) error {
	var head smqpb.SubscribeHead
	for len(head.Partitions) == 0 {
		if err := stream.Recv(&head); err != nil {
			return err
		}
	}
	for offset := head.Offsets[0]; ; offset += s.count {
		b := append([]byte(nil), s.batch...)
		record.Patch(b, offset, 1)
		if err := stream.Send(&smqpb.DeliverHead{Batches: []*smqpb.DeliverBatch{{Partition: head.Partitions[0], Size: uint32(len(b))}}}, b); err != nil {
			return err
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
		for _, size := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%v/%d", codec, size), func(b *testing.B) {
				_, c := startSink(b, 1)
				acked := 0
				p, err := c.NewPublisher(context.Background(), fakeTopic, PublisherOptions{Codec: codec, Results: func(r Results) {
					if r.Err == nil {
						acked += len(r.Tokens)
					}
				}})
				if err != nil {
					b.Fatal(err)
				}
				m := &Message{Value: sample(size)}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					m.Token = uint64(i)
					if err := p.Publish(context.Background(), m); err != nil {
						b.Fatal(err)
					}
				}
				if err := p.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if acked != b.N {
					b.Fatalf("%d of %d messages acked", acked, b.N)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}

// sample is a message's value, as compressible as JSON is.
func sample(size int) []byte {
	v := make([]byte, 0, size+64)
	for i := 0; len(v) < size; i++ {
		v = fmt.Appendf(v, `{"user":%d,"event":"click","at":17645%05d},`, i*7919%100_000, i)
	}
	return v[:size]
}

func BenchmarkPublishManyPartitions(b *testing.B) {
	_, c := startSink(b, 100_000)
	p, err := c.NewPublisher(context.Background(), fakeTopic, PublisherOptions{})
	if err != nil {
		b.Fatal(err)
	}
	m := &Message{Value: sample(100)}
	b.SetBytes(100)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		m.Partition = int32(i * 7919 % 100_000)
		if err := p.Publish(context.Background(), m); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

func BenchmarkSubscribe(b *testing.B) {
	for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
		b.Run(fmt.Sprintf("%v/100", codec), func(b *testing.B) {
			s, c := startSink(b, 1)
			builder := record.NewBuilder(codec)
			for builder.Size() < 256<<10 {
				if err := builder.Append(1, nil, sample(100), nil); err != nil {
					b.Fatal(err)
				}
				s.count++
			}
			var err error
			if s.batch, err = builder.Finish(nil, record.NoProducerID, record.NoProducerEpoch, record.NoSequence); err != nil {
				b.Fatal(err)
			}
			sub, err := c.NewSubscriber(context.Background(), fakeTopic, SubscriberOptions{Start: Offset(0)})
			if err != nil {
				b.Fatal(err)
			}
			defer sub.Close()
			b.SetBytes(100)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				fetch, err := sub.Poll(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				for _, ok := fetch.Next(); ok; _, ok = fetch.Next() {
					n++
				}
				if fetch.Err() != nil {
					b.Fatal(fetch.Err())
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
