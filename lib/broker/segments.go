package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// segmentKey names a segment within the cluster.
type segmentKey struct {
	topic smq.TopicID
	id    smq.SegmentID
}

// segments are those that the broker owns and has opened, of one life.
type segments struct {
	b     *Broker
	self  smq.BrokerID
	links *links

	mu     sync.Mutex
	byKey  map[segmentKey]*segment
	past   map[segmentKey]*rates // of segments that have left byKey lately
	ending bool                  // no more are opened
	empty  chan struct{}         // closed when ending and none is left
}

// segment is one that the broker owns: open, being opened, or sealed and still
// listed by the layout.
type segment struct {
	topic *topic
	key   segmentKey
	ready chan struct{} // closed when log and err are set
	log   *seglog.Log
	err   error
	rates rates

	end       chan layout.Cause // asks for the segment's end, once
	requested atomic.Bool       // somebody who will change the layout has asked for its end
	stuck     atomic.Bool       // another broker is asked to take over
	without   without           // followers that it has to do without
	sealed    chan struct{}     // closed when it has ended
	gone      chan struct{}     // closed when it is not looked after any more
}

func newSegments(b *Broker, self smq.BrokerID) *segments {
	return &segments{b: b, self: self, links: newLinks(b, self), byKey: make(map[segmentKey]*segment), past: make(map[segmentKey]*rates), empty: make(chan struct{})}
}

// get returns a segment that the broker owns, opening it if need be.
//
// Errors: smq.ErrSegmentSealed, smq.ErrNotOwner, or why it cannot be opened now.
func (ss *segments) get(ctx context.Context, t *topic, id smq.SegmentID) (*segment, error) {
	s := ss.begin(t, id)
	if s == nil {
		return nil, ss.refuse(ctx, t, id)
	}
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// await waits until the segment has been opened.
//
// Errors: smq.ErrTimeout when ctx ends first, or why it cannot be opened.
func (s *segment) await(ctx context.Context) error {
	select {
	case <-s.ready:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("open segment %d of topic %v: %w: %w", s.key.id, s.topic.Topic, smq.ErrTimeout, ctx.Err())
	}
}

// begin finds the segment or begins to open it. It returns nil when no more are
// opened.
func (ss *segments) begin(t *topic, id smq.SegmentID) *segment {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	k := segmentKey{t.ID, id}
	if s := ss.byKey[k]; s != nil {
		return s
	}
	if ss.ending {
		return nil
	}
	s := &segment{
		topic: t, key: k, ready: make(chan struct{}),
		end: make(chan layout.Cause, 1), sealed: make(chan struct{}), gone: make(chan struct{}),
	}
	ss.byKey[k] = s
	ss.b.tasks.Go(func(ctx context.Context) { ss.own(ctx, s) })
	return s
}

// refuse says why a segment is not opened when no more are. If it is ours and
// was never opened, it is sealed so that somebody else gets it at once.
func (ss *segments) refuse(ctx context.Context, t *topic, id smq.SegmentID) error {
	listed, err := ss.listed(ctx, t, id)
	if err == nil {
		ss.b.tasks.Go(func(ctx context.Context) { ss.sealUnopened(ctx, t, listed) })
		err = smq.ErrDraining
	}
	return fmt.Errorf("segment %d of topic %v: %w", id, t.Topic, err)
}

// own opens the segment and sees to it until the layout does not list it any
// more.
func (ss *segments) own(ctx context.Context, s *segment) {
	defer ss.remove(s)
	s.log, s.err = ss.open(ctx, s)
	close(s.ready)
	if s.err == nil {
		if isReplaced(s.topic.layout(), s.key.id) {
			ss.b.probeLater(s) // the layout has changed while it was being opened
		}
		ss.watch(ctx, s)
	}
}

func (ss *segments) remove(s *segment) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.byKey, s.key)
	if s.err == nil {
		ss.past[s.key] = &s.rates
		s.rates.touch(time.Now())
	}
	close(s.gone)
	ss.settle()
}

// settle closes empty when it is time. ss.mu is held.
func (ss *segments) settle() {
	if ss.ending && len(ss.byKey) == 0 {
		select {
		case <-ss.empty:
		default:
			close(ss.empty)
		}
	}
}

