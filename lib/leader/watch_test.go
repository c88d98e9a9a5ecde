package leader_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// blind is a store that lists no folder of namespaces, so that a sweep fails.
type blind struct{ store.Store }

func (s blind) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	if dir == "/topics" {
		return nil, smq.ErrUnavailable
	}
	return s.Store.List(ctx, dir, after, limit)
}

// watched is a call of Watch. Its updates are handed over one by one.
type watched struct {
	grpc.ServerStream
	ctx     context.Context
	stop    func()
	updates chan *smqpb.WatchUpdate
	end     chan error
}

func (w *watched) Context() context.Context { return w.ctx }

func (w *watched) Send(u *smqpb.WatchUpdate) error {
	select {
	case w.updates <- u:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func (b *bed) watch(req *smqpb.WatchRequest) *watched {
	w := &watched{updates: make(chan *smqpb.WatchUpdate), end: make(chan error, 1)}
	w.ctx, w.stop = context.WithCancel(b.t.Context())
	l := b.leader
	go func() { w.end <- l.Watch(req, w) }()
	return w
}

// next is the next update, which has to come some time.
func (w *watched) next(t *testing.T) *smqpb.WatchUpdate {
	t.Helper()
	for over := time.After(10 * time.Minute); ; {
		select {
		case u := <-w.updates:
			if !isSign(u) {
				return u
			}
		case <-over:
			t.Fatal("nothing is told")
		}
	}
}

// A watcher of a cluster in which nothing happens hears that the leader lives.
func TestWatchGivesSignsOfLife(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		w := b.watch(&smqpb.WatchRequest{Topics: true})
		defer w.stop()
		w.snapshot(b.t)
		last := time.Now()
		for range 5 {
			select {
			case u := <-w.updates:
				if now := time.Now(); !isSign(u) || u.GetTimeMs() != now.UnixMilli() || now.Sub(last) < time.Second {
					b.t.Errorf("after %v: %v", now.Sub(last), u)
				}
				last = time.Now()
			case <-time.After(5 * time.Second):
				b.t.Fatal("no sign of life within five seconds")
			}
		}
	})
}

// ended is why the watch ended, which it has to some time.
func (w *watched) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.end:
		return err
	case <-time.After(10 * time.Minute):
		t.Fatal("the watch goes on")
		return nil
	}
}

// snapshot is what is sent up to the update that makes it complete.
func (w *watched) snapshot(t *testing.T) []*smqpb.WatchUpdate {
	t.Helper()
	var all []*smqpb.WatchUpdate
	for {
		u := w.next(t)
		if u.GetReset_() != (len(all) == 0) {
			t.Fatalf("update %d of a snapshot: reset is %v", len(all), u.GetReset_())
		}
		if all = append(all, u); u.GetComplete() {
			return all
		}
	}
}

// quiet checks that nothing is sent for a while.
func (w *watched) quiet(t *testing.T) {
	t.Helper()
	for over := time.After(5 * time.Second); ; {
		select {
		case u := <-w.updates:
			if !isSign(u) {
				t.Fatalf("an update without need: %v", u)
			}
		case <-over:
			return
		}
	}
}

// isSign reports whether an update is no more than a sign of life.
func isSign(u *smqpb.WatchUpdate) bool {
	return u.GetTimeMs() != 0 && proto.Equal(u, &smqpb.WatchUpdate{TimeMs: u.GetTimeMs()})
}

