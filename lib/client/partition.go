package client

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"slices"

	"github.com/seaweedmq/smq/lib/record"
)

// maxInFlight bounds the batches of a partition that are sent and not acked:
// brokers remember as many of each producer.
const maxInFlight = 5

// partition is a partition as its publisher sees it. The publisher's lock
// guards it.
type partition struct {
	id       int32
	parked   bool  // it waits at its route
	ready    *link // in whose list of ready partitions it is
	producer int64
	epoch    int16
	nextSeq  int32
	used     bool     // something of this epoch has been sent
	gapped   bool     // the broker says that it misses what came before the head
	open     *batch   // takes messages; nil: none
	queue    []*batch // closed ones that are not settled
	sent     int      // how many in front of queue are at a broker
	trouble  error    // what a broker said last against the head; nil: nothing
}

// newProducerID draws a producer id at random, so large that no two meet.
func newProducerID() int64 {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return int64(binary.BigEndian.Uint64(b[:]) & math.MaxInt64)
}

// next is the batch to send now, or nil. It may be the open one, to be closed
// first.
func (t *partition) next() *batch {
	var b *batch
	switch {
	case t.sent >= maxInFlight:
		return nil
	case t.sent < len(t.queue):
		if b = t.queue[t.sent]; b.phase == encoding {
			return nil
		}
		if t.sent > 0 && !t.sameEpoch(b.producer, b.epoch) {
			return nil
		}
		return b
	case t.open != nil && t.open.due:
		if t.sent > 0 && !t.sameEpoch(t.producer, t.epoch) {
			return nil
		}
		return t.open
	}
	return nil
}

// sameEpoch reports whether the batches at the broker are of an epoch. Once a
// broker has seen a higher one it would refuse to take them again.
func (t *partition) sameEpoch(producer int64, epoch int16) bool {
	return t.queue[0].producer == producer && t.queue[0].epoch == epoch
}

// index is the place of a batch that is not settled in the queue, behind the
// last for the open one.
func (t *partition) index(b *batch) int {
	for i, q := range t.queue {
		if q == b {
			return i
		}
	}
	return len(t.queue)
}

// close gives the open batch its sequences and queues it.
func (t *partition) close() *batch {
	b := t.open
	t.open = nil
	b.phase, b.due = closed, true
	b.producer, b.epoch, b.seq = t.producer, t.epoch, t.nextSeq
	t.nextSeq = record.NextSequence(t.nextSeq, b.count)
	t.queue = append(t.queue, b)
	return b
}

// pop takes the head, which is settled, from the queue.
func (t *partition) pop() {
	t.queue[0] = nil
	t.queue = t.queue[1:]
	if len(t.queue) == 0 {
		t.queue = nil
	}
	t.sent = max(t.sent-1, 0)
	t.gapped, t.trouble = false, nil
}

// recall makes every batch one to be sent again.
func (t *partition) recall() {
	for _, b := range t.queue[:t.sent] {
		b.attempt = 0
	}
	t.sent = 0
}

// raise begins the sequences anew, in an epoch of which nothing has been sent.
func (t *partition) raise() {
	t.nextSeq, t.gapped = 0, false
	if !t.used {
		return
	}
	t.used = false
	if t.epoch == math.MaxInt16 {
		// The broker keeps the old id's epoch, so what may still be under way
		// of it can only come as a late part of what was reported unknown.
		t.producer, t.epoch = newProducerID(), 0
		return
	}
	t.epoch++
}

// attemptedUpTo reports whether no batch has been sent to a segment that follows
// the given one. Ids rise along the segments of a partition, so what its owner
// says of the producer counts for all of the attempts.
func (t *partition) attemptedUpTo(segment uint64) bool {
	return !slices.ContainsFunc(t.queue, func(b *batch) bool { return b.furthest > segment })
}

// disown takes in that the owner of the last segment that was tried misses what
// came before the head, and so holds nothing of the queue: earlier segments
// are sealed, and what may still arrive there or at this owner is refused.
// Messages that were acked before, as replicated, were lost with all replicas of
// a segment. upTo is the last attempt made.
func (t *partition) disown(upTo uint64) {
	for _, b := range t.queue {
		b.refusals, b.disowned = b.tries, upTo
	}
}

// restart begins a higher epoch with what the queue holds, none of which was or
// will be stored under its present sequences. It reports whether it could.
func (t *partition) restart() bool {
	if t.sent > 0 || t.epoch == math.MaxInt16 {
		return false
	}
	for _, b := range t.queue {
		if !b.certain() || b.cut > 0 {
			return false
		}
	}
	t.used = true
	t.raise()
	for _, b := range t.queue {
		b.resequence(t.epoch, t.nextSeq)
		t.nextSeq = record.NextSequence(t.nextSeq, b.count)
	}
	return true
}
