package broker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

const ownerOfTest smq.BrokerID = "00000000000000bb"

// newTestFollowers are those of a broker whose lease is valid until the clock is
// moved by two seconds, and which the layout names as the follower of segment 1.
func newTestFollowers(t *testing.T) (*followers, *time.Duration, *smqpb.ReplicateSegment) {
	m, now := newTestMember()
	m.lease()
	b := m.b
	b.log, b.st, b.tasks = slog.New(slog.DiscardHandler), mem.New(), background.New()
	t.Cleanup(b.tasks.Stop)
	b.shared = seglog.NewShared(seglog.SharedOptions{})
	b.topics = &topics{st: b.st, tasks: b.tasks, byName: make(map[smq.Topic]*topic)}
	config := catalog.Config{Topic: smq.Topic{Namespace: "default", Name: "t"}, ID: "0000000000000001", Partitions: 4}
	b.topics.put(config)
	b.topics.known(config.Topic).adopt(layout.Layout{Version: 2, NextSegment: 2, Segments: []layout.Segment{{
		ID: 1, Range: smq.Range{Lo: 0, Hi: 4}, Owner: layout.Member{Broker: ownerOfTest},
		Followers: []layout.Member{{Broker: m.id}},
	}}})
	fs := newFollowers(b, m.id)
	b.follows.Store(fs)
	return fs, now, &smqpb.ReplicateSegment{Topic: config.Topic.String(), TopicId: string(config.ID), Segment: 1}
}

// lease grants the member a lease of two seconds.
func (m *member) lease() {
	var sent sendTimes
	sent.note(1, m.b.clock())
	m.take(&smqpb.Grant{Sequence: 1, LeaseMs: 2000}, &sent)
}

// appended is the error that the follower answers the owner with.
func (fs *followers) appended(t *testing.T, s *smqpb.ReplicateSegment) error {
	acks, err := fs.take(t.Context(), ownerOfTest, []*smqpb.ReplicateSegment{s}, nil)
	if err != nil || len(acks) != 1 {
		t.Fatalf("acks %v, %v", acks, err)
	}
	return rpc.FromErrorInfo(acks[0].GetError())
}

// A follower that is leaving and has never heard of a segment holds nothing of it.
// It can be fenced, and refuses the owner.
func TestALeavingFollowerCanBeFenced(t *testing.T) {
	fs, _, s := newTestFollowers(t)
	fs.drain()
	service := brokerService{b: fs.b}
	held, err := service.HeldBatches(t.Context(), &smqpb.HeldBatchesRequest{Topic: s.Topic, TopicId: s.TopicId, Segment: 1})
	if err != nil || len(held.GetBatches()) > 0 {
		t.Errorf("it holds %v, %v", held, err)
	}
	if _, err := service.FenceReplica(t.Context(), &smqpb.FenceReplicaRequest{Topic: s.Topic, TopicId: s.TopicId, Segment: 1}); err != nil {
		t.Errorf("fence: %v", err)
	}
	if err := fs.appended(t, s); !errors.Is(err, smq.ErrDraining) {
		t.Errorf("the owner is answered %v", err)
	}
	if err := fs.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A follower whose lease has run out would seal what it begins to follow at once.
// It refuses until it has one again, but can be fenced.
func TestAFollowerBeginsUnderALease(t *testing.T) {
	fs, now, s := newTestFollowers(t)
	*now = 2 * time.Second
	if err := fs.appended(t, s); !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("without a lease the owner is answered %v", err)
	}
	fs.b.member.lease()
	if err := fs.appended(t, s); err != nil {
		t.Errorf("under a lease: %v", err)
	}
	*now = 4 * time.Second
	if err := fs.appended(t, s); err != nil {
		t.Errorf("of what is followed already: %v", err)
	}
	fs, now, s = newTestFollowers(t)
	*now = 2 * time.Second
	if _, err := (brokerService{b: fs.b}).FenceReplica(t.Context(), &smqpb.FenceReplicaRequest{Topic: s.Topic, TopicId: s.TopicId, Segment: 1}); err != nil {
		t.Errorf("fence: %v", err)
	}
}

