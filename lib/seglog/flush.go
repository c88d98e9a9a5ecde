package seglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// flush is a chunk on its way into the store.
type flush struct {
	entries   []entry
	dataBytes int64
	sealed    bool
	footer    footer
	blocks    [][][]byte
	content   []store.Part
	size      int64
	after     chan struct{} // closed when the chunk before is settled
	done      chan struct{} // closed when this one is
	dropped   bool          // not stored, nor anything after it (guarded by Log.mu)
	started   time.Time
}

// freezer makes chunks of what is pending, as long as there is something.
func (l *Log) freezer(ctx context.Context) {
	for {
		f := l.nextFlush(ctx)
		if f == nil {
			return
		}
		if err := l.freeze(f); err != nil {
			l.stop(ending{err: err}, 0)
			return
		}
		l.spawn(func(ctx context.Context) { l.store(ctx, f) })
	}
}

// nextFlush waits until a chunk may be frozen and takes what goes into it. It
// returns nil when nothing is left to do, and then the freezer is not running.
func (l *Log) nextFlush(ctx context.Context) *flush {
	retry := newBackoff()
	for {
		l.mu.Lock()
		if l.refusing != nil && l.stopped == nil {
			l.mu.Unlock()
			l.rollBack(ctx, retry)
			continue
		}
		if l.stopped != nil || ctx.Err() != nil || len(l.pending) == 0 && !l.sealDue() {
			l.freezing = false
			l.mu.Unlock()
			return nil
		}
		now := time.Now()
		ready, wait := l.mayFreeze(now)
		if ready {
			f := l.take(now)
			l.mu.Unlock()
			return f
		}
		l.mu.Unlock()
		l.sleep(ctx, wait)
	}
}

// sealDue reports whether a seal is wanted and not on its way. l.mu is held.
func (l *Log) sealDue() bool {
	n := len(l.inflight)
	return l.sealing && (n == 0 || !l.inflight[n-1].sealed)
}

// mayFreeze says whether the next chunk may be frozen now; else how long to
// wait for that, 0 when only a chunk's end or more batches can make it so.
// l.mu is held.
func (l *Log) mayFreeze(now time.Time) (ready bool, wait time.Duration) {
	switch {
	case len(l.inflight) >= l.limits.Inflight:
		return false, 0
	case l.pendingBytes >= l.limits.ChunkBytes, l.sealing:
		return true, 0
	case len(l.inflight) > 0: // group commit: what comes meanwhile shares the next chunk
		return false, 0
	}
	wait = l.limits.MinInterval - now.Sub(l.lastFreeze)
	if l.urgent == 0 {
		wait = max(wait, l.limits.MaxDelay-l.ageOf(&l.pending[0], now))
	}
	return wait <= 0, wait
}

// sleep waits for a wake-up, and for at most d when d is not 0.
func (l *Log) sleep(ctx context.Context, d time.Duration) {
	var timeout <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case <-l.wake:
	case <-timeout:
	case <-ctx.Done():
	}
}

// take moves a chunk's worth of batches from pending to a flush. l.mu is held.
func (l *Log) take(now time.Time) *flush {
	f := &flush{done: make(chan struct{}), after: l.lastDone, started: now}
	n := 0
	for n < len(l.pending) && (n == 0 || f.dataBytes+int64(len(l.pending[n].bytes)) <= l.limits.ChunkBytes) {
		f.dataBytes += int64(len(l.pending[n].bytes))
		n++
	}
	f.entries = l.pending[:n:n]
	if n == len(l.pending) {
		l.pending, l.urgent = nil, 0
		f.sealed = l.sealing
	} else { // urgent stays as it is: the rest may be, too
		l.pending = append(make([]entry, 0, len(l.pending)), l.pending[n:]...)
	}
	l.pendingBytes -= f.dataBytes
	l.lastFreeze, l.lastDone = now, f.done
	l.inflight = append(l.inflight, f)
	return f
}

