package rpc

import (
	"fmt"
	"io"
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// BenchmarkPublishStream moves frames through one stream over loopback. Each
// frame is received and dropped; the last one is acked.
func BenchmarkPublishStream(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchmarkPublish(b, size) })
	}
}

func benchmarkPublish(b *testing.B, size int) {
	conn := dataConn(b, dataFuncs{publish: func(s PublishStream) error {
		for {
			var head smqpb.PublishHead
			if _, err := s.Recv(&head); err == io.EOF {
				return s.Send(&smqpb.PublishAcks{})
			} else if err != nil {
				return err
			}
		}
	}})
	c, err := OpenPublish(b.Context(), conn)
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, size)
	head := &smqpb.PublishHead{Batches: []*smqpb.PublishBatch{{Id: 1, Segment: 1, Partition: 3, Size: uint32(size)}}}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send(head, payload); err != nil {
			b.Fatal(err)
		}
	}
	if err := c.CloseSend(); err != nil {
		b.Fatal(err)
	}
	if err := c.Recv(&smqpb.PublishAcks{}); err != nil {
		b.Fatal(err)
	}
}
