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

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Times of following.
const (
	// followTick is how often a follower looks whether its owners live, and
	// ownerSilent how many looks in a row may find nothing new of one. Looks
	// are counted, not time, so that a pause of this process is not taken for
	// the owner's.
	followTick  = 250 * time.Millisecond
	ownerSilent = 4
	// checkWait is how long an owner's frames wait for the store, which is asked about
	// a segment that is new here. All that the owner sends waits behind it, and the
	// owner would be taken for silent; so it is told to ask again.
	checkWait = 200 * time.Millisecond
	// handoverBytes is about how much one answer hands over.
	handoverBytes = 8 << 20
)

// followers are the segments that the broker follows, of one life.
type followers struct {
	b    *Broker
	self smq.BrokerID

	mu     sync.Mutex
	byKey  map[segmentKey]*following
	heard  map[smq.BrokerID]uint64 // frames from each owner
	ending bool                    // it follows nothing new, and owners are told
	over   bool                    // the id is dead: everything is sealed
	empty  chan struct{}           // closed when ending and nothing is left
}

// following is a segment that is followed, or about to be.
type following struct {
	topic *topic
	key   segmentKey
	owner smq.BrokerID
	asked time.Time     // when it was first asked for
	ready chan struct{} // closed when f and err are set
	f     *seglog.Follower
	err   error
	short atomic.Bool // batches were not taken for want of memory

	frames  uint64 // of the owner, at the last look
	silent  int    // looks that found no more
	sealing bool   // it is being sealed unasked
	fenced  bool   // it takes nothing more: its seal is made, here or by the leader
}

func newFollowers(b *Broker, self smq.BrokerID) *followers {
	return &followers{b: b, self: self, byKey: make(map[segmentKey]*following), heard: make(map[smq.BrokerID]uint64), empty: make(chan struct{})}
}

// get returns the follower of a segment, and begins to follow it if need be.
func (fs *followers) get(ctx context.Context, owner smq.BrokerID, s *smqpb.ReplicateSegment) (*following, error) {
	fl := fs.known(owner, s)
	if fl == nil {
		return nil, smq.ErrDraining
	}
	select {
	case <-fl.ready:
		return fl, fl.follows(owner)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// known is the follower of a segment, which begins to be looked up if need be; nil
// when nothing new is followed.
func (fs *followers) known(owner smq.BrokerID, s *smqpb.ReplicateSegment) *following {
	k := keyOf(s)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fl := fs.byKey[k]
	if fl == nil && !fs.ending {
		fl = &following{key: k, owner: owner, asked: time.Now(), ready: make(chan struct{})}
		fs.byKey[k] = fl
		fs.b.tasks.Go(func(ctx context.Context) { fs.begin(ctx, fl, s.GetTopic()) })
	}
	return fl
}

// checked waits, for a moment since it was first asked for, until the segment has been
// looked up. smq.ErrUnavailable: it has not been yet.
func (fl *following) checked(ctx context.Context) error {
	select {
	case <-fl.ready:
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(fl.asked.Add(checkWait)))
	defer timer.Stop()
	select {
	case <-fl.ready:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: the follower has not heard yet what the store says of the segment", smq.ErrUnavailable)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follows says why the owner is refused; nil: it is followed. fl is ready.
func (fl *following) follows(owner smq.BrokerID) error {
	if fl.err == nil && fl.owner != owner {
		return fmt.Errorf("segment %d: %w: broker %s owns it", fl.key.id, smq.ErrNotOwner, fl.owner)
	}
	return fl.err
}

// begin follows a segment, if the stored layout says so and it has no seal.
func (fs *followers) begin(ctx context.Context, fl *following, topicName string) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	fl.err = fs.check(ctx, fl, topicName)
	close(fl.ready)
	if fl.err != nil {
		fs.forget(fl)
	}
}

func (fs *followers) check(ctx context.Context, fl *following, topicName string) error {
	t, err := fs.b.topics.get(ctx, topicName, fl.key.topic)
	if err != nil {
		return err
	}
	lay := t.layout()
	s, live := lay.Get(fl.key.id)
	if !live {
		if lay, err = t.refresh(ctx); err != nil {
			return err
		}
		s, live = lay.Get(fl.key.id)
	}
	follows := slices.ContainsFunc(s.Followers, func(m layout.Member) bool { return m.Broker == fs.self })
	switch {
	case !live && fl.key.id < lay.NextSegment:
		return smq.ErrSegmentSealed
	case !live || s.Owner.Broker != fl.owner || !follows:
		return fmt.Errorf("%w: the layout does not have it so", smq.ErrNotOwner)
	}
	id := t.Ident(s.ID, s.Range)
	if _, sealed, err := seglog.FindSeal(ctx, t.st, id); err != nil || sealed {
		if err == nil {
			err = smq.ErrSegmentSealed
		}
		return err
	}
	fl.topic = t
	fl.f = seglog.NewFollower(seglog.FollowerConfig{
		Store: t.st, Ident: id, Predecessors: seals(s), Broker: fs.self, Owner: fl.owner,
		Limits: fs.b.cfg.Limits, Shared: fs.b.shared, Logger: fs.b.log,
	})
	return nil
}

func (fs *followers) forget(fl *following) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byKey[fl.key] == fl {
		delete(fs.byKey, fl.key)
	}
	fs.settle()
}

// settle closes empty when it is time. fs.mu is held.
func (fs *followers) settle() {
	if !fs.ending || len(fs.byKey) > 0 {
		return
	}
	select {
	case <-fs.empty:
	default:
		close(fs.empty)
	}
}

// drain has the owners do without this follower.
func (fs *followers) drain() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.ending = true
	fs.settle()
}

// end seals everything that is followed: the id is dead.
func (fs *followers) end() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.ending, fs.over = true, true
	fs.settle()
}

