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

// Replicate serves the stream of an owner, in one life of this broker.
func (d dataService) Replicate(stream rpc.ReplicateStream) error {
	var head smqpb.ReplicateHead
	if _, err := stream.Recv(&head); err != nil {
		return ended(err)
	}
	owner := smq.BrokerID(head.GetHello().GetBroker())
	if owner == "" || len(head.GetSegments()) > 0 {
		return fmt.Errorf("%w frame: a stream begins with a hello and nothing else", smq.ErrInvalid)
	}
	fs := d.b.following()
	for {
		payload, err := stream.Recv(&head)
		if err != nil {
			return ended(err)
		}
		if d.b.following() != fs {
			// What is followed under the fresh id has nothing to do with this stream:
			// here it would be refused as by a broker that is leaving.
			return fmt.Errorf("%w: this broker has started over with a fresh id", smq.ErrUnavailable)
		}
		fs.hear(owner)
		acks, err := fs.take(stream.Context(), owner, head.GetSegments(), payload)
		if err != nil {
			return err
		}
		acks = append(acks, fs.farewells(owner)...)
		if len(acks) == 0 {
			continue
		}
		if err := stream.Send(&smqpb.ReplicaAcks{Acks: acks}); err != nil {
			return err
		}
	}
}

func (fs *followers) hear(owner smq.BrokerID) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.heard[owner]++
}

// take takes a frame in, segment by segment. All that are new are looked up at once.
func (fs *followers) take(ctx context.Context, owner smq.BrokerID, segs []*smqpb.ReplicateSegment, payload []byte) ([]*smqpb.ReplicaAck, error) {
	for _, s := range segs {
		if !s.GetClosed() && fs.mayBegin(keyOf(s)) == nil {
			fs.known(owner, s)
		}
	}
	acks := make([]*smqpb.ReplicaAck, 0, len(segs))
	for _, s := range segs {
		var (
			batches []seglog.Batch
			err     error
		)
		if batches, payload, err = cutBatches(s, payload); err != nil {
			return nil, err
		}
		ack := &smqpb.ReplicaAck{TopicId: s.GetTopicId(), Segment: s.GetSegment()}
		held, err := fs.append(ctx, owner, s, batches)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ack.Held, ack.Error = held, rpc.ErrorInfo(err)
		if !s.GetClosed() {
			acks = append(acks, ack)
		}
	}
	if len(payload) > 0 {
		return nil, fmt.Errorf("%w frame: %d bytes too many", smq.ErrInvalid, len(payload))
	}
	return acks, nil
}

func keyOf(s *smqpb.ReplicateSegment) segmentKey {
	return segmentKey{smq.TopicID(s.GetTopicId()), smq.SegmentID(s.GetSegment())}
}

// cutBatches takes a segment's batches off the payload.
func cutBatches(s *smqpb.ReplicateSegment, payload []byte) ([]seglog.Batch, []byte, error) {
	if len(s.GetSizes()) != len(s.GetPartitions()) {
		return nil, nil, fmt.Errorf("%w frame: %d sizes of %d batches", smq.ErrInvalid, len(s.GetSizes()), len(s.GetPartitions()))
	}
	batches := make([]seglog.Batch, len(s.GetSizes()))
	for i, size := range s.GetSizes() {
		if int(size) > len(payload) {
			return nil, nil, fmt.Errorf("%w frame: it ends early", smq.ErrInvalid)
		}
		batches[i] = seglog.Batch{Partition: s.GetPartitions()[i], Bytes: payload[:size:size]}
		payload = payload[size:]
	}
	return batches, payload, nil
}

// append gives batches to the follower of their segment.
func (fs *followers) append(ctx context.Context, owner smq.BrokerID, s *smqpb.ReplicateSegment, batches []seglog.Batch) (smq.Position, error) {
	if s.GetClosed() {
		fs.letGo(keyOf(s), owner)
		return s.GetStored(), nil
	}
	if err := fs.mayBegin(keyOf(s)); err != nil {
		return 0, err
	}
	fl := fs.known(owner, s)
	if fl == nil {
		return 0, smq.ErrDraining
	}
	if err := fl.checked(ctx); err != nil {
		return 0, err
	}
	if err := fl.follows(owner); err != nil {
		return 0, err
	}
	var n int64
	for i := range batches {
		n += int64(len(batches[i].Bytes))
	}
	if full := fs.b.shared.ReserveReplica(n); full != nil {
		return fl.doWithout(s, full)
	}
	held, err := fl.f.Append(s.GetFirst(), s.GetStored(), batches)
	switch {
	case err == nil:
		fl.short.Store(false)
	case fl.short.Load() && errors.Is(err, smq.ErrConflict):
		err = fmt.Errorf("%w: what comes before was not taken", smq.ErrOverloaded)
	}
	return held, err
}

// doWithout takes the owner's news in and not its batches, for which there is no
// memory. The owner sends them again, from what is held on, unless it has stored them
// before; what it had sent already does not fit until then.
func (fl *following) doWithout(s *smqpb.ReplicateSegment, full error) (smq.Position, error) {
	fl.short.Store(true)
	held, err := fl.f.Append(0, s.GetStored(), nil)
	if err != nil {
		return held, err
	}
	return held, full
}

// mayBegin refuses a segment that is not followed yet while the lease has run
// out: it would be sealed at the next look, and its successor again.
func (fs *followers) mayBegin(k segmentKey) error {
	if fs.b.member.leased() {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byKey[k] != nil || fs.ending {
		return nil
	}
	return fmt.Errorf("%w: the follower's lease with the masters has run out", smq.ErrUnavailable)
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
