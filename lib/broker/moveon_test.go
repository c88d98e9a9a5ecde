package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// slowStore answers the first creation late, though it is made at once.
type slowStore struct {
	store.Store
	once    sync.Once
	created chan struct{} // closed when it is made
	answer  chan struct{} // closed: it is answered
}

func newSlowStore() *slowStore {
	return &slowStore{Store: mem.New(), created: make(chan struct{}), answer: make(chan struct{})}
}

func (s *slowStore) Create(ctx context.Context, path string, content []store.Part) error {
	err := s.Store.Create(ctx, path, content)
	s.once.Do(func() {
		close(s.created)
		<-s.answer
	})
	return err
}

// newTestOwner is the segments of a broker that owns segment 1 of a topic.
func newTestOwner(t *testing.T, st store.Store) (*segments, *topic) {
	m, _ := newTestMember()
	b := m.b
	b.log, b.st, b.tasks = slog.New(slog.DiscardHandler), st, background.New()
	t.Cleanup(b.tasks.Stop)
	b.shared = seglog.NewShared(seglog.SharedOptions{})
	b.topics = newTopics(b.st, b.tasks)
	b.topics.moved = b.moveOn
	b.owned.Store(newSegments(b, m.id))
	config := catalog.Config{Topic: smq.Topic{Namespace: "default", Name: "t"}, ID: "0000000000000001", Partitions: 4}
	b.topics.put(config)
	top := b.topics.known(config.Topic)
	top.adopt(layout.Layout{Version: 1, NextSegment: 2, Segments: []layout.Segment{{
		ID: 1, Range: smq.Range{Lo: 0, Hi: 4}, Owner: layout.Member{Broker: m.id, Address: "a:7310"},
	}}})
	return b.segments(), top
}

// replace has another broker go on behind segment 1.
func (t *topic) replace() {
	t.adopt(layout.Layout{Version: 2, NextSegment: 3, Segments: []layout.Segment{{
		ID: 2, Range: smq.Range{Lo: 0, Hi: 4}, Owner: layout.Member{Broker: "00000000000000bb"},
	}}})
}

// seal seals segment 1 behind its owner's back.
func (t *topic) seal(ctx context.Context, st store.Store) error {
	_, err := seglog.SealStore(ctx, st, t.Ident(1, smq.Range{Lo: 0, Hi: 4}), nil, seglog.SealOptions{Broker: "00000000000000bb"})
	return err
}

// movedOn fails unless the segment's log comes to its end.
func (s *segment) movedOn(t *testing.T) {
	select {
	case <-s.log.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("its readers wait at the end of a segment that is sealed")
	}
}

// An owner that has nothing to store finds out that its segment is sealed when it
// learns of a layout that does not list it.
func TestP4AnIdleOwnerMovesOnWithTheLayout(t *testing.T) {
	st := mem.New()
	ss, top := newTestOwner(t, st)
	s, err := ss.get(t.Context(), top, 1)
	if err == nil {
		err = top.seal(t.Context(), st)
	}
	if err != nil {
		t.Fatal(err)
	}
	top.replace()
	s.movedOn(t)
}

// The same when both happen while it opens the segment.
func TestP4AnOwnerThatOpensMovesOnWithTheLayout(t *testing.T) {
	st := newSlowStore()
	ss, top := newTestOwner(t, st)
	s := ss.begin(top, 1)
	<-st.created
	if err := top.seal(t.Context(), st.Store); err != nil {
		t.Fatal(err)
	}
	top.replace()
	close(st.answer)
	if err := s.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.movedOn(t)
}

// An owner that is asked to seal what it is opening does so when that is open.
func TestSealOfASegmentThatIsBeingOpened(t *testing.T) {
	st := newSlowStore()
	ss, top := newTestOwner(t, st)
	service := brokerService{b: ss.b}
	req := &smqpb.SealSegmentRequest{Topic: top.Topic.String(), TopicId: string(top.ID), Segment: 1}
	if _, err := service.SealSegment(t.Context(), req); !errors.Is(err, smq.ErrNotOwner) {
		t.Errorf("nobody has begun to open it: %v", err)
	}
	ss.begin(top, 1)
	<-st.created
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := service.SealSegment(ended, req); !errors.Is(err, smq.ErrTimeout) {
		t.Errorf("whoever asks does not wait: %v", err)
	}
	top.replace() // so that the owner need not report it
	close(st.answer)
	if _, err := service.SealSegment(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if _, sealed, err := seglog.FindSeal(t.Context(), st, top.Ident(1, smq.Range{Lo: 0, Hi: 4})); err != nil || !sealed {
		t.Errorf("sealed: %v, %v", sealed, err)
	}
}

// A broker whose layout is old sends readers who are further on to where the
// messages are; it does not deny that there are any.
func TestP4AnOldLayoutEndsNoReader(t *testing.T) {
	st := mem.New()
	ss, top := newTestOwner(t, st)
	s, err := ss.get(t.Context(), top, 1)
	if err != nil {
		t.Fatal(err)
	}
	ss.b.archive = newArchive(st, ss.b.shared, ss.b.tasks)
	first := top.layout()
	seal, err := seglog.SealStore(t.Context(), st, s.log.Ident(), nil, seglog.SealOptions{Broker: "00000000000000bb"})
	if err != nil {
		t.Fatal(err)
	}
	first.Cause = layout.Create
	second, err := first.Next(layout.Change{
		Cause: layout.Failover, Sealed: []layout.Sealed{catalog.Sealed(seal)},
		Successors: []layout.Successor{{Range: smq.Range{Lo: 0, Hi: 4}, Owner: layout.Member{Broker: "00000000000000bb", Address: "b:7310"}}},
	}, layout.Stamp{Leader: "00000000000000bb", Term: 1})
	for _, lay := range []layout.Layout{first, second} {
		if err == nil {
			err = catalog.WriteVersion(t.Context(), st, top.Topic, top.ID, lay)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	f := finder{b: ss.b, topic: top}
	var other *elsewhere
	if _, err := f.find(t.Context(), 0, 5, 0); !errors.As(err, &other) {
		t.Errorf("a reader of what the owner of the next segment holds is told: %v", err)
	}
}
