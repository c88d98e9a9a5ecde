package sim

import (
	"errors"
	"slices"
	"sync"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// Ledger remembers what clients sent and were told, and what readers were
// given: everything that the promises are about, and nothing of the log.
type Ledger struct {
	mu       sync.Mutex
	batches  map[Key]*sent
	attempts map[uint64]attempt // without an answer yet, by id
	last     uint64             // id of an attempt
	acked    []claim            // not compared with the store yet
	seen     []claim            // likewise
	waiting  []claim            // early ones that the store does not have yet
	settling []claim            // of both, being compared
	broken   *Violation         // the first that was found without the store
}

// attempt is one time that a batch was sent.
type attempt struct {
	key Key
	to  string // the process that it was sent to
}

// sent is a batch and what became of the attempts to publish it.
type sent struct {
	bytes    []byte // as the client means them
	count    int32
	attempts int
	refused  int // of them, told that they are not stored
	acked    int
	offset   smq.Offset // when acked
}

// claim is what somebody was made to believe of an offset.
type claim struct {
	key    Key
	offset smq.Offset
	bytes  []byte // as they were seen; nil for an ack
	by     string // who said so
	early  bool   // the store may have it later only
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{batches: make(map[Key]*sent), attempts: make(map[uint64]attempt)}
}

// Mean notes what the client means to publish as k: count messages. It comes
// before the first attempt.
func (l *Ledger) Mean(k Key, count int, bytes []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches[k] = &sent{bytes: bytes, count: int32(count)}
}

// Attempt notes that k is about to be sent to a process, and returns the
// attempt's id.
func (l *Ledger) Attempt(k Key, to string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.attempts[l.last] = attempt{k, to}
	l.batches[k].attempts++
	return l.last
}

// Answer notes an ack that reached the client from the process named by, and
// returns the batch that it is of.
func (l *Ledger) Answer(by string, a seglog.Ack) Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, open := l.attempts[a.ID]
	k := at.key
	if !open {
		l.violated("answers", "%s answers attempt %d twice: %+v", by, a.ID, a)
		return k
	}
	delete(l.attempts, a.ID)
	s := l.batches[k]
	switch {
	case a.Err == nil:
		if s.acked > 0 && s.offset != a.BaseOffset {
			l.violated("P7", "%s acks %v at offset %d, it was acked at offset %d before", by, k, a.BaseOffset, s.offset)
		}
		s.acked++
		s.offset = a.BaseOffset
		l.acked = append(l.acked, claim{key: k, offset: a.BaseOffset, by: by, early: a.Level == seglog.Replicated})
	case notStored(a.Err):
		s.refused++
	}
	return k
}

// notStored reports whether the error says for certain that its attempt is not
// in the log.
func notStored(err error) bool {
	return errors.Is(err, smq.ErrSegmentSealed) || errors.Is(err, smq.ErrNoSpace) ||
		errors.Is(err, smq.ErrOutOfSequence) || errors.Is(err, smq.ErrUnknownProducer)
}

// Unanswered lists the batches that the process has been sent and not answered.
func (l *Ledger) Unanswered(process string) []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []Key
	for _, a := range l.attempts {
		if a.to == process {
			keys = append(keys, a.key)
		}
	}
	return keys
}

// Acked reports whether the client knows that the batch is in the log.
func (l *Ledger) Acked(k Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.batches[k].acked > 0
}

// Seen notes that the reader named by was given a batch at an offset; early
// says that the store may have it later only.
func (l *Ledger) Seen(by string, p smq.Partition, offset smq.Offset, bytes []byte, early bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, claim{key: Key{Partition: p}, offset: offset, bytes: bytes, by: by, early: early})
}

func (l *Ledger) violated(promise, format string, args ...any) {
	if l.broken == nil {
		l.broken = Violated(promise, format, args...)
	}
}

// Begin puts the acks and deliveries so far aside.
func (l *Ledger) Begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	l.settling = slices.Concat(l.waiting, l.acked, l.seen)
	l.waiting, l.acked, l.seen = nil, nil, nil
	return nil
}

// Outstanding is a Violation when something that was acked or seen has not come
// into the store.
func (l *Ledger) Outstanding() error {
	if len(l.waiting) == 0 {
		return nil
	}
	w := l.waiting[0]
	if w.bytes == nil {
		return Violated("P1", "%s acked %v at offset %d, and it is lost", w.by, w.key, w.offset)
	}
	return Violated("P4", "%s read offset %d of partition %d, and it is lost", w.by, w.offset, w.key.Partition)
}

// digest tells what is outstanding.
func (l *Ledger) digest() uint64 {
	var h uint64
	for _, w := range l.waiting {
		h = mix(mixString(h, w.key.String()), uint64(w.offset))
	}
	return h
}

// Batch checks that a batch is what its client meant.
func (l *Ledger) Batch(k Key, h record.Header, batch []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.batches[k]; s == nil || !same(s.bytes, batch) || s.count != h.Count {
		return Violated("P1", "%v at offset %d is not what its client meant to publish", k, h.BaseOffset)
	}
	return nil
}

// Settle checks that the log holds what was acked (P1, P5), and what readers
// were given (P4), and nothing that was refused for certain.
func (l *Ledger) Settle(c *Checker) error {
	for _, s := range l.settling {
		if s.early && s.offset >= c.End(s.key.Partition) {
			l.waiting = append(l.waiting, s)
			continue
		}
		if err := s.settle(c); err != nil {
			return err
		}
	}
	for _, k := range l.refused() {
		if o, ok := c.Find(k); ok {
			return Violated("answers", "%v is in the log at offset %d, but its client was told that it is not", k, o)
		}
	}
	return nil
}

func (s claim) settle(c *Checker) error {
	k, bytes, ok := c.At(s.key.Partition, s.offset)
	switch {
	case s.bytes == nil && !ok:
		return Violated("P1", "%s acked %v at offset %d, where the log has nothing", s.by, s.key, s.offset)
	case s.bytes == nil && k != s.key:
		return Violated("P1", "%s acked %v at offset %d, where %v is", s.by, s.key, s.offset, k)
	case !ok:
		return Violated("P4", "%s read offset %d of partition %d, where the log has nothing", s.by, s.offset, s.key.Partition)
	case s.bytes != nil && string(bytes) != string(s.bytes):
		return Violated("P4", "%s read offset %d of partition %d otherwise than the log has it, %v", s.by, s.offset, s.key.Partition, k)
	}
	return nil
}

// refused lists the batches of which every attempt was told that it is not in
// the log.
func (l *Ledger) refused() []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []Key
	for k, s := range l.batches {
		if s.refused > 0 && s.refused == s.attempts {
			keys = append(keys, k)
		}
	}
	return keys
}
