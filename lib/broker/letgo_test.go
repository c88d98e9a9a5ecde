package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// drains has a broker leave; what it follows must have found its end.
func (b *bed) drains(address string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	if err := b.broker(address).Drain(ctx); err != nil {
		b.t.Errorf("drain of %s: %v", address, err)
	}
}

// An owner that cannot store gives its segment up without a seal of its own. The
// follower, which the leader has fenced, lets go of it nevertheless.
func TestAGivenUpSegmentIsLetGo(t *testing.T) {
	b, gates := gatedBed(t)
	b.stuck = 100 * time.Millisecond
	for _, name := range []string{"a", "b", "c"} {
		b.start(name)
	}
	c := b.connect(4)
	w := b.replicated(c, 4)
	w.send(100)
	w.flush()
	owner, follower, old := b.owner(0), b.followers(0)[0], b.segment(0)
	gates[owner[:1]].shut()
	b.replaced(old, func() { w.send(1) })
	gates[owner[:1]].open()
	w.flush()
	b.drains(follower)
}

// The owner dies and the topic is deleted: a follower finds nothing to seal any
// more, and lets go.
func TestADeletedSegmentIsLetGo(t *testing.T) {
	b, _ := gatedBed(t, "a", "b", "c")
	c := b.connect(4)
	w := b.replicated(c, 4)
	w.send(100)
	w.flush()
	owner, follower := b.owner(0), b.followers(0)[0]
	if owner == b.lookupLeader() {
		for _, other := range []string{"a:7310", "b:7310", "c:7310"} {
			if other != owner && other != follower {
				b.master.lead(other)
			}
		}
	}
	b.kill(owner)
	err := b.cluster().Leader(within(t), func(ctx context.Context, l smqpb.LeaderClient) error {
		_, err := l.DeleteTopic(ctx, &smqpb.DeleteTopicRequest{Topic: topicT.String()})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.drains(follower)
}