func TestWatchTopics(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		const topics = 1100
		for i := range topics {
			b.create(fmt.Sprintf("ns/t%04d", i), 8)
		}
		b.create("other/t", 8)
		w := b.watch(&smqpb.WatchRequest{Topics: true, Namespace: "ns"})
		defer w.stop()
		told := make(map[string]bool)
		for _, u := range w.snapshot(b.t) {
			if len(u.GetTopics()) > 1000 {
				b.t.Errorf("%d topics at once", len(u.GetTopics()))
			}
			for _, s := range u.GetTopics() {
				told[s.GetTopic()] = true
				if s.GetPartitions() != 8 || s.GetSegments() != 1 || s.GetLayoutVersion() != 1 || s.GetMode() != "auto" {
					b.t.Fatalf("got %v", s)
				}
			}
		}
		if len(told) != topics {
			b.t.Errorf("%d topics of %d", len(told), topics)
		}
		w.quiet(b.t)

		// Only what changes is told, and at once.
		begin := time.Now()
		b.publish("ns/t0007", 1, "one")
		b.publish("other/t", 1, "one")
		u := w.next(b.t)
		if len(u.GetTopics()) != 1 || u.GetTopics()[0].GetTopic() != "ns/t0007" || u.GetTopics()[0].GetLayoutVersion() != 2 {
			b.t.Errorf("got %v", u)
		}
		if waited := time.Since(begin); waited > 100*time.Millisecond {
			b.t.Errorf("after %v", waited)
		}
		w.quiet(b.t)

		if _, err := b.leader.AlterTopic(b.t.Context(), &smqpb.AlterTopicRequest{Topic: "ns/t0009", Scaling: &smqpb.Scaling{Mode: "off"}}); err != nil {
			b.t.Fatal(err)
		}
		if u := w.next(b.t); len(u.GetTopics()) != 1 || u.GetTopics()[0].GetMode() != "off" {
			b.t.Errorf("got %v", u)
		}
		if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "ns/t0009"}); err != nil {
			b.t.Fatal(err)
		}
		if u := w.next(b.t); len(u.GetRemovedTopics()) != 1 || u.GetRemovedTopics()[0] != "ns/t0009" || len(u.GetTopics()) != 0 {
			b.t.Errorf("got %v", u)
		}
		b.create("ns/t0009", 4)
		if u := w.next(b.t); len(u.GetTopics()) != 1 || u.GetTopics()[0].GetPartitions() != 4 {
			b.t.Errorf("got %v", u)
		}
		w.quiet(b.t)
	})
}

// A watcher that does not come along gets the newest state, once.
func TestASlowWatcher(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		s, a := b.live("t", 1)[0], b.at("a")
		b.reportLoads(a.loadReport(true))
		w := b.watch(&smqpb.WatchRequest{Topics: true})
		defer w.stop()
		w.snapshot(b.t)
		for i := range 100 {
			b.reportLoads(a.loadReport(false, loadOf(c, s, map[int32]float64{1: float64(i + 1)})))
			<-time.After(time.Second)
		}
		w.next(b.t) // under way since the first
		if u := w.next(b.t); len(u.GetTopics()) != 1 || u.GetTopics()[0].GetBytesPerSecond() != 100 {
			b.t.Errorf("got %v", u)
		}
		w.quiet(b.t)
	})
}

// Loads are told twice a second at most.
func TestWatchedLoadsAreMerged(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		s, a := b.live("t", 1)[0], b.at("a")
		b.reportLoads(a.loadReport(true))
		w := b.watch(&smqpb.WatchRequest{Topics: true, Topic: "t"})
		defer w.stop()
		w.snapshot(b.t)
		topics, details := 0, 0
		go func() {
			for i := range 1000 { // over ten seconds
				b.reportLoads(a.loadReport(false, loadOf(c, s, map[int32]float64{1: float64(i + 1)})))
				<-time.After(10 * time.Millisecond)
			}
			w.stop()
		}()
		for {
			select {
			case u := <-w.updates:
				topics += len(u.GetTopics())
				if u.GetDetail() != nil {
					details++
				}
				continue
			case <-w.end:
			}
			break
		}
		// What changes while a watcher looks is told half a second later.
		if topics < 10 || topics > 21 || details < 10 || details > 21 {
			b.t.Errorf("in ten seconds the topic was told %d times, its details %d times", topics, details)
		}
	})
}

func TestWatchATopic(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		w := b.watch(&smqpb.WatchRequest{Topic: "t"})
		defer w.stop()
		if u := w.snapshot(b.t)[0]; !u.GetDetail().GetMissing() {
			b.t.Fatalf("got %v", u)
		}
		w.quiet(b.t)
		c := b.create("t", 8)
		if u := w.next(b.t); u.GetDetail().GetConfig().GetTopicId() != string(c.ID) || u.GetDetail().GetScaling().GetMaxSegments() != 64 {
			b.t.Fatalf("got %v", u)
		}
		b.create("u", 8)
		w.quiet(b.t)
		b.publish("t", 1, "one")
		if u := w.next(b.t); u.GetDetail().GetLayout().GetCause() != "assign" {
			b.t.Fatalf("got %v", u)
		}
		if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t"}); err != nil {
			b.t.Fatal(err)
		}
		if u := w.next(b.t); !u.GetDetail().GetMissing() {
			b.t.Fatalf("got %v", u)
		}
		w.quiet(b.t)
	})
}

