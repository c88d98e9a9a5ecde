package client

import (
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/record"
)

// phase is what has become of a batch's messages so far.
type phase int8

const (
	building phase = iota // in the builder, and more may come
	closed                // in the builder; the sequences are given
	encoding              // some goroutine, without the lock, makes bytes of them
	encoded               // in bytes
)

// batchOverhead is what a batch counts against the buffer besides its messages,
// for what it takes to keep track of it.
const batchOverhead = 512

// batch is a batch from its first message until its results are told. Fields
// are guarded by the publisher's lock, but for a builder in the phase encoding.
type batch struct {
	part   *partition
	number uint64        // rises with every batch of the publisher
	opened time.Duration // when its first message came

	phase   phase
	builder *record.Builder
	count   int32
	tokens  []uint64 // the messages', when there is somebody to tell
	waiters []waiter
	charged int64 // what it counts against the buffer
	metered int64 // what of that the metrics have counted
	due     bool  // it need not wait for more messages

	producer int64
	epoch    int16
	seq      int32  // of the first message
	bytes    []byte // never change once sent: a connection may still hold them
	cut      int32  // messages in front that bytes no longer have, for they are stored

	attempt  uint64 // whose answer counts; 0: the batch is not at a broker
	tries    int    // attempts made
	refusals int    // attempts of which it is known that they have stored nothing
	disowned uint64 // of attempts up to this one that is known, whatever becomes of them
	furthest uint64 // the greatest of the segments that attempts were for
	settled  bool
	outcome  Results // once settled

	links [listKinds]struct{ prev, next *batch }
}

// waiter is a call of PublishSync.
type waiter struct {
	index int32 // of its message in the batch
	told  chan outcome
}

type outcome struct {
	partition int32
	offset    int64
	err       error
}

// remaining is how many messages the bytes have.
func (b *batch) remaining() int32 { return b.count - b.cut }

// certain reports whether it is known that no attempt has stored the batch.
func (b *batch) certain() bool { return b.tries == b.refusals }

// failure is the error for a batch that is given up because of cause.
func (b *batch) failure(cause error) error {
	if b.certain() && b.cut == 0 {
		return fmt.Errorf("%w: %w", ErrNotStored, cause)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, cause)
}

// resequence gives the batch other sequences. That no attempt at it has been
// or will be stored must be certain.
func (b *batch) resequence(epoch int16, seq int32) {
	b.epoch, b.seq = epoch, seq
	if b.phase == encoded {
		b.bytes = append([]byte(nil), b.bytes...)
		record.Resequence(b.bytes, epoch, seq)
	}
}

// keep takes the bytes that the batch was encoded to under sequences which it may
// no longer have.
func (b *batch) keep(bytes []byte, epoch int16, seq int32) {
	if epoch != b.epoch || seq != b.seq {
		record.Resequence(bytes, b.epoch, b.seq)
	}
	b.bytes = bytes
}

// recut drops the first n messages, which are stored, from the encoded batch.
func (b *batch) recut(n int32) error {
	var r record.Reader
	if err := r.Reset(b.bytes); err != nil {
		return err
	}
	h := r.Header()
	builder := record.NewBuilder(h.Codec())
	for i := int32(0); ; i++ {
		rec, ok := r.Next()
		if !ok {
			break
		}
		if i < n {
			continue
		}
		if err := builder.Append(rec.Timestamp, rec.Key, rec.Value, rec.Headers); err != nil {
			return err
		}
	}
	if r.Err() != nil {
		return r.Err()
	}
	seq := record.NextSequence(b.seq, n)
	bytes, err := builder.Finish(nil, b.producer, b.epoch, seq)
	if err != nil {
		return err
	}
	b.bytes, b.seq, b.cut = bytes, seq, b.cut+n
	return nil
}

// The lists that a batch may be in.
const (
	inLive      = iota // not settled
	inLingering        // waiting for more messages
	listKinds
)

// batchList is a list of batches, oldest first, out of which any may be taken.
type batchList struct {
	kind       int
	head, tail *batch
}

func (l *batchList) push(b *batch) {
	b.links[l.kind].prev = l.tail
	if l.tail == nil {
		l.head = b
	} else {
		l.tail.links[l.kind].next = b
	}
	l.tail = b
}

// remove takes a batch out, or does nothing if it is not in the list.
func (l *batchList) remove(b *batch) {
	at := &b.links[l.kind]
	if at.prev == nil && l.head != b {
		return
	}
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.kind].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.kind].prev = at.prev
	}
	at.prev, at.next = nil, nil
}