// freeze builds the chunk. Its bytes never change after that.
func (l *Log) freeze(f *flush) error {
	n := l.previous.Chunk + 1
	now := time.Now()
	m := l.id.newFooter(n, l.writer, l.broker, now)
	m.Previous = bytes.Clone(l.previous.hash[:]) // previous moves on
	m.FirstPosition = l.frozen.position
	for i := range f.entries {
		e := &f.entries[i]
		offset, position := l.frozen.append(e.partition, &e.header, e.appendMs)
		if offset != e.offset || position != e.position {
			return fmt.Errorf("%w: batch at offset %d, position %d was to be stored at offset %d, position %d", smq.ErrCorrupt, e.offset, e.position, offset, position)
		}
	}
	m.EndPosition = l.frozen.position
	f.blocks, f.content = layOut(m, f.entries)
	m.Producers = l.frozen.producers.messages(touched(f.entries))
	m.Sealed = f.sealed
	if f.sealed || n%snapshotEvery == 0 {
		m.Snapshot = l.frozen.snapshot(l.preds, now.Add(-l.limits.ProducerIdle).UnixMilli())
	}
	b, foot, err := encodeFooter(m)
	if err != nil {
		return err
	}
	f.footer, f.content = foot, append(f.content, store.Part{Bytes: b})
	f.size = f.dataBytes + int64(len(b))
	l.frozen.bytes += uint64(f.size)
	l.previous = foot
	return nil
}

// store brings a frozen chunk into the store: uploads may overlap, creates go
// in order.
func (l *Log) store(ctx context.Context, f *flush) {
	defer close(f.done)
	c := newCreation(l, f)
	err := c.upload(ctx)
	if f.after != nil {
		<-f.after
		f.after = nil
	}
	if l.isDropped(f) {
		c.discard(ctx)
		return
	}
	if err == nil {
		err = c.create(ctx)
	}
	var taken *takenError
	switch {
	case err == nil:
		l.commit(f)
	case errors.As(err, &taken):
		l.fenced(taken)
	case errors.Is(err, smq.ErrNoSpace):
		c.discard(ctx)
		l.refuse(f, err)
	default: // the log is closing
		l.stop(ending{err: err}, 0)
	}
}

func (l *Log) isDropped(f *flush) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f.dropped || l.stopped != nil
}

// commit takes note that the chunk is stored, and acks its batches.
func (l *Log) commit(f *flush) {
	l.cache.put(l.id, f.chunk())
	l.mu.Lock()
	if f.dropped || l.stopped != nil { // closed meanwhile: its batches have their answer
		l.mu.Unlock()
		return
	}
	l.trouble = trouble{}
	l.inflight = l.inflight[1:]
	l.stored = f.footer.EndPosition
	l.committed = max(l.committed, l.stored)
	l.chunks = append(l.chunks, chunkInfo{size: f.size})
	l.bytes += uint64(f.size)
	l.countBlocks(f.footer)
	waiting := unacked(f.entries)
	repeats := l.takeRepeats(func(r repeat) bool { return r.original.position <= l.stored })
	if uint64(len(l.chunks)) >= l.limits.MaxChunks || l.bytes >= l.limits.MaxBytes {
		l.requestRoll()
	}
	l.broadcast()
	l.kick()
	l.mu.Unlock()

	l.shared.release(f.dataBytes)
	l.shared.metrics.stored(f)
	deliver(waiting, repeats, Stored, func(smq.Position) error { return nil })
	l.notify()
	if f.sealed {
		seal := sealOf(f.footer, l.messages, l.bytes)
		l.stop(ending{err: smq.ErrSegmentSealed, seal: &seal}, f.footer.EndPosition)
	}
}

// countBlocks takes note of what a stored chunk holds. l.mu is held.
func (l *Log) countBlocks(f footer) {
	for _, b := range f.Blocks {
		end := &l.ends[b.Partition-l.id.Range.Lo]
		*end = max(*end, b.EndOffset)
		l.messages += uint64(b.EndOffset - b.FirstOffset)
	}
}

// unacked are the entries that have no ack yet. Log.mu is held, or they are not the
// log's any more.
func unacked(entries []entry) []entry {
	if !slices.ContainsFunc(entries, func(e entry) bool { return e.acked }) {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.acked })
}

// takeRepeats removes and returns the repeats that are settled. l.mu is held.
func (l *Log) takeRepeats(isSettled func(repeat) bool) []repeat {
	var settled []repeat
	rest := l.repeats[:0]
	for _, r := range l.repeats {
		if isSettled(r) {
			settled = append(settled, r)
		} else {
			rest = append(rest, r)
		}
	}
	clear(l.repeats[len(rest):]) // their publishers' streams may be gone
	l.repeats = rest
	return settled
}

