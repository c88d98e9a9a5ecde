package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// bubble runs f with a clock of its own.
func bubble(t *testing.T, brokers []string, f func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, brokers...)
		b.lead(b.st.Handle())
		f(b)
	})
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func TestLookupAssignsOnce(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		b.create("t", 100_000)
		none, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t"})
		if err != nil || len(none.GetLayout().GetSegments()) != 1 || none.GetLayout().GetSegments()[0].GetOwner() != "" {
			b.t.Fatalf("without assign: %v, %v", none, err)
		}
		first := b.lookup("t", 0, 99_999)
		if s := first.GetLayout().GetSegments(); len(s) != 1 || s[0].GetOwner() == "" || s[0].GetHi() != 100_000 {
			b.t.Fatalf("assigned: %v", s)
		}
		if again := b.lookup("t", 0); again.GetLayout().GetVersion() != first.GetLayout().GetVersion() {
			b.t.Fatalf("looked up again: %v", again)
		}
	})
}

func TestLookupRefuses(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		for _, test := range []struct {
			req  *smqpb.LookupRequest
			want error
		}{
			{&smqpb.LookupRequest{Topic: "u"}, smq.ErrNotFound},
			{&smqpb.LookupRequest{Topic: "a/b/c"}, smq.ErrInvalid},
			{&smqpb.LookupRequest{Topic: "t", TopicId: "0123"}, smq.ErrNotFound},
			{&smqpb.LookupRequest{Topic: "t", Assign: true, Partitions: []int32{8}}, smq.ErrInvalid},
			{&smqpb.LookupRequest{Topic: "t", Assign: true, Partitions: []int32{-1}}, smq.ErrInvalid},
		} {
			_, err := b.leader.Lookup(b.t.Context(), test.req)
			wantErr(b.t, test.req.String(), err, test.want)
		}
	})
}

func TestLookupWithoutBrokers(t *testing.T) {
	bubble(t, nil, func(b *bed) {
		b.create("t", 8)
		_, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t", Assign: true})
		wantErr(b.t, "lookup", err, smq.ErrUnavailable)
	})
}

// New segments spread before any broker has told its load.
func TestAssignmentSpreads(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		owned := make(map[string]int)
		for i := range 30 {
			name := fmt.Sprint("t", i)
			b.create(name, 8)
			owned[b.lookup(name, 0).GetLayout().GetSegments()[0].GetOwner()]++
		}
		for owner, n := range owned {
			if n != 10 {
				b.t.Errorf("broker %s owns %d of 30", owner, n)
			}
		}
	})
}

func TestAClientSeesASealBeforeTheLeader(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		b.publish("t", 3, "one")
		for _, l := range b.at("a").logs {
			if _, err := l.Seal(b.t.Context()); err != nil {
				b.t.Fatal(err)
			}
		}
		b.publish("t", 3, "two") // finds the segment sealed and says so
		now := b.lookup("t", 0).GetLayout()
		if now.GetCause() != string(layout.Roll) || now.GetSegments()[0].GetOwner() != string(id("a")) {
			b.t.Fatalf("layout: %v", now)
		}
		if v := b.check("t"); v.Messages != 2 {
			b.t.Fatalf("%+v", v)
		}
	})
}

// What a client takes for sealed and is not stays as it is.
func TestAClientIsWrongAboutASeal(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		b.publish("t", 3, "one")
		before := b.lookup("t", 0).GetLayout()
		after := b.lookup("t", smq.SegmentID(before.GetSegments()[0].GetId())).GetLayout()
		if after.GetVersion() != before.GetVersion() {
			b.t.Fatalf("layout: %v", after)
		}
	})
}

func TestP1FailoverOfADeadBroker(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		for i := range 20 {
			b.create(fmt.Sprint("t", i), 8)
			b.publish(fmt.Sprint("t", i), 3, "before")
		}
		b.kill("a")
		synctest.Wait() // the leader fails over unasked
		for i := range 20 {
			name := fmt.Sprint("t", i)
			resp, err := b.leader.DescribeTopic(b.t.Context(), &smqpb.DescribeTopicRequest{Topic: name})
			if err != nil || resp.GetLayout().GetSegments()[0].GetOwner() != string(id("b")) {
				b.t.Fatalf("%v: %v, %v", name, resp, err)
			}
			b.publish(name, 3, "after")
			b.check(name)
		}
	})
}

