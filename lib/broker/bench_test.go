package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// forgetful is a store that drops the content of chunks.
type forgetful struct{ store.Store }

func (f forgetful) Create(ctx context.Context, path string, content []store.Part) error {
	if strings.HasSuffix(path, ".log") && store.ContentSize(content) > 1<<10 {
		return nil
	}
	return f.Store.Create(ctx, path, content)
}

func (f forgetful) Limits() store.Limits { return store.Limits{Inline: 64 << 20, Piece: 4 << 20} }

// BenchmarkPublish sends frames of about 1 MiB into one partition, through gRPC
// over pipes in memory, to a store that takes no time, and waits for all acks.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("batches of %d KiB", size>>10), func(b *testing.B) { benchmarkPublish(b, size) })
	}
}

func benchmarkPublish(b *testing.B, size int) {
	bed := newBed(b)
	bed.wrap = func(_ string, st store.Store) store.Store { return forgetful{st} }
	bed.start("a")
	bed.connect(1)
	config, s := bed.live(0)
	p := bed.openPublish("a:7310", &smqpb.PublishHello{Topic: config.GetTopic()})
	one := batch(b, string(bytes.Repeat([]byte("x"), size)))
	head := &smqpb.PublishHead{}
	var payload [][]byte
	for range 1 << 20 / size {
		head.Batches = append(head.Batches, &smqpb.PublishBatch{Segment: s.GetId(), Size: uint32(len(one))})
		payload = append(payload, one)
	}
	acked := make(chan error, 1)
	go func() { acked <- countAcks(p.stream) }()
	b.SetBytes(int64(len(payload) * len(one)))
	b.ReportAllocs()
	for b.Loop() {
		p.send(head, payload...)
	}
	if err := p.stream.CloseSend(); err != nil {
		b.Fatal(err)
	}
	if err := <-acked; err != nil {
		b.Fatal(err)
	}
}

// countAcks receives acks to the end, and fails on the first refusal.
func countAcks(stream *rpc.PublishClient) error {
	for {
		var acks smqpb.PublishAcks
		if err := stream.Recv(&acks); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for _, a := range acks.GetAcks() {
			if a.GetError() != nil {
				return rpc.FromErrorInfo(a.GetError())
			}
		}
	}
}
