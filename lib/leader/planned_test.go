package leader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// segments are the live ones.
func (b *bed) segments(topicName string) ([]*smqpb.Segment, error) {
	resp, err := b.leader.DescribeTopic(b.t.Context(), &smqpb.DescribeTopicRequest{Topic: topicName})
	return resp.GetLayout().GetSegments(), err
}

// live are the segments, which there have to be n of.
func (b *bed) live(topicName string, n int) []*smqpb.Segment {
	b.t.Helper()
	all, err := b.segments(topicName)
	if err != nil || len(all) != n {
		b.t.Fatalf("%d segments, want %d: %v, %v", len(all), n, all, err)
	}
	return all
}

func (b *bed) splitAt(topicName string, id uint64, at smq.Partition) error {
	_, err := b.leader.SplitSegment(b.t.Context(), &smqpb.SplitSegmentRequest{Topic: topicName, Segment: id, At: at})
	return err
}

func (b *bed) merge(topicName string, ids ...uint64) error {
	_, err := b.leader.MergeSegments(b.t.Context(), &smqpb.MergeSegmentsRequest{Topic: topicName, Segments: ids})
	return err
}

// causes are those of the topic's layout versions.
func (b *bed) causes(c catalog.Config) (causes []layout.Cause) {
	b.t.Helper()
	for v := uint64(1); ; v++ {
		l, err := catalog.ReadVersion(b.t.Context(), b.st, c.Topic, c.ID, v)
		if errors.Is(err, smq.ErrNotFound) {
			return causes
		}
		if err != nil {
			b.t.Fatal(err)
		}
		causes = append(causes, l.Cause)
	}
}

// wantCauses checks how the layout came about, from its third version on: two
// create it and assign an owner.
func (b *bed) wantCauses(c catalog.Config, want ...layout.Cause) {
	b.t.Helper()
	got := b.causes(c)
	if len(got) < 2 || len(got)-2 != len(want) {
		b.t.Fatalf("causes %v, want %v", got, want)
	}
	for i, c := range want {
		if got[i+2] != c {
			b.t.Fatalf("causes %v, want %v", got, want)
		}
	}
}

// divided is a topic of eight partitions in two segments, and something in
// either.
func (b *bed) divided() (c catalog.Config, first, second *smqpb.Segment) {
	b.t.Helper()
	c = b.create("t", 8)
	b.publish("t", 1, "low")
	if err := b.splitAt("t", b.live("t", 1)[0].GetId(), 4); err != nil {
		b.t.Fatal(err)
	}
	b.publish("t", 1, "low")
	b.publish("t", 6, "high")
	s := b.live("t", 2)
	return c, s[0], s[1]
}

func TestP3P6SplitAndMergeByHand(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c, first, second := b.divided()
		if first.GetHi() != 4 || second.GetLo() != 4 || first.GetOwner() != string(id("a")) || second.GetOwner() != string(id("b")) {
			b.t.Fatalf("after the split: %v, %v", first, second)
		}
		// The order in which they are named does not matter.
		if err := b.merge("t", second.GetId(), first.GetId()); err != nil {
			b.t.Fatal(err)
		}
		if s := b.live("t", 1)[0]; s.GetOwner() != string(id("a")) || len(s.GetPredecessors()) != 2 {
			b.t.Fatalf("after the merge: %v", s)
		}
		b.publish("t", 1, "low")
		b.publish("t", 6, "high")
		b.wantCauses(c, layout.Split, layout.Merge)
		b.check("t")
	})
}

// The whole goes to the owner that carries most of it, wherever that one's part
// lies, or to another when that one takes nothing.
func TestAMergeByHandGoesWhereTheLoadIs(t *testing.T) {
	for _, leaving := range []bool{false, true} {
		bubble(t, []string{"a", "b"}, func(b *bed) {
			c, first, second := b.divided()
			b.rush(5*time.Second, map[catalog.Config]map[int32]float64{c: {1: 1e3, 6: 5e3}})
			want := "b"
			if leaving {
				b.drain("b")
				want = "a"
			}
			if err := b.merge("t", first.GetId(), second.GetId()); err != nil {
				b.t.Fatal(err)
			}
			if s := b.live("t", 1)[0]; s.GetOwner() != string(id(want)) {
				b.t.Errorf("b, which takes segments: %v, carries most; the whole went to %s", !leaving, s.GetOwnerAddress())
			}
			b.check("t")
		})
	}
}