// broadcast tells readers to look again. l.mu is held.
func (l *Log) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// fenced stops the log: somebody else has taken the number of its next chunk.
func (l *Log) fenced(taken *takenError) {
	if !taken.footer.Sealed {
		l.logger.Error("another writer is in the segment", "segment", l.id.String(), "chunk", taken.footer.Chunk, "broker", taken.footer.Broker)
		l.stop(ending{err: taken}, 0)
		return
	}
	l.mu.Lock()
	if uint64(len(l.chunks)) == taken.footer.Chunk { // a flush and a probe may both have found it
		l.chunks = append(l.chunks, chunkInfo{size: taken.size})
		l.bytes += uint64(taken.size)
		l.countBlocks(taken.footer)
	}
	seal := sealOf(taken.footer, l.messages, l.bytes)
	l.mu.Unlock()
	l.logger.Warn("segment was sealed by another", "segment", l.id.String(), "chunk", seal.Chunk, "broker", taken.footer.Broker)
	l.stop(ending{err: smq.ErrSegmentSealed, seal: &seal}, taken.footer.EndPosition)
}

// stop ends the log, once. What was accepted and lies before position held is
// stored, by somebody; the rest is told why not.
func (l *Log) stop(e ending, held smq.Position) {
	l.mu.Lock()
	if l.stopped != nil {
		l.mu.Unlock()
		return
	}
	l.stopped = &e
	entries, repeats := l.takeAll()
	l.broadcast()
	close(l.done)
	l.mu.Unlock()
	l.cancel()
	l.age.Stop()
	l.settle(entries, repeats, func(p smq.Position) error {
		if p < held {
			return nil
		}
		return e.err
	})
}

// takeAll takes everything that is not stored. l.mu is held.
func (l *Log) takeAll() ([]entry, []repeat) {
	var entries []entry
	for _, f := range l.inflight {
		f.dropped = true
		entries = append(entries, f.entries...)
	}
	entries = append(entries, l.pending...)
	repeats := l.repeats
	l.inflight, l.pending, l.repeats, l.pendingBytes, l.urgent = nil, nil, nil, 0, 0
	return entries, repeats
}

// settle answers batches that leave memory.
func (l *Log) settle(entries []entry, repeats []repeat, fate func(smq.Position) error) {
	var n int64
	for i := range entries {
		n += int64(len(entries[i].bytes))
	}
	l.shared.release(n)
	deliver(unacked(entries), repeats, Stored, fate)
}

// deliver sends acks of a level, in the order of positions, a call a sink.
func deliver(entries []entry, repeats []repeat, level Level, fate func(smq.Position) error) {
	var order []Sink
	count := make(map[Sink]int)
	note := func(s Sink) {
		if count[s]++; count[s] == 1 {
			order = append(order, s)
		}
	}
	for i := range entries {
		note(entries[i].sink)
	}
	for i := range repeats {
		note(repeats[i].sink)
	}
	acks := make(map[Sink][]Ack, len(order))
	for _, s := range order {
		acks[s] = make([]Ack, 0, count[s])
	}
	for i := range entries {
		e := &entries[i]
		acks[e.sink] = append(acks[e.sink], Ack{ID: e.id, Partition: e.partition, BaseOffset: e.offset, Level: level, Err: fate(e.position)})
	}
	for _, r := range repeats {
		r.ack.Level, r.ack.Err = level, fate(r.original.position-1)
		acks[r.sink] = append(acks[r.sink], r.ack)
	}
	for _, s := range order {
		s.Acked(acks[s])
	}
}

// refuse answers everything that has no answer yet with err: the store is full,
// and nothing from f on has been stored or will be. The log goes on from what
// is stored.
func (l *Log) refuse(f *flush, err error) {
	l.mu.Lock()
	if f.dropped || l.stopped != nil {
		l.mu.Unlock()
		return
	}
	l.refusing = err
	entries, repeats := l.takeAll()
	l.kick()
	l.mu.Unlock()
	l.logger.Error("store refuses a chunk", "segment", l.id.String(), "chunk", f.footer.Chunk, "err", err)
	l.settle(entries, repeats, func(smq.Position) error { return err })
}

// rollBack brings the states back to what is stored, after refused chunks. The
// freezer calls it, so nothing is frozen meanwhile. While it does not succeed
// the log goes on refusing.
func (l *Log) rollBack(ctx context.Context, retry retryBackoff) {
	if err := retry.wait(ctx); err != nil {
		return
	}
	r, err := recoverSegment(ctx, l.st, l.id, l.limits)
	if err != nil {
		l.logger.Warn("cannot go on behind a refused chunk, trying again", "segment", l.id.String(), "err", err)
		return
	}
	l.mu.Lock()
	stored := uint64(len(l.chunks))
	if r.chunks == stored && l.stopped == nil {
		l.frozen, l.head = r.state, r.state.clone()
		l.previous = r.last
		l.refusing = nil
	}
	l.mu.Unlock()
	if r.chunks > stored {
		l.fenced(&takenError{footer: r.last, size: r.lastSize})
	}
}