// A new leader that knows no topic finds a dead broker's segments.
func TestANewLeaderSweepsForOrphans(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("ns/t", 8)
		b.publish("ns/t", 3, "before")
		b.leader.Stop()
		b.kill("a")
		b.peers["b:7310"] = &peer{bed: b, id: id("b"), address: "b:7310", logs: b.at("a").logs}
		b.lead(b.st.Handle())
		synctest.Wait()
		v := b.check("ns/t")
		h, err := catalog.Extend(b.t.Context(), b.st, v.Config.Topic, v.Config.ID, layout.History{})
		if err != nil || h.Last.Cause != layout.Failover || h.Last.Segments[0].Owner.Broker != id("b") {
			b.t.Fatalf("%+v, %v", h.Last, err)
		}
	})
}

// With nobody to take over nothing is done, until somebody comes.
func TestFailoverWaitsForABroker(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		b.publish("t", 3, "before")
		b.kill("a")
		<-time.After(time.Hour)
		if v := b.lookupOnly("t"); v.GetLayout().GetSegments()[0].GetOwner() != string(id("a")) {
			b.t.Fatalf("%v", v)
		}
		b.peers["b:7310"] = &peer{bed: b, id: id("b"), address: "b:7310", logs: b.at("a").logs}
		b.leader.SetBrokers(b.brokers())
		synctest.Wait()
		if v := b.lookupOnly("t"); v.GetLayout().GetSegments()[0].GetOwner() != string(id("b")) {
			b.t.Fatalf("%v", v)
		}
	})
}

func (b *bed) lookupOnly(topicName string) *smqpb.LookupResponse {
	b.t.Helper()
	resp, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: topicName})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

func (b *bed) report(c catalog.Config, segment uint64, cause layout.Cause, reporter string) (*smqpb.ReportSealedResponse, error) {
	return b.leader.ReportSealed(b.t.Context(), &smqpb.ReportSealedRequest{
		Topic: c.Topic.String(), TopicId: string(c.ID), Segment: segment, Cause: string(cause), Broker: string(id(reporter)),
	})
}

func TestReportSealed(t *testing.T) {
	for _, test := range []struct {
		cause    layout.Cause
		reporter string
		want     string // owner of the successor
		err      error
	}{
		{cause: layout.Roll, reporter: "a", want: "a"},
		{cause: layout.Drain, reporter: "a", want: "b"},
		{cause: layout.Failover, reporter: "a", want: "b"}, // fewer segments
		{cause: layout.Failover, reporter: "b", err: smq.ErrConflict},
		{cause: layout.Split, reporter: "a", err: smq.ErrInvalid},
	} {
		t.Run(fmt.Sprint(test.cause, " by ", test.reporter), func(t *testing.T) {
			bubble(t, []string{"a", "b"}, func(b *bed) {
				c := b.create("t", 8)
				b.publish("t", 3, "one")
				before := b.lookup("t", 0).GetLayout().GetSegments()[0]
				if before.GetOwner() != string(id("a")) {
					b.t.Fatalf("owner: %v", before)
				}
				resp, err := b.report(c, before.GetId(), test.cause, test.reporter)
				wantErr(b.t, "report", err, test.err)
				if err != nil {
					return
				}
				if got := resp.GetLayout().GetSegments()[0].GetOwner(); got != string(id(test.want)) {
					b.t.Fatalf("layout: %v", resp.GetLayout())
				}
				again, err := b.report(c, before.GetId(), test.cause, test.reporter)
				if err != nil || again.GetLayout().GetVersion() != resp.GetLayout().GetVersion() {
					b.t.Fatalf("again: %v, %v", again, err)
				}
				b.publish("t", 3, "two")
				b.check("t")
			})
		})
	}
}

func TestDrainOfTheLastBroker(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c := b.create("t", 8)
		s := b.lookup("t", 0).GetLayout().GetSegments()[0]
		_, err := b.report(c, s.GetId(), layout.Drain, "a")
		wantErr(b.t, "report", err, smq.ErrUnavailable)
	})
}

func TestAnOlderLeaderNoticesALaterOne(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c := b.create("t", 8)
		s := b.lookup("t", 0).GetLayout().GetSegments()[0]
		old := b.leader
		b.leader = nil
		b.lead(b.st.Handle())
		if _, err := b.report(c, s.GetId(), layout.Drain, "a"); err != nil {
			b.t.Fatal(err)
		}
		_, err := old.ReportSealed(b.t.Context(), &smqpb.ReportSealedRequest{
			Topic: "t", TopicId: string(c.ID), Segment: s.GetId(), Cause: "roll", Broker: s.GetOwner(),
		})
		wantErr(b.t, "report to the older leader", err, smq.ErrNotLeader)
		_, err = old.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t"})
		wantErr(b.t, "lookup at the older leader", err, smq.ErrNotLeader)
		old.Stop()
		if v := b.check("t"); v.Versions != 3 {
			b.t.Fatalf("%d versions", v.Versions)
		}
	})
}

