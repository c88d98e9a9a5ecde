package seglog

import "github.com/seaweedmq/smq/lib/smq"

// Replication says with whom an owner shares what it has not stored yet.
type Replication struct {
	// Followers hold every batch before it is acked as replicated.
	Followers []smq.BrokerID
	// Leased reports whether the owner's lease is valid at this moment;
	// without it nothing is acked as replicated. Needed with followers.
	Leased func() bool
	// Notify is told that there may be more for followers: batches, or news of
	// what is stored. It must not block. It may be nil.
	Notify func(l *Log)
}

// leased reports whether batches may be acked as replicated at all.
func (l *Log) leased() bool { return len(l.held) > 0 && l.repl.Leased() }

// commits reports whether what every replica holds counts as committed at this
// moment. l.mu is held.
func (l *Log) commits() bool { return l.leased() && !l.storeLags() }

func (l *Log) notify() {
	if l.repl.Notify != nil {
		l.repl.Notify(l)
	}
}

// Followers are the brokers that follow this segment, by the index that Held
// takes.
func (l *Log) Followers() []smq.BrokerID { return l.repl.Followers }

// Outgoing is what a follower needs: batches from position First on, and the
// position up to which everything is stored.
type Outgoing struct {
	First   smq.Position
	Stored  smq.Position
	Batches []Batch
}

// Outgoing returns batches for a follower that has been sent everything before
// position from: some, up to maxBytes or one larger batch, or none. What is
// stored meanwhile is left out, so First may be greater than from.
func (l *Log) Outgoing(from smq.Position, maxBytes int) Outgoing {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := Outgoing{First: max(from, l.stored), Stored: l.stored}
	l.unstored(o.First, func(e *entry) bool {
		if maxBytes <= 0 {
			return false
		}
		maxBytes -= len(e.bytes)
		o.Batches = append(o.Batches, Batch{Partition: e.partition, Bytes: e.bytes})
		return true
	})
	return o
}

// unstored goes over the batches that are not stored, from a position on, until
// visit returns false. l.mu is held.
func (l *Log) unstored(from smq.Position, visit func(*entry) bool) {
	over := func(entries []entry) bool {
		if len(entries) == 0 || entries[len(entries)-1].position < from {
			return true
		}
		for i := from - min(from, entries[0].position); i < uint64(len(entries)); i++ {
			if !visit(&entries[i]) {
				return false
			}
		}
		return true
	}
	for _, f := range l.inflight {
		if !over(f.entries) {
			return
		}
	}
	over(l.pending)
}

// Held takes note that a follower holds every batch before a position. What
// every follower holds is committed, and acked to those who asked for no more.
func (l *Log) Held(follower int, position smq.Position) {
	l.mu.Lock()
	if l.stopped != nil {
		l.mu.Unlock()
		return
	}
	l.held[follower] = max(l.held[follower], position)
	acked, repeats := l.advance()
	l.mu.Unlock()
	if len(acked)+len(repeats) > 0 {
		deliver(acked, repeats, Replicated, func(smq.Position) error { return nil })
	}
}

// advance commits what every follower holds, if it may be, and returns what is
// to be acked for that. l.mu is held.
func (l *Log) advance() (acked []entry, repeats []repeat) {
	position := l.head.position
	for _, h := range l.held {
		position = min(position, h)
	}
	if position <= l.committed || !l.commits() {
		return nil, nil
	}
	l.unstored(l.committed, func(e *entry) bool {
		if e.position >= position {
			return false
		}
		l.ends[e.partition-l.id.Range.Lo] = e.offset + int64(e.header.Count)
		if e.level == Replicated {
			e.acked = true
			acked = append(acked, *e)
		}
		return true
	})
	l.committed = position
	repeats = l.takeRepeats(func(r repeat) bool { return r.level == Replicated && r.original.position <= position })
	l.broadcast()
	return acked, repeats
}

// StoreLags reports whether the store has been behind for so long that memory
// must not stand in for it. Then a follower's delay says nothing of it.
func (l *Log) StoreLags() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storeLags()
}

// storeLags reports whether the oldest batch that is not stored is so old that
// memory must not stand in for the store any longer. l.mu is held.
func (l *Log) storeLags() bool { return l.oldestUnstored() > l.limits.MaxUnstored }

// recent returns committed batches that are not stored, from a position on, for
// a reader that has read n chunks: of maxBytes together or one larger batch. ok is
// false when there are more chunks by now. Without a lease there are none: all
// replicas may be lost by now, and the segment sealed without them.
func (l *Log) recent(n uint64, from smq.Position, maxBytes int) (entries []entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if uint64(len(l.chunks)) != n {
		return nil, false
	}
	if !l.leased() {
		return nil, true
	}
	l.unstored(max(from, l.stored), func(e *entry) bool {
		if e.position >= l.committed || maxBytes <= 0 {
			return false
		}
		maxBytes -= len(e.bytes)
		entries = append(entries, *e)
		return true
	})
	return entries, true
}
