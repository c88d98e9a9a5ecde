package leader_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/dir"
)

const manyTopics = 10_000

// fillStore makes topics of one segment each, owned by one of three brokers.
func fillStore(tb testing.TB, st store.Store, topics int) (all []catalog.Config, brokers []layout.Broker) {
	tb.Helper()
	for _, name := range []string{"a", "b", "c"} {
		brokers = append(brokers, layout.Broker{ID: id(name), Address: name + ":7310"})
	}
	for i := range topics {
		c := catalog.Config{Topic: smq.Topic{Namespace: "ns", Name: fmt.Sprintf("t%05d", i)}, ID: smq.NewTopicID(), Partitions: 64, Replicas: 1, CreatedMS: 1}
		err := catalog.Create(tb.Context(), st, c)
		first, _ := layout.New(c.Partitions, layout.Stamp{Leader: "an earlier one"})
		next, nerr := first.Next(layout.Replace(layout.Assign, []layout.Sealed{layout.EmptyOf(first.Segments[0])}, []layout.Member{brokers[i%3].Member()}), first.Stamp)
		for _, l := range []layout.Layout{first, next} {
			if err == nil {
				err = catalog.WriteVersion(tb.Context(), st, c.Topic, c.ID, l)
			}
		}
		if err != nil || nerr != nil {
			tb.Fatal(err, nerr)
		}
		all = append(all, c)
	}
	return all, brokers
}

func startOver(st store.Store, brokers []layout.Broker) *leader.Leader {
	return leader.Start(leader.Config{
		Store: st, Self: id("leader"), Term: 1, Brokers: brokers,
		Peer: func(context.Context, string) (smqpb.BrokerClient, error) { return nil, smq.ErrUnavailable },
	})
}

// waitFor waits until a watcher has been told of so many topics.
func waitFor(b *testing.B, l *leader.Leader, topics int) {
	ctx, stop := context.WithCancel(b.Context())
	w := &watched{ctx: ctx, stop: stop, updates: make(chan *smqpb.WatchUpdate), end: make(chan error, 1)}
	go func() { w.end <- l.Watch(&smqpb.WatchRequest{Topics: true}, w) }()
	for told := make(map[string]bool); len(told) < topics; {
		for _, t := range (<-w.updates).GetTopics() {
			told[t.GetTopic()] = true
		}
	}
	stop()
	<-w.end
}

// BenchmarkTakeover is a new leader's way to know all topics.
func BenchmarkTakeover(b *testing.B) {
	st, err := dir.Open(b.TempDir(), dir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	_, brokers := fillStore(b, st, manyTopics)
	for b.Loop() {
		l := startOver(st, brokers)
		waitFor(b, l, manyTopics)
		l.Stop()
	}
}

// BenchmarkReport is a full report of a topic of 100,000 busy partitions.
func BenchmarkReport(b *testing.B) {
	bed := benchBed(b)
	s := &smqpb.SegmentLoad{Topic: bed.topics[0].Topic.String(), TopicId: string(bed.topics[0].ID), Segment: 2, Hi: 100_000}
	for p := range int32(100_000) {
		s.Partitions = append(s.Partitions, p)
		s.PartitionMessages = append(s.PartitionMessages, 1)
		s.PartitionBytes = append(s.PartitionBytes, 100)
	}
	for n := uint64(1); b.Loop(); n++ {
		s.PartitionBytes[n%100_000]++
		if _, err := bed.l.ReportLoads(b.Context(), &smqpb.ReportLoadsRequest{Broker: string(id("a")), Sequence: n, Full: true, Segments: []*smqpb.SegmentLoad{s}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReportsOfManyTopics is a second of one of three brokers, each of whose
// segments has one partition with another rate.
func BenchmarkReportsOfManyTopics(b *testing.B) {
	bed := benchBed(b)
	req := &smqpb.ReportLoadsRequest{Broker: string(id("a")), Full: true}
	for i := 0; i < len(bed.topics); i += 3 {
		req.Segments = append(req.Segments, &smqpb.SegmentLoad{
			Topic: bed.topics[i].Topic.String(), TopicId: string(bed.topics[i].ID), Segment: 2, Hi: 64,
			Partitions: []int32{7}, PartitionMessages: []float32{1}, PartitionBytes: []float32{100},
		})
	}
	for b.Loop() {
		req.Sequence++
		for _, s := range req.Segments {
			s.PartitionBytes[0]++
		}
		if _, err := bed.l.ReportLoads(b.Context(), req); err != nil {
			b.Fatal(err)
		}
		req.Full = false
	}
}

type topicsBed struct {
	l      *leader.Leader
	topics []catalog.Config
}

// benchBed is a leader that knows many topics.
func benchBed(b *testing.B) topicsBed {
	st, err := dir.Open(b.TempDir(), dir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	topics, brokers := fillStore(b, st, manyTopics)
	l := startOver(st, brokers)
	b.Cleanup(func() {
		l.Stop()
		_ = st.Close() // it goes with its folder
	})
	waitFor(b, l, manyTopics)
	return topicsBed{l, topics}
}
