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
//  1. Messages enter the log in the order in which Publish was called.
//  2. A message that is sent again is not stored again: batches bear a producer
//     id and sequences, and their bytes stay the same from one attempt to the
//     next. They change only if no attempt can have stored them (the broker has
//     forgotten the producer), or to leave out what the broker already holds.
//  3. At most five batches are sent and not acked.
//  4. A batch is given up only together with everything behind it. What follows
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
// # Finding owners
//
// The layout that the leading broker gives is a list of routes: a segment's
// range and its owner's address. A refusal that says that the owner has changed
// (segment sealed, not the owner, draining, not found), or a stream that cannot
// be opened, closes the route until the layout has been looked up; other
// failures close it for 50 ms to 1 s. When a stream breaks that was answered
// before, its broker is tried once more while the layout is looked up. So the
// loss of masters and leader stops nothing that still has its owners. An owner that
// gives no sign of life keeps its streams open; the leading broker is asked to tell
// when it has successors (suspect.go), and then it is left. Whatever
// waits for a route goes on, in its order, when that opens or is replaced.
//
// # Goroutines
//
// Client and Publisher are safe for concurrent use; of a Subscriber, Poll and
// what it gives belong to one goroutine at a time. A publisher or a subscriber
// runs two goroutines for each broker that it talks to and a few more, and keeps
// state only for those partitions that are used, so topics may be wide. One lock
// guards each publisher's and each subscriber's state; it is not held while
// something is sent, compressed or told.
package client
