package leader_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
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