func TestByHandRefuses(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		_, first, second := b.divided()
		if err := b.splitAt("t", second.GetId(), 6); err != nil {
			b.t.Fatal(err)
		}
		last := b.live("t", 3)[2].GetId()
		before := b.lookupOnly("t").GetLayout().GetVersion()
		for _, test := range []struct {
			what string
			err  error
			want error
		}{
			{"split in a topic unknown", b.splitAt("u", 1, 1), smq.ErrNotFound},
			{"split what was replaced", b.splitAt("t", second.GetId(), 6), smq.ErrNotFound},
			{"split what never was", b.splitAt("t", 99, 6), smq.ErrNotFound},
			{"split at the first partition", b.splitAt("t", last, 6), smq.ErrInvalid},
			{"split behind the last partition", b.splitAt("t", last, 8), smq.ErrInvalid},
			{"split in another segment", b.splitAt("t", last, 2), smq.ErrInvalid},
			{"merge one", b.merge("t", last), smq.ErrInvalid},
			{"merge one with itself", b.merge("t", last, last), smq.ErrInvalid},
			{"merge what is apart", b.merge("t", first.GetId(), last), smq.ErrInvalid},
			{"merge what was replaced", b.merge("t", first.GetId(), second.GetId()), smq.ErrNotFound},
		} {
			wantErr(b.t, test.what, test.err, test.want)
		}
		if now := b.lookupOnly("t").GetLayout().GetVersion(); now != before {
			b.t.Fatalf("the layout has gone from version %d to %d", before, now)
		}
	})
}

// Without a broker to own the successors nothing is sealed.
func TestNothingIsSealedForNobody(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c, first, second := b.divided()
		b.drain("a")
		wantErr(b.t, "split", b.splitAt("t", first.GetId(), 2), smq.ErrUnavailable)
		wantErr(b.t, "merge", b.merge("t", first.GetId(), second.GetId()), smq.ErrUnavailable)
		b.publish("t", 1, "low")
		b.wantCauses(c, layout.Split)
	})
}

// An empty segment that continues from the same seal as its neighbour cannot be
// joined with it; that is found out before the neighbour is sealed.
func TestAMergeThatCannotBeSealsNothing(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		now, _, err := catalog.Latest(b.t.Context(), b.st, c.Topic, c.ID, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		seal, err := b.at("a").logs[logKey(c.ID, 2)].Seal(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		b.leader.Stop()
		next, err := now.Next(layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{catalog.Sealed(seal)}, Successors: []layout.Successor{
			{Range: smq.Range{Lo: 0, Hi: 4}}, {Range: smq.Range{Lo: 4, Hi: 8}, Owner: layout.Member{Broker: id("a"), Address: "a:7310"}},
		}}, layout.Stamp{Leader: id("earlier")})
		if err == nil {
			err = catalog.WriteVersion(b.t.Context(), b.st, c.Topic, c.ID, next)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		b.lead(b.st.Handle())
		b.publish("t", 6, "two")
		wantErr(b.t, "merge", b.merge("t", 3, 4), smq.ErrInvalid)
		b.publish("t", 6, "three")
		b.wantCauses(c, layout.Split)
	})
}

// The first of two segments to merge does not wait for ever for the second.
func TestASlowSealEndsAMerge(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c, first, second := b.divided()
		b.at("b").beforeSeal = func(context.Context, smq.SegmentID) { <-time.After(1800 * time.Millisecond) }
		begin := time.Now()
		merged := make(chan error)
		go func() { merged <- b.merge("t", first.GetId(), second.GetId()) }()
		synctest.Wait()
		b.publish("t", 1, "low") // finds the first one sealed, and waits for its successor
		if waited := time.Since(begin); waited < time.Second || waited > 1200*time.Millisecond {
			b.t.Errorf("publishers waited for %v", waited)
		}
		wantErr(b.t, "merge", <-merged, smq.ErrUnavailable)
		b.publish("t", 6, "high")
		b.live("t", 2)
		b.wantCauses(c, layout.Split, layout.Roll, layout.Roll)
		b.check("t")
	})
}

// Whoever meets the segment sealed before the layout is changed waits for the
// split; it does not make a plain successor of its own.
func TestALookupInTheMiddleOfASplit(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "low")
		s := b.live("t", 1)[0]
		b.at("a").beforeSeal = func(ctx context.Context, _ smq.SegmentID) {
			if _, err := b.at("a").logs[logKey(c.ID, smq.SegmentID(s.GetId()))].Seal(ctx); err != nil {
				b.t.Error(err)
			}
			<-time.After(time.Second)
		}
		split := make(chan error)
		go func() { split <- b.splitAt("t", s.GetId(), 4) }()
		synctest.Wait()
		b.publish("t", 1, "low")
		wantErr(b.t, "split", <-split, nil)
		b.wantCauses(c, layout.Split)
		b.check("t")
	})
}

// The owner does not answer, and is not known to be dead.
func TestASplitWithoutTheOwner(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "low")
		s := b.live("t", 1)[0]
		b.at("a").beforeSeal = func(ctx context.Context, _ smq.SegmentID) { <-ctx.Done() }
		wantErr(b.t, "split", b.splitAt("t", s.GetId(), 4), nil)
		b.publish("t", 1, "low")
		b.publish("t", 6, "high")
		b.wantCauses(c, layout.Split)
		b.check("t")
	})
}

