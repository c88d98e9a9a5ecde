package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// outgoing is a log on a link.
type outgoing struct {
	topic *topic
	log   *seglog.Log
	key   segmentKey
	index int // of the follower in the segment
	lost  func(leaving bool)

	sent     smq.Position // everything before it has been sent on the present stream
	told     smq.Position // what the follower was last told to be stored
	held     smq.Position // what it holds
	since    time.Time    // since when it owes an answer; zero: it does not
	added    time.Time    // when it came, or the lease was last found to have run out
	refused  time.Time    // since when the follower is unavailable; zero: it is not
	waiting  bool         // nothing is sent until a beat under a valid lease
	dirty    bool         // in link.dirty
	finished bool
}

// link is the way to one follower.
type link struct {
	ls   *links
	addr string
	wake chan struct{}

	mu    sync.Mutex
	logs  map[*seglog.Log]*outgoing
	byKey map[segmentKey]*outgoing // the same, as acks name them
	dirty []*outgoing
	empty time.Time // since when there are none

	sending time.Time // since when a frame waits to be taken; zero: none does
}

func newLink(ls *links, addr string) *link {
	return &link{
		ls: ls, addr: addr, wake: make(chan struct{}, 1),
		logs: make(map[*seglog.Log]*outgoing), byKey: make(map[segmentKey]*outgoing), empty: time.Now(),
	}
}

func (k *link) add(o *outgoing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logs[o.log], k.byKey[o.key] = o, o
	o.added, o.waiting = time.Now(), !k.ls.b.member.leased()
	k.touch(o)
}

func (k *link) mark(log *seglog.Log) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.logs[log]; o != nil {
		k.touch(o)
	}
}

func (k *link) remove(log *seglog.Log) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.logs[log]; o != nil {
		k.forget(o)
	}
}

// forget takes the log off the link. k.mu is held.
func (k *link) forget(o *outgoing) {
	delete(k.logs, o.log)
	if k.byKey[o.key] == o {
		delete(k.byKey, o.key)
	}
	k.empty = time.Now()
}

// isIdle reports whether the link has carried nothing for so long that it is not
// kept any longer.
func (k *link) isIdle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.logs) == 0 && time.Since(k.empty) >= linkIdle
}

func (k *link) finish(log *seglog.Log) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.logs[log]; o != nil {
		o.finished = true
		k.touch(o)
	}
}

// touch has the log looked at. k.mu is held.
func (k *link) touch(o *outgoing) {
	if !o.dirty {
		o.dirty = true
		k.dirty = append(k.dirty, o)
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run keeps the stream to the follower up, as long as the broker runs and has
// something for it.
func (k *link) run(ctx context.Context) {
	down := time.Time{}
	for ctx.Err() == nil && !k.ls.drop(k) {
		worked, err := k.stream(ctx)
		if worked || down.IsZero() {
			down = time.Now()
		}
		if ctx.Err() != nil {
			return
		}
		k.ls.b.log.Debug("the stream to a follower broke", "follower", k.addr, "err", err)
		k.loseAll(down)
		if background.Wait(ctx, linkAgain) != nil {
			return
		}
	}
}

// loseAll gives up the follower, which is out of reach since down, for every
// segment that has been without it for long enough.
func (k *link) loseAll(down time.Time) {
	leased := k.ls.b.member.leased()
	k.mu.Lock()
	var lost []*outgoing
	for _, o := range k.logs {
		switch {
		case o.finished:
			if time.Since(down) >= linkLost {
				k.forget(o)
			}
		case !leased:
			o.added = time.Now()
		case time.Since(down) >= linkLost && time.Since(o.added) >= linkLost:
			lost = append(lost, o)
		}
	}
	k.mu.Unlock()
	for _, o := range lost {
		o.lost(false)
	}
}

// errIdle is why a stream ends that carries nothing.
var errIdle = errors.New("nothing is followed any more")

// stream opens a stream and sends what there is until it breaks or the link is
// idle; worked says that it has been of use.
func (k *link) stream(ctx context.Context) (worked bool, err error) {
	conn, err := k.ls.b.cfg.Cluster.Conn(k.addr)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := rpc.OpenReplicate(ctx, conn)
	if err != nil {
		return false, err
	}
	if err := s.Send(&smqpb.ReplicateHead{Hello: &smqpb.ReplicateHello{Broker: string(k.ls.self)}}); err != nil {
		return false, errors.Join(err, s.Recv(&smqpb.ReplicaAcks{}))
	}
	k.restart()
	broken := make(chan error, 1)
	heard := make(chan struct{}, 1)
	go func() { broken <- k.receive(s, heard) }()
	go k.supervise(ctx, cancel)
	beat := time.NewTicker(linkBeat)
	defer beat.Stop()
	for {
		if err := k.send(s); err != nil {
			cancel()
			return worked, errors.Join(err, <-broken)
		}
		select {
		case <-k.wake:
		case <-beat.C:
			if k.isIdle() {
				return worked, errIdle
			}
			if err := k.sendFrame(s, &smqpb.ReplicateHead{}, nil); err != nil {
				cancel()
				return worked, errors.Join(err, <-broken)
			}
		case <-heard:
			worked = true
		case err := <-broken:
			return worked, err
		case <-ctx.Done():
			return worked, ctx.Err()
		}
	}
}

// supervise looks after the segments on a stream until it ends, whether its sender is
// held up or not, and ends one that takes nothing in any more.
func (k *link) supervise(ctx context.Context, end func()) {
	for background.Wait(ctx, linkBeat) == nil {
		k.checkAnswers()
		if k.isHeldUp() {
			end()
		}
	}
}

// isHeldUp reports whether a frame has waited for so long to be taken that the
// follower counts as out of reach.
func (k *link) isHeldUp() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.sending.IsZero() && time.Since(k.sending) >= linkLost
}

// sendFrame sends a frame and notes since when it waits to be taken.
func (k *link) sendFrame(s *rpc.ReplicateClient, head *smqpb.ReplicateHead, payload [][]byte) error {
	note := func(at time.Time) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.sending = at
	}
	note(time.Now())
	defer note(time.Time{})
	return s.Send(head, payload...)
}

