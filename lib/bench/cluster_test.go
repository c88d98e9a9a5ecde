package bench

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/local"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var benchTopic = smq.Topic{Namespace: smq.DefaultNamespace, Name: "bench"}

// cluster starts a whole cluster in this process, with a topic of some
// partitions, and connects to it.
func cluster(t *testing.T, partitions int32) *client.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	c, err := local.Start(t.Context(), local.Options{
		Listener: l, Brokers: 1, StoreURL: "dir://" + t.TempDir() + "?fsync=false", DataDir: t.TempDir(),
		Memory: 256 << 20, Logger: quiet, MasterLogger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) }) // the folders go in any case
	cl, err := client.Connect(t.Context(), client.Config{Masters: []string{c.Address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	if _, err := cl.CreateTopic(t.Context(), benchTopic, client.TopicOptions{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	return cl
}

func opener(t *testing.T, c *client.Client) Open {
	return func(told func(client.Results)) (Publisher, error) {
		return c.NewPublisher(t.Context(), benchTopic, client.PublisherOptions{Spread: true, Results: told})
	}
}

// A real cluster: all that is published arrives, messages of others do not
// count, and reading finds it all.
func TestAgainstACluster(t *testing.T) {
	c := cluster(t, 4)
	sub, err := c.NewSubscriber(t.Context(), benchTopic, client.SubscriberOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	other, err := c.NewPublisher(t.Context(), benchTopic, client.PublisherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := other.Publish(t.Context(), &client.Message{Value: make([]byte, 100), Partition: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := NewRun(Options{Size: 100, Producers: 3, Messages: 10_000, Settle: time.Minute}, 99, opener(t, c))
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.EndToEnd(t.Context(), sub)
	if err != nil || out.Messages != 10_000 || out.Stored != 10_000 || out.Delivery.Count != 10_000 || out.Errors() != 0 || out.Bytes != 1_000_000 {
		t.Errorf("%v, %+v", err, out)
	}
	if out.Delivery.P50 <= 0 || out.Delivery.P50 > out.Delivery.Max || out.Elapsed <= 0 {
		t.Errorf("%+v", out)
	}
	found, err := c.Offsets(t.Context(), benchTopic, nil, smqpb.OffsetsRequest_END, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int32]int64{}
	for _, end := range found {
		ends[end.Partition] = end.Offset
	}
	again, err := c.NewSubscriber(t.Context(), benchTopic, client.SubscriberOptions{Start: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var reading Reading
	out, err = reading.Read(t.Context(), again, ends)
	if err != nil || out.Messages != 10_010 || out.Bytes != 1_001_000 || reading.Messages() != 10_010 {
		t.Errorf("%v, %+v", err, out)
	}
}

// A topic that goes away ends a run with the reason.
func TestTheTopicIsDeleted(t *testing.T) {
	c := cluster(t, 2)
	sub, err := c.NewSubscriber(t.Context(), benchTopic, client.SubscriberOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	r, err := NewRun(Options{Size: 100, InFlight: 10, Producers: 1, Duration: time.Hour, Settle: time.Minute}, 99, opener(t, c))
	if err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- c.DeleteTopic(t.Context(), benchTopic) }()
	if _, err = r.EndToEnd(t.Context(), sub); !errors.Is(err, smq.ErrNotFound) {
		t.Errorf("ended with %v", err)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

// unread gives nothing, ever.
type unread struct{}

func (unread) Poll(ctx context.Context) (*client.Fetch, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Messages that are acked and do not come are missing.
func TestMissing(t *testing.T) {
	c := cluster(t, 2)
	r, err := NewRun(Options{Size: 100, Producers: 1, Messages: 10, Settle: time.Millisecond}, 99, opener(t, c))
	if err != nil {
		t.Fatal(err)
	}
	r.options.Settle = time.Minute // for the acks
	r.start()
	if err := r.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	rc := &receiver{run: r, latencies: newLatencies(), tally: newTally()}
	rc.tally.add(3)
	if err := rc.settle(r.Acked(), time.Millisecond, nil); err != nil {
		t.Error(err)
	}
	if out := rc.result(r.result()); out.Missing != 7 || out.Errors() != 7 || out.Messages != 0 {
		t.Errorf("%+v", out)
	}
	var reading Reading
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := reading.Read(ctx, unread{}, map[int32]int64{0: 10, 1: 0}); err != nil || out.Messages != 0 {
		t.Errorf("%v, %+v", err, out)
	}
}
