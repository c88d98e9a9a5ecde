package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Options say what to publish.
type Options struct {
	// Stages follow one another from the end of the warm-up on, whose rate is the
	// first one's; none: messages are published as fast as they are taken. The run
	// ends with the last stage.
	Stages    []Stage
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

// Stage is a time of one rate.
type Stage struct {
	Rate float64       // messages a second of all producers together; 0: none
	For  time.Duration // 0, of the last one: to the end of the run
}

// open reports whether messages are due at times.
func (o Options) open() bool { return len(o.Stages) > 0 }

func (o Options) validateStages() error {
	for i, s := range o.Stages {
		last := i == len(o.Stages)-1
		switch {
		case s.Rate < 0 || s.Rate > 1e9 || len(o.Stages) == 1 && s.Rate == 0:
			return fmt.Errorf("%w rate of %v messages a second", smq.ErrInvalid, s.Rate)
		case s.For < 0 || s.For == 0 && !last:
			return fmt.Errorf("%w length of a stage: %v", smq.ErrInvalid, s.For)
		case s.For == 0 && o.Messages > 0 && s.Rate == 0 && o.Duration == 0:
			return fmt.Errorf("%w rate of the last stage: no message would end it", smq.ErrInvalid)
		}
	}
	return nil
}

// Validate says what is wrong, as an smq.ErrInvalid.
func (o Options) Validate() error {
	if err := o.validateStages(); err != nil {
		return err
	}
	switch {
	case o.Size < MinSize || o.Size > smq.MaxMessageSize:
		return fmt.Errorf("%w size of %d bytes: a message measured has %d to %d", smq.ErrInvalid, o.Size, MinSize, smq.MaxMessageSize)
	case o.Producers < 1:
		return fmt.Errorf("%w number of producers %d: the least is 1", smq.ErrInvalid, o.Producers)
	case o.InFlight < 0 || o.InFlight > 0 && o.open():
		return fmt.Errorf("%w number of messages under way: %d, at a rate", smq.ErrInvalid, o.InFlight)
	case o.Warmup < 0 || o.Messages < 0 || o.Duration < 0 || o.Messages == 0 && o.Duration == 0 && !o.ends():
		return fmt.Errorf("%w length: %d messages, %v, after %v", smq.ErrInvalid, o.Messages, o.Duration, o.Warmup)
	}
	return nil
}

// ends reports whether the stages do.
func (o Options) ends() bool { return o.open() && o.Stages[len(o.Stages)-1].For > 0 }

// schedule is one producer's part of the messages: of every so many, one.
type schedule struct {
	stages       []stage // none: no message is due at a time
	nth, ofEvery int64   // the nth, from 0, of every so many messages
	warmup       time.Duration
	end          time.Duration // nothing begins from then on; 0: no end
	most         int64         // messages that count; negative: no limit
}

// stage is a Stage in time.
type stage struct {
	rate       float64
	begin, end time.Duration // since the start; no end: 0
	before     float64       // messages, of all producers, due before it
}

func (s stage) messages() float64 { return s.rate * (s.end - s.begin).Seconds() }

func (o Options) schedule(k int) schedule {
	s := schedule{nth: int64(k), ofEvery: int64(o.Producers), warmup: o.Warmup, most: -1}
	var at time.Duration
	var before float64
	for i, given := range o.Stages {
		st := stage{rate: given.Rate, begin: at, before: before}
		if given.For > 0 {
			st.end = at + given.For
			if i == 0 {
				st.end += o.Warmup
			}
			at, before = st.end, before+st.messages()
		}
		s.stages = append(s.stages, st)
	}
	if o.ends() {
		s.end = at
	}
	if end := o.Warmup + o.Duration; o.Duration > 0 && (s.end == 0 || end < s.end) {
		s.end = end
	}
	if o.Messages > 0 {
		n := int64(o.Producers)
		s.most = (o.Messages + n - 1 - int64(k)) / n
	}
	return s
}

// due is when the producer's i-th message is due, since the start: at the end
// of all stages if in none of them. It reports false for the loops that are not
// open.
func (s schedule) due(i int64) (time.Duration, bool) {
	if len(s.stages) == 0 {
		return 0, false
	}
	n := float64(i*s.ofEvery + s.nth)
	for _, st := range s.stages {
		if st.rate > 0 && (st.end == 0 || n < st.before+st.messages()) {
			return st.begin + time.Duration((n-st.before)*1e9/st.rate), true
		}
	}
	return s.end, true
}

// over reports whether a message that begins at a time is behind the last one,
// when so many before it count.
func (s schedule) over(at time.Duration, counted int64) bool {
	return s.end > 0 && at >= s.end || s.most >= 0 && counted >= s.most
}

// left is how many messages are due from the i-th to the end, which there has to
// be.
func (s schedule) left(i int64) int64 {
	all := 0.0 // of all producers
	for _, st := range s.stages {
		if st.end == 0 || st.end > s.end {
			st.end = s.end
		}
		if st.begin < s.end {
			all = math.Ceil(st.before + st.messages())
		}
	}
	return max((int64(all)-s.nth+s.ofEvery-1)/s.ofEvery-i, 0)
}

// counts reports whether a message that began at a time is measured.
func (s schedule) counts(at time.Duration) bool { return at >= s.warmup }
