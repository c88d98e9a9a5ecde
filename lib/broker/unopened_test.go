package broker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// split has the leader split the first partition's segment.
func (b *bed) split(at int32) {
	b.t.Helper()
	_, s := b.live(0)
	err := b.cluster().Leader(within(b.t), func(ctx context.Context, l smqpb.LeaderClient) error {
		_, err := l.SplitSegment(ctx, &smqpb.SplitSegmentRequest{Topic: topicT.String(), Segment: s.GetId(), At: at})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// A broker that is leaving has handed over all that it owns before it is gone,
// also what nobody has ever asked it for.
func TestDrainOfSegmentsThatNobodyAskedFor(t *testing.T) {
	b := newBed(t, "a")
	c := b.connect(4)
	config, _ := b.live(0)
	b.split(2)
	w := b.write(c, 4)
	w.send(1) // the other half stays as it is
	w.flush()
	b.start("b")
	if err := b.broker("a:7310").Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	id := smq.TopicID(config.GetTopicId())
	last, _, err := catalog.Latest(t.Context(), b.st, topicT, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range last.Segments {
		if s.Owner.Address != "b:7310" {
			t.Errorf("segment %d is left to %s", s.ID, s.Owner.Address)
		}
	}
	for v := range last.Version {
		if lay, err := catalog.ReadVersion(t.Context(), b.st, topicT, id, v+1); err != nil || lay.Cause == layout.Failover {
			t.Errorf("version %d: %v, %v; nothing is to fail over", v+1, lay.Cause, err)
		}
	}
	w.send(20)
	w.flush()
	b.read(c).check(w)
}

// A broker that is leaving is also rid of what the leader has given to it and
// nobody has told it of: segments of topics that it has never heard of.
func TestDrainOfTopicsThatItHasNeverHeardOf(t *testing.T) {
	b := newBed(t, "b", "a") // b leads
	c := b.connect(0)
	var topics []smq.Topic
	given := 0
	for i := range 8 {
		topic := smq.Topic{Namespace: smq.DefaultNamespace, Name: fmt.Sprint("t", i)}
		if _, err := c.CreateTopic(within(t), topic, client.TopicOptions{Partitions: 4}); err != nil {
			t.Fatal(err)
		}
		resp := b.lookup(&smqpb.LookupRequest{Topic: topic.String(), Assign: true})
		if resp.GetLayout().GetSegments()[0].GetOwnerAddress() == "a:7310" {
			given++
		}
		topics = append(topics, topic)
	}
	if given == 0 {
		t.Fatal("nothing is given to a")
	}
	id := string(b.broker("a:7310").ID())
	var first *smqpb.DrainBrokerResponse
	err := b.cluster().Leader(within(t), func(ctx context.Context, l smqpb.LeaderClient) (err error) {
		first, err = l.DrainBroker(ctx, &smqpb.DrainBrokerRequest{Broker: id})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if first.GetDone() { // it says so when it is, and not before
		b.wantHandedOver(topics)
	}
	<-b.broker("a:7310").Drained()
	b.wantHandedOver(topics)
}

// wantHandedOver checks that the layouts of topics list nothing of broker a, and
// that nothing was failed over.
func (b *bed) wantHandedOver(topics []smq.Topic) {
	b.t.Helper()
	for _, topic := range topics {
		config, err := catalog.ReadConfig(b.t.Context(), b.st, topic)
		if err != nil {
			b.t.Fatal(err)
		}
		page, err := catalog.Versions(b.t.Context(), b.st, topic, config.ID, 0, 100)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, v := range page.Versions {
			if v.Cause == layout.Failover {
				b.t.Errorf("version %d of %s is a failover", v.Version, topic)
			}
		}
		if s := page.Versions[len(page.Versions)-1].Segments[0]; s.Owner.Address == "a:7310" {
			b.t.Errorf("segment %d of %s is left to the broker that has left", s.ID, topic)
		}
	}
}

// refusing is a store that refuses to create the first file of a segment.
type refusing struct {
	store.Store
	done atomic.Bool
}

func (r *refusing) Create(ctx context.Context, path string, content []store.Part) error {
	if strings.Contains(path, "/segments/") && !r.done.Swap(true) {
		return smq.ErrUnavailable
	}
	return r.Store.Create(ctx, path, content)
}

// What a broker says of a segment that it cannot open: that it never will have anything
// of it only when that is so for good. After a store's failure its next attempt
// succeeds, and what it takes in then must not be sealed away.
func TestReportsOfSegmentsThatCannotBeOpened(t *testing.T) {
	tests := map[string]struct {
		prepare     func(b *bed)
		emptyHanded bool
	}{
		"the store fails": {func(b *bed) {
			b.wrap = func(_ string, st store.Store) store.Store { return &refusing{Store: st} }
		}, false},
		"another broker has opened it": {func(*bed) {}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			test.prepare(b)
			b.sealed = make(chan *smqpb.ReportSealedRequest, 10)
			b.start("a")
			c := b.connect(4)
			config, s := b.live(0)
			if test.emptyHanded {
				opened, err := seglog.Open(t.Context(), seglog.Config{
					Store: b.st.Handle(), Broker: "00000000000000bb", Shared: seglog.NewShared(seglog.SharedOptions{}),
					Ident: seglog.Ident{Topic: topicT, TopicID: smq.TopicID(config.GetTopicId()), Segment: smq.SegmentID(s.GetId()), Range: smq.Range{Lo: s.GetLo(), Hi: s.GetHi()}},
				})
				if err != nil {
					t.Fatal(err)
				}
				opened.Close()
			}
			w := b.write(c, 4)
			w.send(20)
			if r := <-b.sealed; r.GetSegment() != s.GetId() || r.GetCause() != string(layout.Failover) || r.GetEmptyHanded() != test.emptyHanded {
				t.Errorf("the leader is told %v", r)
			}
			w.flush()
			b.read(c).check(w)
		})
	}
}
