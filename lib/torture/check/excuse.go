package check

import (
	"slices"
	"time"
)

const (
	second = int64(time.Second / time.Microsecond)

	// lateAck is how long a replicated ack may be under way for a client to
	// believe it, with some room: the batch was written then at the earliest.
	lateAck = 3 * second / 2
	// lateRead is how long a message may be under way to a reader after it was
	// committed in memory only.
	lateRead = 15 * second
	// awayFor is how long a reader may be without a connection.
	awayFor = 60 * second
	// hitBefore is how long before a message was written a fault may have ended
	// that lost it: a broker that was silent for its lease counts as lost.
	hitBefore = 6 * second
	// hitAround is how much a segment's life may seem shorter than it was, as the
	// layouts' clocks tell it.
	hitAround = second
)

// written is when the message was written whose ack counts: between the two.
func (f *fate) written() (from, to int64) { return max(f.sent, f.answered-lateAck), f.answered }

// excuses reports whether what was written to a partition between two times may
// have been lost without breaking a promise: a segment that lived then has an
// unclean seal, and between that time and the seal something was done to each of
// its replicas that may have cost it what it held.
func (c *Checker) excuses(l *log, from, to int64) bool {
	return slices.ContainsFunc(l.unclean, func(u Event) bool {
		if u.Called > to || u.Until < from {
			return false
		}
		// How long it was not stored is up to the store.
		return c.faults.spared(u.Parts, max(from-hitBefore, u.Called-hitAround), u.Until+hitAround) == ""
	})
}