// The owner dies while it is asked to seal: its failover waits for the split.
func TestTheOwnerDiesInASplit(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "low")
		s := b.live("t", 1)[0]
		b.at("a").beforeSeal = func(ctx context.Context, _ smq.SegmentID) {
			b.kill("a")
			<-ctx.Done()
		}
		wantErr(b.t, "split", b.splitAt("t", s.GetId(), 4), nil)
		synctest.Wait()
		for _, s := range b.live("t", 2) {
			if s.GetOwner() == string(id("a")) {
				b.t.Errorf("a dead owner: %v", s)
			}
		}
		b.publish("t", 1, "low")
		b.publish("t", 6, "high")
		b.wantCauses(c, layout.Split)
		b.check("t")
	})
}

// Of two different splits of a segment one is refused; twice the same is one.
func TestTwoSplitsOfOneSegment(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "low")
		s := b.live("t", 1)[0].GetId()
		b.at("a").beforeSeal = func(context.Context, smq.SegmentID) { <-time.After(100 * time.Millisecond) }
		first, same := make(chan error), make(chan error)
		go func() { first <- b.splitAt("t", s, 4) }()
		go func() { same <- b.splitAt("t", s, 4) }()
		synctest.Wait()
		begin := time.Now()
		wantErr(b.t, "another split", b.splitAt("t", s, 5), smq.ErrConflict)
		if waited := time.Since(begin); waited > 0 {
			b.t.Errorf("it was refused after %v only", waited)
		}
		wantErr(b.t, "split", <-first, nil)
		wantErr(b.t, "the same split", <-same, nil)
		b.wantCauses(c, layout.Split)
	})
}

// An earlier leader, which has not noticed yet, gives the segment a successor in
// the middle of a split: there is no split then.
func TestAnEarlierLeaderInTheMiddleOfASplit(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "low")
		s := b.live("t", 1)[0].GetId()
		b.lead(b.st.Handle())
		b.at("a").beforeSeal = func(ctx context.Context, _ smq.SegmentID) {
			now, _, err := catalog.Latest(ctx, b.st, c.Topic, c.ID, 0)
			if err != nil {
				b.t.Fatal(err)
			}
			seal, err := b.at("a").logs[logKey(c.ID, smq.SegmentID(s))].Seal(ctx)
			if err != nil {
				b.t.Fatal(err)
			}
			next, err := now.Next(layout.Replace(layout.Roll, []layout.Sealed{catalog.Sealed(seal)}, []layout.Member{now.Segments[0].Owner}), now.Stamp)
			if err == nil {
				err = catalog.WriteVersion(ctx, b.st, c.Topic, c.ID, next)
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}
		wantErr(b.t, "split", b.splitAt("t", s, 4), smq.ErrConflict)
		b.live("t", 1)
		b.publish("t", 1, "low")
		b.wantCauses(c, layout.Roll)
		b.check("t")
	})
}

func TestSplitAndDelete(t *testing.T) {
	for _, deleteAfter := range []time.Duration{0, 150 * time.Millisecond} {
		bubble(t, []string{"a", "b"}, func(b *bed) {
			c := b.create("t", 8)
			b.publish("t", 1, "low")
			s := b.live("t", 1)[0].GetId()
			b.at("a").beforeSeal = func(context.Context, smq.SegmentID) { <-time.After(100 * time.Millisecond) }
			split := make(chan error)
			go func() { split <- b.splitAt("t", s, 4) }()
			synctest.Wait()
			<-time.After(deleteAfter)
			if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t"}); err != nil {
				b.t.Fatal(err)
			}
			if err := <-split; err != nil && !errors.Is(err, smq.ErrNotFound) && !errors.Is(err, smq.ErrUnavailable) {
				b.t.Errorf("split: %v", err)
			}
			_, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t", Assign: true})
			wantErr(b.t, "lookup", err, smq.ErrNotFound)
			if ids, err := catalog.Incarnations(b.t.Context(), b.st, c.Topic); err != nil || len(ids) != 0 {
				b.t.Errorf("left: %v, %v", ids, err)
			}
		})
	}
}

// A drain that comes in the middle of a split is done when the split is: its
// successors are owned by those that stay.
func TestSplitAndDrain(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "low")
		s := b.live("t", 1)[0].GetId()
		b.at("a").beforeSeal = func(context.Context, smq.SegmentID) { <-time.After(100 * time.Millisecond) }
		split := make(chan error)
		go func() { split <- b.splitAt("t", s, 4) }()
		synctest.Wait()
		b.drain("a")
		if _, err := b.report(c, s, layout.Drain, "a"); err != nil {
			b.t.Fatal(err)
		}
		wantErr(b.t, "split", <-split, nil)
		for _, s := range b.live("t", 2) {
			if s.GetOwner() != string(id("b")) {
				b.t.Errorf("owner: %v", s)
			}
		}
		b.wantCauses(c, layout.Split)
	})
}