func TestWatchEvents(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		b.create("ns/before", 8)
		<-time.After(time.Second)
		since := time.Now().UnixMilli()
		b.create("ns/t", 8)
		b.create("other/t", 8)
		w := b.watch(&smqpb.WatchRequest{Events: true, Namespace: "ns", EventsSinceMs: since})
		defer w.stop()
		u := w.snapshot(b.t)[0]
		if e := u.GetEvents(); len(e) != 1 || e[0].GetTopic() != "ns/t" || e[0].GetCause() != "create" || len(e[0].GetOpened()) != 1 {
			b.t.Fatalf("got %v", u)
		}
		late := b.watch(&smqpb.WatchRequest{Events: true})
		defer late.stop()
		if u := late.snapshot(b.t)[0]; len(u.GetEvents()) != 0 {
			b.t.Fatalf("got %v", u)
		}
		b.publish("ns/t", 1, "one")
		for _, w := range []*watched{w, late} {
			if e := w.next(b.t).GetEvents(); len(e) != 1 || e[0].GetCause() != "assign" || e[0].GetVersion() != 2 {
				b.t.Fatalf("got %v", e)
			}
		}
		if err := b.splitAt("ns/t", 2, 3); err != nil {
			b.t.Fatal(err)
		}
		for _, w := range []*watched{w, late} {
			e := w.next(b.t).GetEvents()
			if len(e) != 1 || e[0].GetCause() != "split" || len(e[0].GetSealed()) != 1 || len(e[0].GetOpened()) != 2 || e[0].GetSegments() != 2 || e[0].GetReason() != "by hand" {
				b.t.Fatalf("got %v", e)
			}
		}
		// The version's event has only what it opened.
		if err := b.splitAt("ns/t", 4, 5); err != nil {
			b.t.Fatal(err)
		}
		for _, w := range []*watched{w, late} {
			if e := w.next(b.t).GetEvents(); len(e) != 1 || len(e[0].GetOpened()) != 2 || e[0].GetOpened()[0].GetLo() != 3 || e[0].GetSegments() != 3 {
				b.t.Fatalf("got %v", e)
			}
		}
		if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "ns/t"}); err != nil {
			b.t.Fatal(err)
		}
		for _, w := range []*watched{w, late} {
			if e := w.next(b.t).GetEvents(); len(e) != 1 || !e[0].GetDeleted() {
				b.t.Fatalf("got %v", e)
			}
			w.quiet(b.t)
		}
	})
}

func TestWatchBrokers(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		w := b.watch(&smqpb.WatchRequest{Brokers: true})
		defer w.stop()
		if c := w.snapshot(b.t)[0].GetCluster(); len(c.GetBrokers()) != 2 || c.GetLeader().GetTerm() != 1 {
			b.t.Fatalf("got %v", c)
		}
		w.quiet(b.t)
		b.kill("b")
		if c := w.next(b.t).GetCluster(); !c.GetBrokers()[1].GetSilent() {
			b.t.Fatalf("got %v", c)
		}
		w.quiet(b.t)
	})
}

// With masters that tell, watchers see what they do, and do not wait for masters
// that are away.
func TestWatchTheMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "a")
		var calls atomic.Int32
		b.leader = leader.Start(leader.Config{
			Store: b.st.Handle(), Self: id("self"), Term: 1, Brokers: b.brokers(), Peer: b.peer,
			Cluster: func(ctx context.Context) (*smqpb.ClusterInfo, error) {
				if calls.Add(1) > 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return &smqpb.ClusterInfo{LeadingMaster: "m:7300", Brokers: []*smqpb.BrokerInfo{{Id: "a", Address: "a:1", Load: &smqpb.Load{MessagesPerSecond: 9}}}}, nil
			},
		})
		w := b.watch(&smqpb.WatchRequest{Brokers: true, Topics: true})
		defer w.stop()
		if c := w.snapshot(t)[0].GetCluster(); c.GetLeadingMaster() != "m:7300" {
			t.Fatalf("got %v", c)
		}
		w.quiet(t)
		if n := calls.Load(); n < 2 || n > 7 {
			t.Errorf("the masters were asked %d times in five seconds", n)
		}
		begin := time.Now()
		b.create("t", 1)
		if u := w.next(b.t); len(u.GetTopics()) != 1 || u.GetCluster() != nil || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begin), u)
		}
		// In the end nobody knows what they would say.
		c := w.next(t).GetCluster()
		if took := time.Since(begin); c == nil || c.GetLeadingMaster() != "" || c.GetBrokers()[0].GetLoad() != nil || c.GetBrokers()[0].GetAddress() != "a:1" || took > 30*time.Second {
			t.Errorf("after %v without masters: %v", took, c)
		}
	})
}

