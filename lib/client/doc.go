// Package client is how Go programs use a cluster: publish messages, subscribe
// to them, and administer topics.
//
//	c, err := client.Connect(ctx, client.Config{Masters: []string{"127.0.0.1:7300"}})
//	defer c.Close()
//
//	p, err := c.NewPublisher(ctx, topic, client.PublisherOptions{})
//	err = p.Publish(ctx, &client.Message{Key: key, Value: value, Partition: client.AnyPartition})
//	err = p.Close(ctx) // waits for the acks
//
//	s, err := c.NewSubscriber(ctx, topic, client.SubscriberOptions{Start: client.Earliest()})
//	fetch, err := s.Poll(ctx)
//	for {
//		r, ok := fetch.Next()
//		…
//	}
//
// # At a glance
//
//	Connect(ctx, Config{Masters, Logger, Dial, Registerer}) (*Client, error)
//	(*Client) Close() error
//
//	(*Client) CreateTopic(ctx, topic, TopicOptions{Partitions, Key}) (*smqpb.TopicConfig, error)
//	(*Client) DeleteTopic(ctx, topic) error
//	(*Client) ListTopics(ctx, namespace, ListOptions{NamesOnly}) iter.Seq2[*smqpb.TopicSummary, error]
//	(*Client) DescribeTopic(ctx, topic) (*smqpb.DescribeTopicResponse, error)
//	(*Client) Offsets(ctx, topic, partitions, smqpb.OffsetsRequest_Kind, time.Time) ([]PartitionOffset, error)
//	(*Client) Cluster(ctx) (*smqpb.ClusterInfo, error)
//	(*Client) Leader(ctx, func(ctx, smqpb.LeaderClient) error) error
//	(*Client) Broker(ctx, address) (smqpb.BrokerClient, error)
//
//	(*Client) NewPublisher(ctx, topic, PublisherOptions) (*Publisher, error)
//	(*Publisher) Publish(ctx, *Message) error
//	(*Publisher) PublishSync(ctx, *Message) (partition int32, offset int64, err error)
//	(*Publisher) Flush(ctx) error
//	(*Publisher) Close(ctx) error
//	(*Publisher) Topic() *smqpb.TopicConfig
//
//	(*Client) NewSubscriber(ctx, topic, SubscriberOptions) (*Subscriber, error)
//	(*Subscriber) Poll(ctx) (*Fetch, error)   // messages, or Fetch.CaughtUp
//	(*Fetch) Next() (record.Record, bool)     // and Fetch.Err, .Partition, .NextOffset, .CaughtUp
//	(*Subscriber) Seek(partition int32, offset int64) error
//	(*Subscriber) Stop(partition int32)
//	(*Subscriber) Positions() map[int32]int64
//	(*Subscriber) Lag(ctx) (map[int32]int64, error)
//	(*Subscriber) Topic() *smqpb.TopicConfig
//	(*Subscriber) Close() error
//
// # Publishing
//
// A Publisher builds batches, compresses them and sends each to the broker that
// owns the partition's segment; it finds that broker, and the next one when a
// segment is sealed, split, merged or lost, by itself. It goes on trying until
// a batch's delivery timeout. Every message's fate is told once, in Results: it
// is acked, or it has failed and is certainly not in the log (ErrNotStored), or
// it has failed and may be (ErrUnknown).
//
// Invariants, per partition:
//
//  1. messages enter the log in the order in which Publish was called;
//  2. a message that is sent again is not stored again: batches bear a producer
//     id and sequences, and their bytes never change once they were sent;
//  3. at most five batches are sent and not acked;
//  4. a batch is given up only together with everything after it: what follows
//     starts anew, at sequence 0 of a higher epoch, after which nothing of the
//     lower one can be stored any more.
//
// A replicated ack that arrives more than a second after its batch was sent
// says nothing any more about the replicas; the batch is sent again.
//
// # Subscribing
//
// A Subscriber receives some or all partitions of a topic, each from a position
// on, in order and without gaps or repeats, across brokers' failures. Positions
// are the caller's to keep.
//
// # Goroutines
//
// Client and Publisher are safe for concurrent use. A Subscriber belongs to one
// goroutine at a time, except for Close and Positions. A publisher and a
// subscriber run two goroutines for each broker that they talk to, and never
// one for each partition, so topics may be wide.
package client