// wait waits until nothing is followed any more, after drain.
func (fs *followers) wait(ctx context.Context) error {
	select {
	case <-fs.empty:
		return nil
	case <-ctx.Done():
		fs.mu.Lock()
		defer fs.mu.Unlock()
		return fmt.Errorf("drain: %w: still followed: %s", smq.ErrTimeout, smq.Count(len(fs.byKey), "segment"))
	}
}

// farewells tell an owner, while this broker is leaving, that it follows its
// segments no longer than it must.
func (fs *followers) farewells(owner smq.BrokerID) []*smqpb.ReplicaAck {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !fs.ending {
		return nil
	}
	var acks []*smqpb.ReplicaAck
	for k, fl := range fs.byKey {
		if fl.owner == owner {
			acks = append(acks, &smqpb.ReplicaAck{TopicId: string(k.topic), Segment: uint64(k.id), Error: rpc.ErrorInfo(smq.ErrDraining)})
		}
	}
	return acks
}

// letGo ends the following of a segment that its owner has sealed.
func (fs *followers) letGo(k segmentKey, owner smq.BrokerID) {
	fs.mu.Lock()
	fl := fs.byKey[k]
	if fl != nil && fl.owner == owner && !fl.sealing {
		delete(fs.byKey, k)
		fs.settle()
	} else {
		fl = nil
	}
	fs.mu.Unlock()
	if fl != nil {
		fs.b.tasks.Go(func(context.Context) { // its owner has more to say
			<-fl.ready
			fl.close()
		})
	}
}

// drop ends the following of a segment that needs no follower any more.
func (fs *followers) drop(fl *following) {
	fs.forget(fl)
	fl.close()
}

// close gives back what is held. fl is ready.
func (fl *following) close() {
	if fl.f != nil {
		fl.f.Close()
	}
}

// find returns the segment's follower, or nil.
func (fs *followers) find(k segmentKey) *following {
	fs.mu.Lock()
	fl := fs.byKey[k]
	fs.mu.Unlock()
	if fl == nil {
		return nil
	}
	<-fl.ready
	if fl.err != nil {
		return nil
	}
	return fl
}

// run seals, unasked, the segments whose owner is silent, and all of them when
// the broker's own lease has run out.
func (fs *followers) run(ctx context.Context) {
	for background.Wait(ctx, followTick) == nil {
		for _, fl := range fs.orphans(!fs.b.member.leased()) {
			fs.b.tasks.Go(func(ctx context.Context) { fs.sealUnasked(ctx, fl) })
		}
		select {
		case <-fs.empty:
			return // of a life that is over, or a drain
		default:
		}
	}
}

// orphans are the followed segments that are to be sealed now.
func (fs *followers) orphans(all bool) []*following {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	all = all || fs.over
	var orphans []*following
	owners := make(map[smq.BrokerID]bool)
	for _, fl := range fs.byKey {
		owners[fl.owner] = true
		if n := fs.heard[fl.owner]; n != fl.frames {
			fl.frames, fl.silent = n, 0
		} else {
			fl.silent++
		}
		if (all || fl.silent > ownerSilent) && !fl.sealing {
			fl.sealing, fl.fenced = true, true
			orphans = append(orphans, fl)
		}
	}
	// Ids live as long as their brokers' leases; one that still speaks is counted anew.
	maps.DeleteFunc(fs.heard, func(owner smq.BrokerID, _ uint64) bool { return !owners[owner] })
	return orphans
}

// sealUnasked seals the segment with what is held, and has it replaced.
func (fs *followers) sealUnasked(ctx context.Context, fl *following) {
	<-fl.ready
	if fl.err != nil {
		return
	}
	fs.b.log.Warn("sealing a followed segment: its owner is silent, or this broker's lease has run out",
		"topic", fl.topic.Topic.String(), "segment", fl.key.id, "owner", fl.owner)
	err := fs.sealAndReport(ctx, fl)
	if err == nil {
		fs.drop(fl)
		return
	}
	// When the topic is gone, the sweep finds out.
	if ctx.Err() == nil && !errors.Is(err, smq.ErrNotFound) {
		fs.b.log.Error("a followed segment cannot be sealed or replaced", "topic", fl.topic.Topic.String(), "segment", fl.key.id, "err", err)
	}
	if background.Wait(ctx, sweepEvery) == nil {
		fs.mu.Lock()
		fl.sealing = false // it is tried again, unless it is dropped before
		fs.mu.Unlock()
	}
}

// sealAndReport seals the segment and has it replaced. Sealed, it holds nothing
// more; it stays known until the layout has moved on, so that whoever asks for
// its seal is given it. smq.ErrNotFound: the topic may be gone.
func (fs *followers) sealAndReport(ctx context.Context, fl *following) error {
	for wait := reportAgain; ; wait = min(2*wait, reportAtMost) {
		_, err := fl.f.Seal(ctx)
		if err == nil {
			return fs.b.report(ctx, fl.topic, fl.key.id, notice{cause: layout.Failover, by: fs.self})
		}
		if errors.Is(err, smq.ErrCorrupt) || fl.topic.over(ctx)(fl.key.id) || background.Wait(ctx, wait) != nil {
			return err
		}
	}
}
