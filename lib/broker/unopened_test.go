package broker_test

import (
	"context"
	"testing"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
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
