package client

import (
	"errors"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// lateAfter is how old a replicated ack may be. Its broker gave it under a
// lease, and may have been paused between that and sending it.
const lateAfter = time.Second

// acked takes in the broker's answers.
func (p *Publisher) acked(l *link, acks *smqpb.PublishAcks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	l.healthy = true
	for _, ack := range acks.GetAcks() {
		id := ack.GetId()
		a, ok := l.inflight[id]
		if !ok {
			continue // answered before
		}
		delete(l.inflight, id)
		b := a.batch
		if b.settled {
			continue
		}
		if err := rpc.FromErrorInfo(ack.GetError()); err != nil {
			p.refused(a, err)
		} else {
			p.accepted(a, ack, now)
		}
		p.schedule(b.part)
	}
	if l.retired && len(l.inflight) == 0 {
		l.poke()
	}
}

// accepted settles a batch that the broker has acked, if the ack holds.
func (p *Publisher) accepted(a attempt, ack *smqpb.PublishAck, now time.Duration) {
	b := a.batch
	t := b.part
	level := AckLevel(ack.GetLevel())
	late := level != AckStored && now-a.at > lateAfter
	weak := level != AckStored && p.options.Acks == AckStored
	if late {
		p.metrics.lateAcks.Inc()
	}
	if late || weak || t.queue[0] != b {
		// It says nothing that holds. The next attempt will tell.
		if a.current() {
			t.recall()
			p.router.cool(a.route, nil)
		}
		return
	}
	p.router.works(a.route)
	p.lastAck = now
	p.acks.ends(p.logger)
	t.pop()
	p.metrics.acked.Add(float64(b.count))
	p.settle(b, Results{BaseOffset: ack.GetBaseOffset(), Level: level})
}

// refused takes in that an attempt failed.
func (p *Publisher) refused(a attempt, err error) {
	b := a.batch
	t := b.part
	if isRefusal(err) && a.id > b.disowned {
		b.refusals++
	}
	if !a.current() {
		return
	}
	switch {
	case ownerMoved(err):
		t.recall()
		p.router.block(a.route, err)
	case errors.Is(err, smq.ErrOutOfSequence), errors.Is(err, smq.ErrUnknownProducer):
		p.outOfSequence(a, err)
	case isFinal(err):
		p.giveUp(t, t.index(b), err)
	default:
		t.trouble = err
		t.recall()
		p.router.cool(a.route, err)
	}
}

// outOfSequence deals with a broker that holds less, or more, of this producer
// than it should. Everything of the partition is sent again: after cutting off
// what the broker does hold; or, if nothing of it can be stored any more, in a
// new epoch (see partition.restart); or as it is, for the broker may not know
// all. What may be stored, though nobody can tell any more, is given up.
func (p *Publisher) outOfSequence(a attempt, err error) {
	b := a.batch
	t := b.part
	t.recall()
	if t.queue[0] == b {
		var held *smq.SequenceError
		known := errors.As(err, &held)
		if known && held.Last >= 0 {
			if n := record.SequenceDistance(b.seq, held.Last); n < b.remaining()-1 {
				if err := b.recut(n + 1); err != nil {
					p.giveUp(t, 0, err)
				}
				return
			}
		}
		switch latest := t.attemptedUpTo(a.route.segment); {
		case latest && known && misses(held.Last, b.seq):
			t.disown(p.attempts)
		case latest && !known && !b.certain():
			p.giveUp(t, 0, err)
			return
		}
		if b.cut > 0 && b.certain() {
			p.giveUp(t, 0, err)
			return
		}
	}
	if !t.gapped {
		p.logger.Warn("a broker misses messages that it should hold of this publisher", "partition", t.id, "error", err)
	}
	t.gapped = true
	p.router.cool(a.route, err)
	p.router.block(a.route, err)
}

// misses reports whether a broker that holds a producer's batches up to the
// sequence last, or none for -1, lacks something before the given sequence.
func misses(last, seq int32) bool {
	if last < 0 {
		return seq != 0
	}
	return record.SequenceAfter(seq, record.NextSequence(last, 1))
}

// isRefusal reports whether the error says that the attempt stored nothing, and
// will not.
func isRefusal(err error) bool {
	return isAny(err, smq.ErrSegmentSealed, smq.ErrNotOwner, smq.ErrDraining, smq.ErrNotFound, smq.ErrOverloaded,
		smq.ErrOutOfSequence, smq.ErrUnknownProducer, smq.ErrStaleProducer, smq.ErrInvalid, smq.ErrTooLarge, smq.ErrNoSpace)
}

// ownerMoved reports whether another broker is to be asked.
func ownerMoved(err error) bool {
	return isAny(err, smq.ErrSegmentSealed, smq.ErrNotOwner, smq.ErrDraining, smq.ErrNotFound)
}

// isFinal reports whether no other attempt can end differently.
func isFinal(err error) bool {
	return isAny(err, smq.ErrInvalid, smq.ErrTooLarge, smq.ErrCorrupt, smq.ErrStaleProducer, smq.ErrDuplicate)
}

func isAny(err error, kinds ...error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
