package master

import (
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// leases are the brokers' leases in one reign. Times are the master's clock's.
type leases struct {
	duration time.Duration

	mu         sync.Mutex
	byID       map[smq.BrokerID]*lease
	attended   bool          // at least half of the brokers have come
	attendedAt time.Duration // since when
}

// lease is what the leading master holds of a broker besides the registry.
type lease struct {
	since   time.Duration // when it was made
	until   time.Duration
	expired bool     // being expired: there is no way back
	session *session // the broker's latest stream; nil when that has ended, or in this reign never was
	lost    bool     // the latest stream has ended without a farewell
	lostAt  time.Duration
	load    *smqpb.Load
}

// session is one Join stream.
type session struct {
	granted chan uint64   // sequence of the latest heartbeat that is granted; holds one
	refused chan struct{} // closed: the lease has run out
}

func newLeases(d time.Duration) *leases {
	return &leases{duration: d, byID: make(map[smq.BrokerID]*lease)}
}

// sync makes the leases those of the registered brokers. One that has none yet
// gets a full one: it registered just now, or before this reign. The list is
// read under the lock, so that it has every broker that has opened a stream.
func (l *leases) sync(registered func() []smq.BrokerID, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := make(map[smq.BrokerID]bool, len(l.byID))
	for _, id := range registered() {
		known[id] = true
		if l.byID[id] == nil {
			l.byID[id] = &lease{since: now, until: now + l.duration}
		}
	}
	for id, b := range l.byID {
		if !known[id] {
			b.refuse()
			delete(l.byID, id)
		}
	}
	l.attend(now)
}

// attend notes when enough brokers have come to this reign for the others to be
// missed.
func (l *leases) attend(now time.Duration) {
	there := 0
	for _, b := range l.byID {
		if b.session != nil {
			there++
		}
	}
	if !l.attended && there > 0 && 2*there >= len(l.byID) {
		l.attended, l.attendedAt = true, now
	}
}

// refuse tells the broker's stream that its time is over.
func (b *lease) refuse() {
	if b.session != nil {
		close(b.session.refused)
		b.session = nil
	}
}

// open starts a stream of a broker that is registered, which takes the place of
// an earlier one. nil when the lease is being expired.
func (l *leases) open(id smq.BrokerID, now time.Duration) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.byID[id]
	if b == nil {
		b = &lease{since: now, until: now + l.duration}
		l.byID[id] = b
	}
	if b.expired {
		return nil
	}
	b.session = &session{granted: make(chan uint64, 1), refused: make(chan struct{})}
	b.lost = false
	return b.session
}

// close ends a stream that broke off. It reports whether it was the broker's
// latest one, so that the broker is silent now.
func (l *leases) close(id smq.BrokerID, s *session, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.byID[id]
	if b == nil || b.session != s {
		return false
	}
	b.session, b.lost, b.lostAt = nil, true, now
	return true
}

// renew extends the lease of the broker of a stream and grants the heartbeat.
// A heartbeat that is not the latest stream's, or that comes too late, gets
// nothing.
func (l *leases) renew(id smq.BrokerID, s *session, sequence uint64, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.byID[id]
	if b == nil || b.session != s || b.expired {
		return
	}
	// now is from before the lock, and a pause may have been made up for since.
	b.until = max(b.until, now+l.duration)
	select {
	case <-s.granted: // overtaken before it was sent
	default:
	}
	s.granted <- sequence
}

// makeUp makes up for a pause of this process, during which nobody could be
// heard and which ends now: leases go on from where they were. Only after one of
// a whole lease, which has cost the brokers their streams, everybody gets a full
// one; if short pauses gave as much, a machine that has too much to do and makes
// one every few seconds would keep the dead alive for ever.
func (l *leases) makeUp(pause, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attendedAt += pause
	for _, b := range l.byID {
		b.since += pause
		b.until += pause
		if pause >= l.duration {
			b.until = max(b.until, now+l.duration)
		}
	}
}

// expire ends the leases that have run out by now, and reports whether there
// are any. Their brokers get no grant any more.
func (l *leases) expire(now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := false
	for _, b := range l.byID {
		if b.until <= now && !b.expired {
			b.expired, some = true, true
			b.refuse()
		}
	}
	return some
}

// expired lists the brokers whose leases have been ended and that are still
// registered as far as sync has told.
func (l *leases) expired() []smq.BrokerID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []smq.BrokerID
	for id, b := range l.byID {
		if b.expired {
			ids = append(ids, id)
		}
	}
	return ids
}

// remove forgets a broker that has left.
func (l *leases) remove(id smq.BrokerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

// setLoad notes what a heartbeat told.
func (l *leases) setLoad(id smq.BrokerID, load *smqpb.Load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.byID[id]; b != nil && load != nil {
		b.load = load
	}
}

// presence is what the leases say of a broker.
type presence struct {
	load      *smqpb.Load
	connected bool          // it has a stream
	lost      bool          // its stream broke off
	lostFor   time.Duration // since when
	// missing: it never had one in this reign, and has had the time to.
	missing bool
}

func (l *leases) presence(id smq.BrokerID, now time.Duration) presence {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.byID[id]
	if b == nil {
		return presence{}
	}
	return presence{
		load: b.load, connected: b.session != nil, lost: b.lost, lostFor: now - b.lostAt,
		missing: b.session == nil && !b.lost && l.attended && now-max(l.attendedAt, b.since) >= missedAfter,
	}
}
