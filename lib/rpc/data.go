package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// DataServer serves the data plane, the gRPC service smq.v1.Data: one stream
// per publisher and per subscriber. A method's return ends its stream, with the
// error that it returns.
type DataServer interface {
	// Publish receives batches and sends their acks.
	Publish(PublishStream) error
	// Subscribe receives what to serve and sends batches.
	Subscribe(SubscribeStream) error
}

// ReplicaServer is the part of the data plane that is between brokers. A
// DataServer that is one too serves it.
type ReplicaServer interface {
	// Replicate receives what a segment's owner has not stored yet.
	Replicate(ReplicateStream) error
}

// PublishStream is the broker's end of a publisher's stream. One goroutine may
// receive while another sends.
type PublishStream interface {
	// Context ends when the stream does.
	Context() context.Context
	// Recv waits for the next frame, fills head and returns the payload, which
	// the caller owns. io.EOF: the publisher is done.
	Recv(head *smqpb.PublishHead) (payload []byte, err error)
	// Send sends acks. It blocks while the publisher does not read them.
	Send(acks *smqpb.PublishAcks) error
}

// SubscribeStream is the broker's end of a subscriber's stream. One goroutine
// may receive while another sends.
type SubscribeStream interface {
	// Context ends when the stream does.
	Context() context.Context
	// Recv waits for the next message and fills head. io.EOF: the subscriber
	// sends no more.
	Recv(head *smqpb.SubscribeHead) error
	// Send sends a frame whose payload is the given slices one after the other.
	// They are not copied and must never change again. It blocks while the
	// subscriber does not keep up.
	Send(head *smqpb.DeliverHead, payload ...[]byte) error
}

// ReplicateStream is a follower's end of the stream from an owner. One goroutine
// may receive while another sends.
type ReplicateStream interface {
	// Context ends when the stream does.
	Context() context.Context
	// Recv waits for the next frame, fills head and returns the payload, which
	// the caller owns. io.EOF: the owner is done.
	Recv(head *smqpb.ReplicateHead) (payload []byte, err error)
	// Send sends acks. It blocks while the owner does not read them.
	Send(acks *smqpb.ReplicaAcks) error
}

// dataService describes smq.v1.Data to gRPC. It is written by hand because
// generated code has no place for a payload that passes protobuf by.
var dataService = grpc.ServiceDesc{
	ServiceName: "smq.v1.Data",
	HandlerType: (*DataServer)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Publish", Handler: servePublish, ServerStreams: true, ClientStreams: true},
		{StreamName: "Subscribe", Handler: serveSubscribe, ServerStreams: true, ClientStreams: true},
		{StreamName: "Replicate", Handler: serveReplicate, ServerStreams: true, ClientStreams: true},
	},
}

// RegisterData makes s, which NewServer made, serve the data plane.
func RegisterData(s grpc.ServiceRegistrar, srv DataServer) { s.RegisterService(&dataService, srv) }

func servePublish(srv any, s grpc.ServerStream) error {
	return srv.(DataServer).Publish(publishStream{s})
}

func serveSubscribe(srv any, s grpc.ServerStream) error {
	return srv.(DataServer).Subscribe(subscribeStream{s})
}

func serveReplicate(srv any, s grpc.ServerStream) error {
	r, ok := srv.(ReplicaServer)
	if !ok {
		return fmt.Errorf("%w stream: nothing is replicated to here", smq.ErrInvalid)
	}
	return r.Replicate(replicateStream{s})
}

type replicateStream struct{ grpc.ServerStream }

func (s replicateStream) Recv(head *smqpb.ReplicateHead) ([]byte, error) {
	f := inFrame{head: head}
	err := recvFrame(s.ServerStream, &f)
	return f.payload, err
}

func (s replicateStream) Send(acks *smqpb.ReplicaAcks) error { return s.SendMsg(acks) }

type publishStream struct{ grpc.ServerStream }

func (s publishStream) Recv(head *smqpb.PublishHead) ([]byte, error) {
	f := inFrame{head: head}
	err := recvFrame(s.ServerStream, &f)
	return f.payload, err
}

func (s publishStream) Send(acks *smqpb.PublishAcks) error { return s.SendMsg(acks) }

type subscribeStream struct{ grpc.ServerStream }

func (s subscribeStream) Recv(head *smqpb.SubscribeHead) error { return s.RecvMsg(head) }

