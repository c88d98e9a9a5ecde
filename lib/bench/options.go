package bench

import (
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Options say what to publish.
type Options struct {
	Rate      float64       // messages a second of all producers together; 0: as fast as they are taken
	InFlight  int           // without a rate: messages of a producer under way at most; 0: what its buffer takes
	Size      int           // bytes of a message's value, stampSize at the least
	Producers int           // each with a publisher of its own
	Warmup    time.Duration // what begins before it is over is not counted
	// Messages, of those that count, and Duration, from the end of the warm-up
	// on, end it, whichever comes first; 0: that one does not.
	Messages int64
	Duration time.Duration
	// Settle is how long acks and messages may still take to come once nothing
	// more is published, and how far publishing may fall behind a rate before
	// what is due is given up.
	Settle time.Duration
}

// Validate says what is wrong, as an smq.ErrInvalid.
func (o Options) Validate() error {
	switch {
	case o.Rate < 0 || o.Rate > 1e9:
		return fmt.Errorf("%w rate of %v messages a second", smq.ErrInvalid, o.Rate)
	case o.Size < MinSize || o.Size > smq.MaxMessageSize:
		return fmt.Errorf("%w size of %d bytes: a message measured has %d to %d", smq.ErrInvalid, o.Size, MinSize, smq.MaxMessageSize)
	case o.Producers < 1:
		return fmt.Errorf("%w number of producers %d: the least is 1", smq.ErrInvalid, o.Producers)
	case o.InFlight < 0 || o.InFlight > 0 && o.Rate > 0:
		return fmt.Errorf("%w number of messages under way: %d, at %v a second", smq.ErrInvalid, o.InFlight, o.Rate)
	case o.Warmup < 0 || o.Messages < 0 || o.Duration < 0 || o.Messages == 0 && o.Duration == 0:
		return fmt.Errorf("%w length: %d messages, %v, after %v", smq.ErrInvalid, o.Messages, o.Duration, o.Warmup)
	}
	return nil
}

// schedule is one producer's part of the messages: of every n, the k-th.
type schedule struct {
	every  time.Duration // between two due messages of this producer; 0: none is due at a time
	first  time.Duration // when the first one is due
	warmup time.Duration
	end    time.Duration // nothing begins from then on; 0: no end
	most   int64         // messages that count; negative: no limit
}

func (o Options) schedule(k int) schedule {
	s := schedule{warmup: o.Warmup, most: -1}
	if o.Rate > 0 {
		s.every = time.Duration(float64(o.Producers) * 1e9 / o.Rate)
		s.first = time.Duration(float64(k) * 1e9 / o.Rate)
	}
	if o.Duration > 0 {
		s.end = o.Warmup + o.Duration
	}
	if o.Messages > 0 {
		n := int64(o.Producers)
		s.most = (o.Messages + n - 1 - int64(k)) / n
	}
	return s
}

// due is when the producer's i-th message is due, since the start. It reports
// false for the loops that are not open.
func (s schedule) due(i int64) (time.Duration, bool) {
	return s.first + time.Duration(i)*s.every, s.every > 0
}

// over reports whether a message that begins at a time is behind the last one,
// when so many before it count.
func (s schedule) over(at time.Duration, counted int64) bool {
	return s.end > 0 && at >= s.end || s.most >= 0 && counted >= s.most
}

// left is how many messages are due from one at a time to the end.
func (s schedule) left(at time.Duration) int64 { return int64((s.end-1-at)/s.every) + 1 }

// counts reports whether a message that began at a time is measured.
func (s schedule) counts(at time.Duration) bool { return at >= s.warmup }
