package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var orders = smq.Topic{Namespace: smq.DefaultNamespace, Name: "orders"}

func Example() {
	cfg, stop := client.StartCluster() // your own: client.Config{Masters: []string{"127.0.0.1:7300"}}
	defer stop()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	p, err := c.NewPublisher(ctx, orders, client.PublisherOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range []string{"tea", "milk", "sugar"} {
		err := p.Publish(ctx, &client.Message{Key: []byte("customer-7"), Value: []byte(item), Partition: client.AnyPartition})
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil { // waits for the acks
		log.Fatal(err)
	}

	s, err := c.NewSubscriber(ctx, orders, client.SubscriberOptions{Start: client.Earliest()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for n := 0; n < 3; {
		fetch, err := s.Poll(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for r, ok := fetch.Next(); ok; r, ok = fetch.Next() {
			fmt.Printf("%d: %s wants %s\n", r.Offset, r.Key, r.Value)
			n++
		}
		if fetch.Err() != nil {
			log.Fatal(fetch.Err())
		}
	}
	// Output:
	// 0: customer-7 wants tea
	// 1: customer-7 wants milk
	// 2: customer-7 wants sugar
}

func ExamplePublisher_PublishSync() {
	cfg, stop := client.StartCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	p, err := c.NewPublisher(ctx, orders, client.PublisherOptions{Acks: client.AckStored})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close(ctx)

	partition, offset, err := p.PublishSync(ctx, &client.Message{Value: []byte("hello"), Partition: 3})
	fmt.Println(partition, offset, err)
	// Output: 3 0 <nil>
}

// Results tells what became of every message. Here those that failed are sorted
// by whether they may be published again without risking a duplicate.
func ExamplePublisherOptions_results() {
	cfg, stop := client.StartCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	acked := 0
	p, err := c.NewPublisher(ctx, orders, client.PublisherOptions{
		DeliveryTimeout: 30 * time.Second,
		Results: func(r client.Results) {
			switch {
			case r.Err == nil:
				acked += len(r.Tokens)
			case errors.Is(r.Err, client.ErrNotStored):
				fmt.Println("publish again:", r.Tokens, r.Err)
			default:
				fmt.Println("look whether they are there:", r.Tokens, r.Err)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for line := range uint64(1000) {
		m := client.Message{Value: fmt.Appendf(nil, "line %d", line), Partition: client.AnyPartition, Token: line}
		if err := p.Publish(ctx, &m); err != nil {
			log.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(acked, "acked")
	// Output: 1000 acked
}

// Reading a topic to where it ended at the start, partition by partition.
func ExampleSubscriber_Poll() {
	cfg, stop := client.StartCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ends, err := c.Offsets(ctx, orders, nil, smqpb.OffsetsRequest_END, time.Time{})
	if err != nil {
		log.Fatal(err)
	}
	s, err := c.NewSubscriber(ctx, orders, client.SubscriberOptions{Start: client.Earliest()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for left := len(ends); left > 0; {
		fetch, err := s.Poll(ctx)
		if err != nil {
			log.Fatal(err)
		}
		end := ends[fetch.Partition].Offset
		for r, ok := fetch.Next(); ok && r.Offset < end; r, ok = fetch.Next() {
			fmt.Println(string(r.Value))
		}
		if fetch.NextOffset >= end {
			s.Stop(fetch.Partition)
			left--
		}
	}
	fmt.Println("read to the end")
	// Output: read to the end
}