func (s subscribeStream) Send(head *smqpb.DeliverHead, payload ...[]byte) error {
	return s.SendMsg(&outFrame{head: head, payload: payload})
}

func recvFrame(s interface{ RecvMsg(any) error }, f *inFrame) error {
	if err := s.RecvMsg(f); err != nil {
		return err
	}
	return f.err
}

// PublishClient is a publisher's end of its stream. One goroutine may send
// while another receives.
type PublishClient struct{ stream grpc.ClientStream }

// OpenPublish opens a stream to the broker that conn, which Dial made, leads
// to. The stream lives until Recv has returned an error or ctx ends: one of
// these must happen, or it leaks.
func OpenPublish(ctx context.Context, conn *grpc.ClientConn) (*PublishClient, error) {
	s, err := openData(ctx, conn, 0)
	if err != nil {
		return nil, err
	}
	return &PublishClient{s}, nil
}

// Send sends a frame whose payload is the given slices one after the other.
// They are not copied and must never change again. It blocks while the broker
// does not keep up. io.EOF: the stream has ended, Recv tells why.
func (c *PublishClient) Send(head *smqpb.PublishHead, payload ...[]byte) error {
	return c.stream.SendMsg(&outFrame{head: head, payload: payload})
}

// Recv waits for the next acks. io.EOF: the broker is done, after CloseSend.
func (c *PublishClient) Recv(acks *smqpb.PublishAcks) error { return c.stream.RecvMsg(acks) }

// CloseSend says that no more frames follow; acks may still come.
func (c *PublishClient) CloseSend() error { return c.stream.CloseSend() }

// SubscribeClient is a subscriber's end of its stream. One goroutine may send
// while another receives.
type SubscribeClient struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
}

// OpenSubscribe opens a stream to the broker that conn, which Dial made, leads
// to. The stream lives until Recv has returned an error or ctx ends: one of
// these must happen, or it leaks.
func OpenSubscribe(ctx context.Context, conn *grpc.ClientConn) (*SubscribeClient, error) {
	ctx, cancel := context.WithCancel(ctx)
	s, err := openData(ctx, conn, 1)
	if err != nil {
		cancel()
		return nil, err
	}
	return &SubscribeClient{s, cancel}, nil
}

// Send tells the broker what to serve. io.EOF: the stream has ended, Recv tells
// why.
func (c *SubscribeClient) Send(head *smqpb.SubscribeHead) error { return c.stream.SendMsg(head) }

// Recv waits for the next frame, fills head and returns the payload, which the
// caller owns. io.EOF: the broker has ended the stream without an error.
func (c *SubscribeClient) Recv(head *smqpb.DeliverHead) ([]byte, error) {
	f := inFrame{head: head}
	err := recvFrame(c.stream, &f)
	if err != nil {
		c.cancel() // a malformed frame has not ended the stream yet
	}
	return f.payload, err
}

// CloseSend says that nothing more will be asked for.
func (c *SubscribeClient) CloseSend() error { return c.stream.CloseSend() }

// ReplicateClient is an owner's end of the stream to a follower. One goroutine
// may send while another receives.
type ReplicateClient struct{ stream grpc.ClientStream }

// OpenReplicate opens a stream to the broker that conn, which Dial made, leads
// to. The stream lives until Recv has returned an error or ctx ends: one of
// these must happen, or it leaks.
func OpenReplicate(ctx context.Context, conn *grpc.ClientConn) (*ReplicateClient, error) {
	s, err := openData(ctx, conn, 2)
	if err != nil {
		return nil, err
	}
	return &ReplicateClient{s}, nil
}

// Send sends a frame whose payload is the given slices one after the other.
// They are not copied and must never change again. It blocks while the follower
// does not keep up. io.EOF: the stream has ended, Recv tells why.
func (c *ReplicateClient) Send(head *smqpb.ReplicateHead, payload ...[]byte) error {
	return c.stream.SendMsg(&outFrame{head: head, payload: payload})
}

// Recv waits for the next acks.
func (c *ReplicateClient) Recv(acks *smqpb.ReplicaAcks) error { return c.stream.RecvMsg(acks) }

func openData(ctx context.Context, conn *grpc.ClientConn, i int) (grpc.ClientStream, error) {
	desc := &dataService.Streams[i]
	return conn.NewStream(ctx, desc, "/"+dataService.ServiceName+"/"+desc.StreamName)
}