// restart has everything that the follower is not known to hold sent again, on
// a fresh stream.
func (k *link) restart() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.logs {
		o.sent, o.told, o.since = o.held, 0, time.Time{}
		k.touch(o)
	}
}

// checkAnswers gives up the follower for segments that it owes an answer for
// too long, and lets those that wait go on.
func (k *link) checkAnswers() {
	leased := k.ls.b.member.leased()
	k.mu.Lock()
	var lost []*outgoing
	for _, o := range k.logs {
		switch {
		case !leased:
			o.added, o.refused = time.Now(), time.Time{}
			if !o.since.IsZero() {
				o.since = o.added
			}
			continue
		case o.waiting:
			o.waiting = false
			k.touch(o)
		}
		if !o.finished && !o.since.IsZero() && time.Since(o.since) >= linkLost && !o.log.StoreLags() {
			lost = append(lost, o)
		}
	}
	k.mu.Unlock()
	for _, o := range lost {
		o.lost(false)
	}
}

// send sends frames until nothing is dirty.
func (k *link) send(s *rpc.ReplicateClient) error {
	for {
		head, payload := k.frame()
		if head == nil {
			return nil
		}
		if err := k.sendFrame(s, head, payload); err != nil {
			return err
		}
	}
}

// frame takes what the next frame carries.
func (k *link) frame() (*smqpb.ReplicateHead, [][]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var (
		head    smqpb.ReplicateHead
		payload [][]byte
	)
	for budget := frameBytes; budget > 0 && len(k.dirty) > 0; {
		o := k.dirty[0]
		k.dirty, o.dirty = k.dirty[1:], false
		if k.logs[o.log] != o || o.waiting && !o.finished {
			continue
		}
		out := o.log.Outgoing(o.sent, budget)
		if len(out.Batches) == 0 && out.Stored <= o.told && !o.finished {
			continue
		}
		seg := &smqpb.ReplicateSegment{
			Topic: o.topic.Topic.String(), TopicId: string(o.topic.ID), Segment: uint64(o.log.Ident().Segment),
			First: out.First, Stored: out.Stored, Closed: o.finished,
		}
		for _, b := range out.Batches {
			seg.Partitions = append(seg.Partitions, b.Partition)
			seg.Sizes = append(seg.Sizes, uint32(len(b.Bytes)))
			payload = append(payload, b.Bytes)
			budget -= len(b.Bytes)
		}
		head.Segments = append(head.Segments, seg)
		o.sent, o.told = out.First+uint64(len(out.Batches)), out.Stored
		switch {
		case o.finished:
			k.forget(o)
		case len(out.Batches) > 0:
			if o.since.IsZero() {
				o.since = time.Now()
			}
			k.touch(o) // there may be more
		}
	}
	if len(head.Segments) == 0 {
		return nil, nil
	}
	return &head, payload
}

// receive takes the follower's acks until the stream breaks.
func (k *link) receive(s *rpc.ReplicateClient, heard chan<- struct{}) error {
	var acks smqpb.ReplicaAcks
	for {
		if err := s.Recv(&acks); err != nil {
			return fmt.Errorf("replicate to %s: %w", k.addr, err)
		}
		select {
		case heard <- struct{}{}:
		default:
		}
		for _, a := range acks.GetAcks() {
			k.take(a)
		}
	}
}

// take takes in one ack.
func (k *link) take(a *smqpb.ReplicaAck) {
	o := k.find(a)
	if o == nil {
		return
	}
	if err := rpc.FromErrorInfo(a.GetError()); err != nil {
		k.refused(o, err)
		return
	}
	o.log.Held(o.index, a.GetHeld())
}

// refused gives up a follower that refuses a segment. One that is unavailable,
// as when its lease has run out for a moment, is asked again for a while. One that
// has no memory is well, and another one would have no more: it is asked again until
// it has, or the store has what it lacks.
func (k *link) refused(o *outgoing, err error) {
	k.mu.Lock()
	level := slog.LevelDebug
	if o.refused.IsZero() {
		o.refused, level = time.Now(), slog.LevelWarn
	}
	again := errors.Is(err, smq.ErrOverloaded) || errors.Is(err, smq.ErrUnavailable) && time.Since(o.refused) < refusedFor
	if again {
		o.waiting, o.sent, o.told, o.since = true, o.held, 0, time.Time{}
	}
	k.mu.Unlock()
	k.ls.b.log.Log(context.Background(), level, "a follower refuses a segment", "follower", k.addr, "topic", o.topic.Topic.String(), "segment", o.log.Ident().Segment, "again", again, "err", err)
	if !again {
		o.lost(errors.Is(err, smq.ErrDraining))
	}
}

// find returns the log that the ack is for, and takes note of it.
func (k *link) find(a *smqpb.ReplicaAck) *outgoing {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.byKey[segmentKey{smq.TopicID(a.GetTopicId()), smq.SegmentID(a.GetSegment())}]
	if o == nil {
		return nil
	}
	o.held = max(o.held, a.GetHeld())
	o.since = time.Time{}
	if a.GetError() == nil {
		o.refused = time.Time{}
	}
	if o.held < o.sent {
		o.since = time.Now()
	}
	return o
}
