package seglog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Follower holds in memory what a segment's owner has accepted and not stored
// yet. It writes one thing, once: the seal, with all that it holds.
type Follower struct {
	cfg FollowerConfig

	mu      sync.Mutex
	entries []entry       // by position, without gap
	next    smq.Position  // behind the last entry
	fenced  bool          // takes nothing more from the owner
	heard   time.Time     // when the owner last spoke
	sealing chan struct{} // one who seals holds it
	seal    *Seal
}

// FollowerConfig says which segment is followed.
type FollowerConfig struct {
	Store        store.Store
	Ident        Ident
	Predecessors []Seal
	Broker       smq.BrokerID // the follower
	Owner        smq.BrokerID
	Limits       Limits
	Shared       *Shared
	Logger       *slog.Logger
}

// NewFollower begins to follow a segment from its first position on. The
// caller has made sure by the stored layout that it is a follower of the segment,
// and that the segment has no seal.
func NewFollower(cfg FollowerConfig) *Follower {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Follower{cfg: cfg, heard: time.Now(), sealing: make(chan struct{}, 1)}
}

// Ident says which segment is followed.
func (f *Follower) Ident() Ident { return f.cfg.Ident }

// Owner is the broker that is followed.
func (f *Follower) Owner() smq.BrokerID { return f.cfg.Owner }

// Held is the position up to which the follower holds, or has held, every batch.
func (f *Follower) Held() smq.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// Heard is when the owner last sent something.
func (f *Follower) Heard() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard
}

// Append takes what the owner sends: batches from position first on, with
// offsets as they lie in the headers, and the position up to which everything
// is stored, which the follower need not hold any more. It returns the position
// up to which it holds everything.
//
// The caller has reserved memory for the batches' bytes; the follower gives it
// back. Errors: smq.ErrSegmentSealed once it is fenced; smq.ErrConflict when
// the batches do not continue what it has; smq.ErrCorrupt.
func (f *Follower) Append(first, stored smq.Position, batches []Batch) (held smq.Position, err error) {
	nowMs := time.Now().UnixMilli()
	entries := make([]entry, len(batches))
	var size int64
	for i, b := range batches {
		size += int64(len(b.Bytes))
		h, herr := record.Validate(b.Bytes)
		if herr == nil && !f.cfg.Ident.Range.Contains(b.Partition) {
			herr = fmt.Errorf("%w partition %d", smq.ErrInvalid, b.Partition)
		}
		if herr != nil && err == nil {
			err = herr
		}
		entries[i] = entry{bytes: b.Bytes, header: h, partition: b.Partition, offset: h.BaseOffset, position: first + uint64(i), appendMs: nowMs}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		err = f.accepts(first, stored)
	}
	if err != nil {
		f.cfg.Shared.releaseReplica(size)
		return f.next, fmt.Errorf("follow %v: %w", f.cfg.Ident, err)
	}
	f.heard = time.Now()
	known := min(uint64(len(entries)), f.next-min(f.next, first)) // sent again
	f.release(entries[:known])
	f.entries = append(f.entries, entries[known:]...)
	f.next = max(f.next, first+uint64(len(entries)))
	f.drop(stored)
	return f.next, nil
}

// accepts says whether batches from position first on fit. f.mu is held.
func (f *Follower) accepts(first, stored smq.Position) error {
	switch {
	case f.fenced:
		return smq.ErrSegmentSealed
	case first > f.next && stored >= first:
		// The owner has stored what this one missed.
		f.release(f.entries)
		f.entries, f.next = nil, first
	case first > f.next:
		return fmt.Errorf("%w: position %d is next, the owner sends %d", smq.ErrConflict, f.next, first)
	}
	return nil
}

// drop lets go of what is stored. f.mu is held.
func (f *Follower) drop(stored smq.Position) {
	n := 0
	for n < len(f.entries) && f.entries[n].position < stored {
		n++
	}
	if n == 0 {
		return
	}
	f.release(f.entries[:n])
	rest := f.entries[n:]
	f.entries = append(make([]entry, 0, len(rest)), rest...)
}

func (f *Follower) release(entries []entry) {
	var n int64
	for i := range entries {
		n += int64(len(entries[i].bytes))
	}
	f.cfg.Shared.releaseReplica(n)
}

// Fence makes the follower refuse its owner from now on. What the owner commits
// needs every replica, so it commits nothing more but by the store.
func (f *Follower) Fence() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fenced = true
}

// Seal fences the follower and seals the segment with all that it holds. It may
// be called again, and by several at once, and returns the seal of whoever
// sealed the segment.
func (f *Follower) Seal(ctx context.Context) (Seal, error) {
	f.Fence()
	select {
	case f.sealing <- struct{}{}:
		defer func() { <-f.sealing }()
	case <-ctx.Done():
		return Seal{}, fmt.Errorf("seal %v: %w: %w", f.cfg.Ident, smq.ErrTimeout, ctx.Err())
	}
	f.mu.Lock()
	seal, held := f.seal, append([]entry(nil), f.entries...)
	f.mu.Unlock()
	if seal != nil {
		return *seal, nil
	}
	s := newSealer(f.cfg.Store, f.cfg.Ident, f.cfg.Predecessors, SealOptions{Broker: f.cfg.Broker, Limits: f.cfg.Limits})
	s.held = held
	done, err := s.seal(ctx)
	if err != nil {
		return Seal{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seal = &done
	f.release(f.entries)
	f.entries = nil
	return done, nil
}

// Close lets go of everything: the segment is sealed, or its topic gone.
func (f *Follower) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fenced = true
	f.release(f.entries)
	f.entries = nil
}

// Remaining is what the follower holds, for handing it to somebody who reaches
// the store when it does not: batches from position first on. It fences.
func (f *Follower) Remaining() (first smq.Position, batches []Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fenced = true
	first = f.next
	if len(f.entries) > 0 {
		first = f.entries[0].position
	}
	for i := range f.entries {
		batches = append(batches, Batch{Partition: f.entries[i].partition, Bytes: f.entries[i].bytes})
	}
	return first, batches
}
