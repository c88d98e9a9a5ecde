package leader_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// given makes topics whose segments are given to broker a, though nobody has
// opened them; the other brokers take segments from then on.
func (b *bed) given(names ...string) (all []catalog.Config) {
	b.t.Helper()
	for address, p := range b.peers {
		p.draining = address != "a:7310"
	}
	b.leader.SetBrokers(b.brokers())
	for _, name := range names {
		c := b.create(name, 8)
		if s := b.lookup(name, 0).GetLayout().GetSegments()[0]; s.GetOwnerAddress() != "a:7310" {
			b.t.Fatalf("the owner is %v", s)
		}
		all = append(all, c)
	}
	for _, p := range b.peers {
		p.draining = false
	}
	b.leader.SetBrokers(b.brokers())
	return all
}

func (b *bed) handOver(open ...*smqpb.SegmentRef) *smqpb.HandOverResponse {
	b.t.Helper()
	resp, err := b.leader.HandOver(b.t.Context(), &smqpb.HandOverRequest{Broker: string(id("a")), Open: open})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

// owner is the address of the owner of a topic's only segment.
func (b *bed) owner(topicName string) string {
	b.t.Helper()
	return b.live(topicName, 1)[0].GetOwnerAddress()
}

// A broker that drains hands over what it has open; the leader what it was given
// besides.
func TestHandOver(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		all := b.given("open", "unopened", "unheard")
		b.publish("open", 1, "one")
		synctest.Wait() // until the sweep is over
		open := &smqpb.SegmentRef{TopicId: string(all[0].ID), Segment: b.live("open", 1)[0].GetId()}
		for range 2 {
			if resp := b.handOver(open); resp.GetSegmentsLeft() != 0 || resp.GetIncomplete() {
				b.t.Errorf("got %v", resp)
			}
			if got := b.owner("open"); got != "a:7310" {
				b.t.Errorf("what it hands over itself went to %s", got)
			}
			for _, c := range all[1:] {
				if got := b.owner(c.Topic.Name); got == "a:7310" {
					b.t.Errorf("%s is left to it", c.Topic)
				}
				b.wantCauses(c, layout.Drain)
			}
		}
		// It is given nothing more, though the masters have not heard of its drain.
		b.leader.SetBrokers(b.brokers())
		for i := range 6 {
			name := fmt.Sprint("late", i)
			b.create(name, 8)
			if got := b.lookup(name, 0).GetLayout().GetSegments()[0].GetOwnerAddress(); got == "a:7310" {
				b.t.Errorf("%s is given to a broker that drains", name)
			}
		}
		b.publish("unheard", 1, "two")
		b.check("unheard")
		b.check("open")
	})
}

// slowLayouts is a store in which layout versions behind the first wait to be
// created.
type slowLayouts struct {
	store.Store
	gate chan struct{}
}

func (s slowLayouts) Create(ctx context.Context, path string, content []store.Part) error {
	if strings.Contains(path, "/layout/") && !strings.HasSuffix(path, "/00000000000000000001.json") {
		<-s.gate
	}
	return s.Store.Create(ctx, path, content)
}

// A segment that the leader is just giving to the broker when it begins to drain is
// handed over too.
func TestHandOverOfWhatIsJustBeingGiven(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		gate := make(chan struct{})
		b.lead(slowLayouts{b.st.Handle(), gate})
		c := b.create("t", 8)
		given := make(chan error, 1)
		go func() {
			_, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t", Assign: true})
			given <- err
		}()
		synctest.Wait() // a is chosen, and the version on its way
		b.peers["b:7310"] = &peer{bed: b, id: id("b"), address: "b:7310"}
		b.leader.SetBrokers(b.brokers())
		left := make(chan int32, 1)
		go func() { left <- b.handOver().GetSegmentsLeft() }()
		synctest.Wait()
		close(gate)
		if err := <-given; err != nil {
			b.t.Fatal(err)
		}
		if n := <-left; n != 0 || b.owner("t") != "b:7310" {
			b.t.Errorf("%d segments are left, the owner is %s", n, b.owner("t"))
		}
		if got := b.causes(c); len(got) != 3 || got[1] != layout.Assign || got[2] != layout.Drain {
			b.t.Errorf("causes %v", got)
		}
	})
}

// What cannot be handed over is told.
func TestHandOverSaysWhatIsLeft(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		b.given("t", "u")
		b.drain("b")
		if resp := b.handOver(); resp.GetSegmentsLeft() != 2 {
			b.t.Errorf("nobody takes them: %v", resp)
		}
		b.at("b").draining = false
		b.leader.SetBrokers(b.brokers())
		b.lead(blind{b.st.Handle()}) // it has not seen all topics
		b.lookup("t", 0)
		if resp := b.handOver(); resp.GetSegmentsLeft() != 0 || !resp.GetIncomplete() {
			b.t.Errorf("by a new leader: %v", resp)
		}
		b.lead(b.st.Handle())
		<-time.After(time.Second)
		if resp := b.handOver(); resp.GetSegmentsLeft() != 0 || resp.GetIncomplete() || b.owner("u") != "b:7310" {
			b.t.Errorf("in the end: %v, the owner is %s", resp, b.owner("u"))
		}
	})
}

// A segment that nobody has opened is not lost with its followers.
func TestHandOverWithoutFollowers(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		c := b.createReplicated("t", 8, 2)
		s := b.lookup("t", 0).GetLayout().GetSegments()[0]
		if s.GetOwnerAddress() != "a:7310" || len(s.GetReplicas()) != 1 {
			b.t.Fatalf("got %v", s)
		}
		delete(b.peers, s.GetReplicas()[0].GetAddress()) // it has left
		b.leader.SetBrokers(b.brokers())
		if resp := b.handOver(); resp.GetSegmentsLeft() != 0 {
			b.t.Errorf("got %v", resp)
		}
		b.wantCauses(c, layout.Drain)
		if sealed := b.latest("t").GetSealed(); len(sealed) != 1 || sealed[0].GetUnclean() {
			b.t.Errorf("sealed: %v", sealed)
		}
	})
}