func TestAfterStop(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		b.leader.Stop()
		_, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t", Assign: true})
		wantErr(b.t, "lookup", err, smq.ErrNotLeader)
	})
}

// split divides a topic of n partitions into a segment for each, all of them
// owned by the one broker.
func (b *bed) split(c catalog.Config, owner string) {
	b.t.Helper()
	now, _, err := catalog.Latest(b.t.Context(), b.st, c.Topic, c.ID, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	change := layout.Change{Cause: layout.Split, Sealed: []layout.Sealed{layout.EmptyOf(now.Segments[0])}}
	for p := range c.Partitions {
		change.Successors = append(change.Successors, layout.Successor{
			Range: smq.Range{Lo: p, Hi: p + 1}, Owner: layout.Member{Broker: id(owner), Address: owner + ":7310"},
		})
	}
	next, err := now.Next(change, layout.Stamp{Leader: id("split"), Term: b.term})
	if err == nil {
		err = catalog.WriteVersion(b.t.Context(), b.st, c.Topic, c.ID, next)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// slow is a store that takes its time to create a file.
type slow struct{ store.Store }

func (s slow) Create(ctx context.Context, path string, content []store.Part) error {
	<-time.After(10 * time.Millisecond)
	return s.Store.Create(ctx, path, content)
}

// A dead broker's many segments of one topic move in a few versions: while one
// is written, the next gathers.
func TestFailoverWritesFewVersions(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		c := b.create("t", 200)
		b.split(c, "a")
		b.lead(slow{b.st.Handle()})
		b.lookup("t", 0)
		b.kill("a")
		<-time.After(time.Minute)
		now := b.lookup("t", 0).GetLayout()
		if now.GetVersion() > 20 {
			b.t.Errorf("%d versions", now.GetVersion())
		}
		owned := make(map[string]int)
		for _, s := range now.GetSegments() {
			owned[s.GetOwner()]++
		}
		if owned[string(id("b"))] != 100 || owned[string(id("c"))] != 100 {
			b.t.Errorf("owners: %v", owned)
		}
		b.check("t")
	})
}

// await looks up a layout that is newer than a version.
func (b *bed) await(known uint64) (version uint64, took time.Duration, err error) {
	l, begun := b.leader, time.Now()
	resp, err := l.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t", NewerThan: known})
	return resp.GetLayout().GetVersion(), time.Since(begun), err
}

// A lookup that is to wait for a newer layout is answered when there is one, and
// after two seconds in any case.
func TestLookupWaitsForANewerLayout(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		b.create("t", 8)
		b.create("other", 8)
		lay := b.lookup("t", 0).GetLayout()
		known, owner := lay.GetVersion(), strings.TrimSuffix(lay.GetSegments()[0].GetOwnerAddress(), ":7310")
		if version, took, err := b.await(known - 1); err != nil || version != known || took > 0 {
			b.t.Errorf("there is a newer one: version %d after %v, %v", version, took, err)
		}
		if version, took, err := b.await(known); err != nil || version != known || took != 2*time.Second {
			b.t.Errorf("there is no newer one: version %d after %v, %v", version, took, err)
		}
		time.AfterFunc(600*time.Millisecond, func() { b.lookup("other", 0) })
		time.AfterFunc(time.Second, func() { b.kill(owner) })
		if version, took, err := b.await(known); err != nil || version <= known || took < time.Second || took > 1100*time.Millisecond {
			b.t.Errorf("a newer one comes: version %d after %v, %v", version, took, err)
		}
	})
}

// Whoever waits for a leader that leads no more is told so, and asks the next one.
func TestLookupThatWaitsIsToldOfTheLeadersEnd(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		known := b.lookup("t", 0).GetLayout().GetVersion()
		time.AfterFunc(time.Second, b.leader.Stop)
		_, took, err := b.await(known)
		wantErr(b.t, "the leader stops", err, smq.ErrNotLeader)
		if took != time.Second {
			b.t.Errorf("told after %v", took)
		}
	})
}
