package leader_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// lockedLog collects what is logged.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

// A leader of another cluster, with later terms, has written to the store.
func TestAnotherLeaderWritesToTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "a")
		b.term = 100
		if _, err := b.lead(b.st).CreateTopic(t.Context(), &smqpb.CreateTopicRequest{Topic: "t", Partitions: 1, Replicas: 1}); err != nil {
			t.Fatal(err)
		}
		var log lockedLog
		l := leader.Start(leader.Config{
			Store: b.st, Self: id("self"), Term: 7, Brokers: b.brokers(), Peer: b.peer,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		defer l.Stop()
		lookup := func() error {
			_, err := l.Lookup(t.Context(), &smqpb.LookupRequest{Topic: "t"})
			return err
		}
		_ = lookup() // it finds out
		if err := lookup(); !errors.Is(err, smq.ErrNotLeader) {
			t.Errorf("got %v", err)
		}
		<-time.After(10 * time.Second)
		if log.count("level=ERROR") > 0 {
			t.Error("the masters had no time to name another one")
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if log.count("level=ERROR") != 1 || log.count("another leader writes to this store") != 1 {
			t.Errorf("heard %s", log.b.String())
		}
	})
}

// overtaken is a store in which somebody else writes the first layout version that
// its user writes.
type overtaken struct {
	store.Store
	once *sync.Once
	by   func()
}

func (o overtaken) Create(ctx context.Context, path string, content []store.Part) error {
	if strings.Contains(path, "/layout/") {
		o.once.Do(o.by)
	}
	return o.Store.Create(ctx, path, content)
}

// A leader that does not know yet that it leads no more, nor that the owner is
// dead, is faster in replacing the segment, and gives it to the dead owner again.
func TestFailoverIsOvertakenByTheLastLeader(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		last := leader.Start(leader.Config{Store: b.st.Handle(), Self: id("last"), Term: b.term, Brokers: b.brokers(), Peer: b.peer})
		defer last.Stop()
		b.create("t", 8)
		b.publish("t", 3, "before")
		dead := b.lookup("t", 0).GetLayout().GetSegments()[0]
		b.kill(strings.TrimSuffix(dead.GetOwnerAddress(), ":7310"))
		b.lead(overtaken{b.st.Handle(), new(sync.Once), func() {
			again, err := last.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t", StaleSegment: dead.GetId()})
			if err != nil || again.GetLayout().GetSegments()[0].GetOwner() != dead.GetOwner() {
				b.t.Errorf("the last leader: %v, %v", again, err)
			}
		}})
		<-time.After(time.Second)
		now, err := b.leader.DescribeTopic(b.t.Context(), &smqpb.DescribeTopicRequest{Topic: "t"})
		if err != nil || now.GetLayout().GetVersion() < 4 || now.GetLayout().GetSegments()[0].GetOwner() == dead.GetOwner() {
			b.t.Errorf("a second later: %v, %v", now.GetLayout(), err)
		}
		b.publish("t", 3, "after")
		b.check("t")
	})
}

// config is topic.json as it was read.
type config struct {
	data    []byte
	version store.Version
}

// past is a store that answers reads of a topic's configuration from the past for
// as long as it has one.
type past struct {
	store.Store
	config *atomic.Pointer[config]
}

func (p past) Read(ctx context.Context, path string) ([]byte, store.Version, error) {
	if old := p.config.Load(); old != nil && strings.HasSuffix(path, "/topic.json") {
		return old.data, old.version, nil
	}
	return p.Store.Read(ctx, path)
}

// A sweep that reads of the topic before does not touch the one that is there now,
// whether the leader knows it or has just begun.
func TestASweepReadsFromThePast(t *testing.T) {
	for name, known := range map[string]bool{"known": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []string{"a"}, func(b *bed) {
				b.create("t", 8)
				if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t"}); err != nil {
					b.t.Fatal(err)
				}
				data, version, err := b.st.Read(b.t.Context(), "/topics/default/t/topic.json")
				if err != nil {
					b.t.Fatal(err)
				}
				var old atomic.Pointer[config]
				st := past{b.st.Handle(), &old}
				b.lead(st)
				b.create("t", 8)
				b.publish("t", 3, "kept")
				segment := b.lookup("t", 0).GetLayout().GetSegments()[0].GetId()
				old.Store(&config{data, version})
				if !known {
					b.lead(st)
				}
				<-time.After(11 * time.Minute)
				old.Store(nil)
				b.publish("t", 3, "into the same segment")
				if now := b.lookup("t", 0).GetLayout().GetSegments()[0].GetId(); now != segment {
					b.t.Errorf("segment %d now, %d before", now, segment)
				}
				b.check("t")
			})
		})
	}
}