// A watcher that comes after a long time without any is not told how the cluster
// was then.
func TestALateWatcherIsNotToldOldNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "a")
		b.leader = leader.Start(leader.Config{
			Store: b.st.Handle(), Self: id("self"), Term: 1, Brokers: b.brokers(), Peer: b.peer,
			Cluster: func(context.Context) (*smqpb.ClusterInfo, error) {
				return &smqpb.ClusterInfo{LeadingMaster: time.Now().Format(time.TimeOnly)}, nil
			},
		})
		for range 2 {
			w := b.watch(&smqpb.WatchRequest{Brokers: true})
			if told := w.snapshot(t)[0].GetCluster().GetLeadingMaster(); told != time.Now().Format(time.TimeOnly) {
				t.Errorf("at %s it is told how the cluster was at %s", time.Now().Format(time.TimeOnly), told)
			}
			w.stop()
			w.ended(t)
			<-time.After(time.Minute)
		}
	})
}

func TestAWatchEndsWithTheLead(t *testing.T) {
	for name, end := range map[string]func(b *bed){
		"stopped": func(b *bed) { b.leader.Stop() },
		"deposed": func(b *bed) {
			old := b.leader
			b.leader = nil
			b.lead(b.st.Handle())
			b.publish("t", 1, "by the next one")
			if _, err := old.ReportSealed(b.t.Context(), &smqpb.ReportSealedRequest{Topic: "t", Segment: 99}); err == nil {
				b.t.Error("the old one leads")
			}
			b.t.Cleanup(old.Stop)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []string{"a"}, func(b *bed) {
				b.create("t", 8)
				w := b.watch(&smqpb.WatchRequest{Topics: true})
				defer w.stop()
				w.snapshot(b.t)
				begin := time.Now()
				end(b)
				wantErr(b.t, "the watch", w.ended(b.t), smq.ErrNotLeader)
				if waited := time.Since(begin); waited > 100*time.Millisecond {
					b.t.Errorf("it ended after %v", waited)
				}
				late := b.watch(&smqpb.WatchRequest{Topics: true})
				late.stop()
				<-late.end
			})
		})
	}
}

// Stop does not wait for a watcher that does not take what it is sent.
func TestAWatcherThatHangs(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		w := b.watch(&smqpb.WatchRequest{Topics: true})
		synctest.Wait()
		b.leader.Stop()
		w.stop()
		<-w.end
	})
}

// A new leader that has not looked at all topics yet does not call a snapshot of
// them complete, for a while; one of a single topic it does.
func TestASnapshotWaitsForTheSweep(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		b.create("t", 8)
		b.lead(blind{b.st.Handle()})
		for _, test := range []struct {
			req   *smqpb.WatchRequest
			waits bool
		}{
			{&smqpb.WatchRequest{Topic: "t", Brokers: true}, false},
			{&smqpb.WatchRequest{Topics: true}, true},
			{&smqpb.WatchRequest{Events: true, EventsSinceMs: 1}, true},
		} {
			w := b.watch(test.req)
			begin := time.Now()
			w.snapshot(b.t)
			if waited := time.Since(begin); (waited >= 5*time.Second) != test.waits || waited > 6*time.Second {
				b.t.Errorf("%v: complete after %v", test.req, waited)
			}
			w.stop()
		}
	})
}

func TestWatchRefuses(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		for _, req := range []*smqpb.WatchRequest{{Topic: "a/b/c"}, {Namespace: "a/b"}} {
			w := b.watch(req)
			wantErr(b.t, req.String(), w.ended(b.t), smq.ErrInvalid)
			w.stop()
		}
	})
}