// open makes this broker the segment's owner, if the layout says so.
func (ss *segments) open(ctx context.Context, s *segment) (*seglog.Log, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	t := s.topic
	listed, err := ss.listed(ctx, t, s.key.id)
	if err != nil {
		return nil, fmt.Errorf("open segment %d of topic %v: %w", s.key.id, t.Topic, err)
	}
	log, err := seglog.Open(ctx, seglog.Config{
		Store:        t.st,
		Ident:        t.Ident(listed.ID, listed.Range),
		Predecessors: seals(listed),
		Broker:       ss.self,
		Limits:       ss.b.cfg.Limits,
		Shared:       ss.b.shared,
		Logger:       ss.b.log,
		Replication:  ss.links.replication(listed),
	})
	switch {
	case err == nil:
		ss.b.opening.worked()
		ss.measure(s, listed)
		ss.links.attach(t, listed, log, func(follower smq.BrokerID, leaving bool) {
			s.without.add(follower, leaving)
			s.finish(layout.Failover)
		})
		ss.b.log.Info("segment opened", "topic", t.Topic.String(), "segment", listed.ID, "range", listed.Range.String())
		return log, nil
	case errors.Is(err, smq.ErrSegmentSealed):
		ss.b.reportLater(t, s.key.id, notice{cause: layout.Roll, by: ss.self})
		return nil, err
	}
	// Perhaps another broker can. That is also so when the segment is open by an
	// earlier attempt of ours, which gave up before it knew: nothing will ever be
	// appended to it.
	ss.b.opening.failed(err)
	ss.b.log.Warn("segment cannot be opened, it is to get a successor", "topic", t.Topic.String(), "segment", listed.ID, "err", err)
	// Only if chunk 0 is another writer's this broker can never open the segment. After
	// any other failure its next attempt may succeed, and take messages in, while the
	// report is on its way.
	ss.b.reportLater(t, s.key.id, notice{cause: layout.Failover, by: ss.self, emptyHanded: errors.Is(err, smq.ErrNotOwner)})
	if errors.Is(err, smq.ErrNotOwner) {
		err = fmt.Errorf("%w: %v", smq.ErrSegmentSealed, err)
	}
	return nil, err
}

// seals are what the segment continues from.
func seals(s layout.Segment) []seglog.Seal { return catalog.Seals(s.Predecessors) }

// listed is the segment as the layout lists it, if it is ours.
func (ss *segments) listed(ctx context.Context, t *topic, id smq.SegmentID) (layout.Segment, error) {
	if s, live := t.layout().Get(id); live && s.Owner.Broker == ss.self {
		return s, nil // also when that is old: see the package documentation
	}
	lay, err := t.refresh(ctx)
	if err != nil {
		return layout.Segment{}, err
	}
	s, live := lay.Get(id)
	switch {
	case live && s.Owner.Broker == ss.self:
		return s, nil
	case !live && id < lay.NextSegment && id > 0:
		return layout.Segment{}, smq.ErrSegmentSealed
	}
	return layout.Segment{}, smq.ErrNotOwner
}

// await returns the segment if it is open, or when it has been opened.
//
// Errors: smq.ErrNotOwner when it is neither, and those of segment.await.
func (ss *segments) await(ctx context.Context, k segmentKey) (*segment, error) {
	ss.mu.Lock()
	s := ss.byKey[k]
	ss.mu.Unlock()
	if s == nil {
		return nil, smq.ErrNotOwner
	}
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// moveOn looks at those of the topic's segments that are open here though the
// newest layout does not list them: one that is idle would not find out that it
// is sealed.
func (ss *segments) moveOn(t *topic, lay layout.Layout) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for k, s := range ss.byKey {
		if k.topic == t.ID && s.isOpen() && isReplaced(lay, k.id) {
			ss.b.probeLater(s)
		}
	}
}

// all lists the segments, those being opened included.
func (ss *segments) all() []*segment {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Values(ss.byKey))
}

// snapshot lists the segments that are open.
func (ss *segments) snapshot() []*segment {
	return slices.DeleteFunc(ss.all(), func(s *segment) bool { return !s.isOpen() })
}

// isOpen reports whether the segment has been opened.
func (s *segment) isOpen() bool {
	select {
	case <-s.ready:
		return s.err == nil
	default:
		return false
	}
}

// finish asks for the end of every segment, and lets no more be opened. empty
// is closed when none is left.
func (ss *segments) finish(cause layout.Cause) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.ending = true
	for _, s := range ss.byKey {
		s.finish(cause)
	}
	ss.settle()
}

// finish asks for the segment's end; the first cause counts.
func (s *segment) finish(cause layout.Cause) {
	select {
	case s.end <- cause:
	default:
	}
}

// left is how many segments there are.
func (ss *segments) left() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.byKey)
}
