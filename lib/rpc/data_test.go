package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// dataFuncs is a DataServer of two functions.
type dataFuncs struct {
	publish   func(PublishStream) error
	subscribe func(SubscribeStream) error
}

func (d dataFuncs) Publish(s PublishStream) error     { return d.publish(s) }
func (d dataFuncs) Subscribe(s SubscribeStream) error { return d.subscribe(s) }

// serve runs a server on loopback until the test ends.
func serve(t testing.TB, o ServerOptions, register func(*grpc.Server)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(o)
	register(s)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func dial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := Dial(addr, DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func dataConn(t testing.TB, d dataFuncs) *grpc.ClientConn {
	t.Helper()
	return dial(t, serve(t, ServerOptions{}, func(s *grpc.Server) { RegisterData(s, d) }))
}

func TestPublishStream(t *testing.T) {
	conn := dataConn(t, dataFuncs{publish: func(s PublishStream) error {
		for {
			var head smqpb.PublishHead
			payload, err := s.Recv(&head)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			acks := &smqpb.PublishAcks{}
			for _, b := range head.GetBatches() {
				acks.Acks = append(acks.Acks, &smqpb.PublishAck{Id: b.Id, BaseOffset: int64(payload[0])})
				payload = payload[b.Size:]
			}
			if err := s.Send(acks); err != nil {
				return err
			}
		}
	}})
	c, err := OpenPublish(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte{9}, smq.MaxBatchSize) // the largest batch must pass
	head := &smqpb.PublishHead{Batches: []*smqpb.PublishBatch{{Id: 1, Size: 2}, {Id: 2, Size: uint32(len(large))}}}
	if err := c.Send(head, []byte{5, 5}, large); err != nil {
		t.Fatal(err)
	}
	var acks smqpb.PublishAcks
	if err := c.Recv(&acks); err != nil {
		t.Fatal(err)
	}
	if len(acks.Acks) != 2 || acks.Acks[0].BaseOffset != 5 || acks.Acks[1].BaseOffset != 9 {
		t.Errorf("acks %v", acks.Acks)
	}
	if err := c.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := c.Recv(&acks); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestSubscribeStream(t *testing.T) {
	conn := dataConn(t, dataFuncs{subscribe: func(s SubscribeStream) error {
		var head smqpb.SubscribeHead
		if err := s.Recv(&head); err != nil {
			return err
		}
		if err := s.Send(&smqpb.DeliverHead{Batches: []*smqpb.DeliverBatch{{Partition: head.Partitions[0], Size: 3}}}, []byte("a"), []byte("bc")); err != nil {
			return err
		}
		return &smq.SequenceError{Last: 12}
	}})
	c, err := OpenSubscribe(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(&smqpb.SubscribeHead{Partitions: []int32{4}, Offsets: []int64{0}}); err != nil {
		t.Fatal(err)
	}
	var head smqpb.DeliverHead
	payload, err := c.Recv(&head)
	if err != nil || string(payload) != "abc" || head.Batches[0].Partition != 4 {
		t.Fatalf("got %v %q, %v", &head, payload, err)
	}
	var sequence *smq.SequenceError
	if _, err = c.Recv(&head); !errors.As(err, &sequence) || sequence.Last != 12 {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestHostileFrameEndsItsStreamAsInvalid(t *testing.T) {
	got := make(chan error, 1)
	conn := dataConn(t, dataFuncs{publish: func(s PublishStream) error {
		_, err := s.Recv(&smqpb.PublishHead{})
		got <- err
		return err
	}})
	// A plain message in place of a frame: its first field is a number.
	s, err := openData(t.Context(), conn, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendMsg(&smqpb.PublishBatch{Id: 3}); err != nil {
		t.Fatal(err)
	}
	if err := s.RecvMsg(&smqpb.PublishAcks{}); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("the client got %v", err)
	}
	if err := <-got; !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("the server got %v", err)
	}
}

func TestFrameBeyondTheLimitIsTooLarge(t *testing.T) {
	conn := dataConn(t, dataFuncs{publish: func(s PublishStream) error {
		_, err := s.Recv(&smqpb.PublishHead{})
		return err
	}})
	c, err := OpenPublish(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(&smqpb.PublishHead{}, make([]byte, maxFrameSize)); !errors.Is(err, smq.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestPanicBecomesAnError(t *testing.T) {
	var log lockedBuffer
	addr := serve(t, ServerOptions{Logger: log.logger()}, func(s *grpc.Server) {
		RegisterData(s, dataFuncs{subscribe: func(SubscribeStream) error { panic("a bug") }})
	})
	c, err := OpenSubscribe(t.Context(), dial(t, addr))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Recv(&smqpb.DeliverHead{}); err == nil || !strings.Contains(err.Error(), "internal error") || strings.Contains(err.Error(), "a bug") {
		t.Errorf("got %v", err)
	}
	if text := log.String(); !strings.Contains(text, "a bug") || !strings.Contains(text, "data_test.go") {
		t.Errorf("logged %q", text)
	}
}

func TestCancellationReachesBothEnds(t *testing.T) {
	received, ended := make(chan error, 1), make(chan error, 1)
	conn := dataConn(t, dataFuncs{publish: func(s PublishStream) error {
		_, err := s.Recv(&smqpb.PublishHead{})
		received <- err
		_, err = s.Recv(&smqpb.PublishHead{})
		ended <- err
		return err
	}})
	ctx, cancel := context.WithCancel(t.Context())
	c, err := OpenPublish(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(&smqpb.PublishHead{}); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := c.Recv(&smqpb.PublishAcks{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the server got %v", err)
	}
}