// What owners have sent is counted for as long as something of theirs is followed.
func TestOwnersAreForgotten(t *testing.T) {
	fs, _, s := newTestFollowers(t)
	for range 3 {
		fs.hear(ownerOfTest)
		fs.hear("00000000000000cc")
	}
	if err := fs.appended(t, s); err != nil {
		t.Fatal(err)
	}
	if fs.orphans(false); len(fs.heard) != 1 || fs.heard[ownerOfTest] != 3 {
		t.Errorf("counted are %v", fs.heard)
	}
	fs.drop(fs.find(segmentKey{smq.TopicID(s.TopicId), 1}))
	if fs.orphans(false); len(fs.heard) != 0 {
		t.Errorf("counted are %v of nothing", fs.heard)
	}
}

// A follower that has no memory for more takes the owner's news in, which gives it
// memory back, and says so of all that it cannot take, until it has what comes next.
func TestP10AFollowerWithoutMemory(t *testing.T) {
	fs, _, s := newTestFollowers(t)
	batch := loadBatch(t, 10)
	fs.b.shared = seglog.NewShared(seglog.SharedOptions{Replica: int64(len(batch)) * 3 / 2})
	for i, step := range []struct {
		first, stored uint64
		batches       int
		held          uint64
		err           error
	}{
		{0, 0, 1, 1, nil},
		{1, 0, 1, 1, smq.ErrOverloaded},
		{2, 0, 0, 1, smq.ErrOverloaded}, // it was sent before the answer came
		{2, 1, 1, 1, smq.ErrOverloaded}, // from here on there is memory
		{1, 1, 1, 2, nil},
		{3, 1, 0, 2, smq.ErrConflict},
		{2, 2, 2, 2, smq.ErrOverloaded}, // as long as there is not enough for all
		{4, 4, 1, 5, nil},               // the store has what was missed
	} {
		s.First, s.Stored, s.Partitions, s.Sizes = step.first, step.stored, nil, nil
		var payload []byte
		for range step.batches {
			s.Partitions, s.Sizes = append(s.Partitions, 0), append(s.Sizes, uint32(len(batch)))
			payload = append(payload, batch...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		acks, err := fs.take(ctx, ownerOfTest, []*smqpb.ReplicateSegment{s}, payload)
		if err != nil || len(acks) != 1 {
			t.Fatalf("step %d: %d acks, %v", i, len(acks), err)
		}
		if err := rpc.FromErrorInfo(acks[0].GetError()); acks[0].GetHeld() != step.held || !errors.Is(err, step.err) {
			t.Errorf("step %d: holds %d, %v; want %d, %v", i, acks[0].GetHeld(), err, step.held, step.err)
		}
	}
}

// hangs is a store that lists nothing until it is let.
type hangs struct {
	store.Store
	let chan struct{}
}

func (h hangs) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	select {
	case <-h.let:
		return h.Store.List(ctx, dir, after, limit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The store does not say whether a segment that is new is sealed. What the owner sends
// of others waits for a moment, once, and the owner asks again.
func TestASlowStoreDoesNotHoldUpAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, _, s := newTestFollowers(t)
		h := hangs{fs.b.st, make(chan struct{})}
		fs.b.topics.known(smq.Topic{Namespace: "default", Name: "t"}).st = h
		begin := time.Now()
		for range 3 {
			if err := fs.appended(t, s); !errors.Is(err, smq.ErrUnavailable) {
				t.Errorf("the owner is answered %v", err)
			}
		}
		if took := time.Since(begin); took > checkWait {
			t.Errorf("three frames took %v", took)
		}
		close(h.let)
		synctest.Wait()
		if err := fs.appended(t, s); err != nil {
			t.Errorf("asked again: %v", err)
		}
	})
}

// An owner lets go of a segment that is still being looked up.
func TestLettingGoDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, _, s := newTestFollowers(t)
		h := hangs{fs.b.st, make(chan struct{})}
		fs.b.topics.known(smq.Topic{Namespace: "default", Name: "t"}).st = h
		begin := time.Now()
		_ = fs.appended(t, s) // begins it
		s.Closed = true
		acks, err := fs.take(t.Context(), ownerOfTest, []*smqpb.ReplicateSegment{s}, nil)
		if took := time.Since(begin); err != nil || len(acks) > 0 || took > checkWait {
			t.Errorf("%d acks, %v, after %v", len(acks), err, took)
		}
		close(h.let)
	})
}
