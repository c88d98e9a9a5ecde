package seglog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// Level is what an ack means.
type Level uint8

// The levels of acks.
const (
	Stored     Level = iota // the batch is in the store
	Replicated              // every replica of the segment holds it, in memory at least
)

// Batch is a record batch on its way into a segment.
type Batch struct {
	ID        uint64 // the caller's, for the ack
	Partition smq.Partition
	Bytes     []byte // one whole batch; the log owns it from then on
	Level     Level  // the least that its ack must mean
}

// Ack is the fate of a batch.
type Ack struct {
	ID         uint64
	Partition  smq.Partition
	BaseOffset int64
	Level      Level // what it means
	Duplicate  bool  // an earlier attempt has this level
	Err        error // nil: the batch is safe
}

// Sink takes the acks of the batches that were appended with it. Acked is
// called from several goroutines, but for the batches that are stored in
// their order; it must not block. The slice is the callee's.
type Sink interface {
	Acked(acks []Ack)
}

// Config says which segment a log is opened for and with what.
type Config struct {
	Store        store.Store
	Ident        Ident
	Predecessors []Seal // what the segment continues from; their ranges cover its own, or there are none
	Broker       smq.BrokerID
	Limits       Limits
	Shared       *Shared
	Logger       *slog.Logger
	Replication  Replication
}

// Log is an open segment, in the hands of its owner.
type Log struct {
	segment
	broker smq.BrokerID
	repl   Replication
	shared *Shared
	logger *slog.Logger
	limits Limits
	writer []byte
	preds  []*smqpb.Predecessor
	opened time.Time
	cancel context.CancelFunc
	age    *time.Timer // asks for a roll
	// spawn runs f in the background with a context that ends with the log.
	spawn func(f func(ctx context.Context))
	wake  chan struct{} // tells the freezer to look again
	roll  chan struct{} // closed when the segment should roll
	done  chan struct{} // closed when stopped

	mu           sync.Mutex
	head         *state // with everything accepted
	traffic      traffic
	pending      []entry
	pendingBytes int64
	urgent       int      // pending ones that somebody waits to see stored
	inflight     []*flush // frozen, oldest first
	repeats      []repeat // of batches that are not stored yet
	ends         []int64  // committed end offsets
	chunks       []chunkInfo
	bytes        uint64         // size of chunks
	messages     uint64         // committed
	stored       smq.Position   // everything before it is in a chunk
	committed    smq.Position   // everything before it is stored, or on every replica
	held         []smq.Position // by follower, what it holds
	lastFreeze   time.Time
	freezing     bool // the freezer runs
	sealing      bool // nothing more is accepted
	refusing     error
	stopped      *ending
	trouble      trouble
	changed      chan struct{}
	rolled       bool

	// Only the freezer touches these.
	frozen   *state // with everything frozen
	previous footer // of the last chunk frozen
	lastDone chan struct{}
}

// repeat is a batch that repeats one which is not stored yet: it shares its
// fate.
type repeat struct {
	original sequenced
	ack      Ack
	sink     Sink
	level    Level
}

// ending is why a log has stopped for good.
type ending struct {
	err  error // what later batches are told
	seal *Seal // when the segment is sealed
}

// Open makes the caller the owner of the segment, by creating its first chunk.
//
// Errors: smq.ErrSegmentSealed when it is sealed already; smq.ErrNotOwner when
// somebody else, or an earlier attempt that was given up, has opened it;
// otherwise the store's.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	limits := cfg.Limits.withDefaults()
	id := cfg.Ident
	st, preds, err := openingState(ctx, cfg.Store, id, cfg.Predecessors, limits)
	if err != nil {
		return nil, err
	}
	l := &Log{
		segment: segment{st: cfg.Store, id: id, cache: cfg.Shared.cache},
		broker:  cfg.Broker,
		shared:  cfg.Shared,
		logger:  cfg.Logger,
		limits:  limits,
		writer:  newWriterID(),
		preds:   preds,
		opened:  time.Now(),
		wake:    make(chan struct{}, 1),
		roll:    make(chan struct{}),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
		frozen:  st,
		head:    st.clone(),
		traffic: newTraffic(id.Range),
		ends:    st.ends(),
		held:    make([]smq.Position, len(cfg.Replication.Followers)),
		repl:    cfg.Replication,
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if err := l.createOpening(ctx); err != nil {
		return nil, fmt.Errorf("open %v: %w", id, err)
	}
	life, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.spawn = func(f func(context.Context)) { go f(life) }
	l.age = time.AfterFunc(limits.MaxAge, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.requestRoll()
	})
	return l, nil
}

// createOpening writes chunk 0.
func (l *Log) createOpening(ctx context.Context) error {
	m := l.id.newFooter(0, l.writer, l.broker, l.opened)
	m.Snapshot = l.frozen.snapshot(l.preds, l.opened.Add(-l.limits.ProducerIdle).UnixMilli())
	b, f, err := encodeFooter(m)
	if err != nil {
		return err
	}
	retry := newBackoff()
	for {
		err := l.st.Create(ctx, l.id.ChunkPath(0), store.Bytes(b))
		if errors.Is(err, smq.ErrExists) {
			var theirs footer
			if theirs, _, err = l.inTheWay(ctx, 0); err == nil {
				err = ownership(f, theirs)
			}
			if err != nil {
				return err
			}
		}
		if err == nil {
			l.previous = f
			l.chunks = []chunkInfo{{size: int64(len(b))}}
			l.bytes = uint64(len(b))
			l.frozen.bytes = l.bytes
			return nil
		}
		if !errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		if err := retry.wait(ctx); err != nil {
			return err
		}
	}
}

// ownership compares the chunk that we tried to create with the one that is
// there: nil when it is ours.
func ownership(ours, theirs footer) error {
	switch {
	case string(theirs.Writer) == string(ours.Writer) && theirs.hash == ours.hash:
		return nil
	case theirs.Sealed:
		return smq.ErrSegmentSealed
	}
	return fmt.Errorf("%w: broker %s has written chunk %d", smq.ErrNotOwner, theirs.Broker, theirs.Chunk)
}

// inTheWay reads the footer of the chunk that has taken number n.
func (l *Log) inTheWay(ctx context.Context, n uint64) (footer, int64, error) {
	info, err := l.st.Stat(ctx, l.id.ChunkPath(n))
	if err != nil {
		return footer{}, 0, err
	}
	f, err := readFooter(ctx, l.st, l.id, n, info.Size)
	return f, info.Size, err
}

// Append accepts batches: it checks them, gives them offsets, in order, and
// has them stored. It does not wait for the store. Every batch gets exactly
// one ack.
//
// The caller has reserved memory for their bytes (Shared.Reserve); the log
// gives it back as they are stored or refused.
func (l *Log) Append(batches []Batch, sink Sink) {
	headers := make([]record.Header, len(batches))
	refused := make([]Ack, 0, len(batches))
	var returned int64
	for i, b := range batches {
		var err error
		if !l.id.Range.Contains(b.Partition) {
			err = fmt.Errorf("%w partition %d: %v has %v", smq.ErrInvalid, b.Partition, l.id, l.id.Range)
		} else {
			headers[i], err = record.Validate(b.Bytes)
		}
		if err != nil {
			headers[i].Count = 0 // marks it for the loop below
			refused = append(refused, Ack{ID: b.ID, Partition: b.Partition, Err: err})
			returned += int64(len(b.Bytes))
		}
	}
	now := time.Now()
	l.mu.Lock()
	for i, b := range batches {
		if headers[i].Count == 0 {
			continue
		}
		if ack, settled := l.accept(b, &headers[i], sink, now); settled {
			refused = append(refused, ack)
			returned += int64(len(b.Bytes))
		}
	}
	l.kick()
	appended := len(l.pending) > 0
	l.mu.Unlock()
	if appended {
		l.notify()
	}
	l.shared.release(returned)
	if len(refused) > 0 {
		sink.Acked(refused)
	}
}

// accept takes one batch in, or settles it at once. l.mu is held.
func (l *Log) accept(b Batch, h *record.Header, sink Sink, now time.Time) (ack Ack, settled bool) {
	if len(l.held) == 0 {
		b.Level = Stored
	}
	ack = Ack{ID: b.ID, Partition: b.Partition}
	if ack.Err = l.closed(); ack.Err != nil {
		return ack, true
	}
	v := l.head.check(b.Partition, h)
	switch {
	case v.err != nil:
		ack.Err = v.err
		return ack, true
	case v.duplicate:
		ack.BaseOffset, ack.Duplicate = v.original.offset, true
		if v.original.position <= l.stored { // one more than the position; 0 when stored long since
			return ack, true
		}
		if b.Level == Replicated && v.original.position <= l.committed && l.commits() {
			ack.Level = Replicated
			return ack, true
		}
		l.repeats = append(l.repeats, repeat{original: v.original, ack: ack, sink: sink, level: b.Level})
		l.shared.release(int64(len(b.Bytes)))
		return ack, false
	}
	nowMs := now.UnixMilli()
	offset, position := l.head.append(b.Partition, h, nowMs)
	l.traffic.count(b.Partition, h.Count, len(b.Bytes))
	record.Patch(b.Bytes, offset, l.id.Segment.LeaderEpoch())
	l.pending = append(l.pending, entry{
		bytes: b.Bytes, header: *h, partition: b.Partition, offset: offset, position: position,
		appendMs: nowMs, came: now.Sub(l.opened), id: b.ID, sink: sink, level: b.Level,
	})
	if b.Level == Stored || !l.leased() {
		l.urgent++
	}
	l.pendingBytes += int64(len(b.Bytes))
	return ack, false
}

// closed says why nothing more is accepted. l.mu is held.
func (l *Log) closed() error {
	switch {
	case l.stopped != nil:
		return l.stopped.err
	case l.sealing:
		return smq.ErrSegmentSealed
	}
	return l.refusing
}

// kick has the freezer look at what is pending. l.mu is held.
func (l *Log) kick() {
	if l.stopped != nil || len(l.pending) == 0 && !l.sealing && l.refusing == nil {
		return
	}
	if !l.freezing {
		l.freezing = true
		l.spawn(l.freezer)
		return
	}
	select {
	case l.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// ageOf is how long ago the entry came. The time of day, which its appendMs tells, may
// be set back meanwhile.
func (l *Log) ageOf(e *entry, now time.Time) time.Duration { return now.Sub(l.opened) - e.came }

// oldestUnstored is the age of the oldest batch that is not stored; 0 when there is
// none. l.mu is held.
func (l *Log) oldestUnstored() (age time.Duration) {
	l.unstored(l.stored, func(e *entry) bool {
		age = l.ageOf(e, time.Now())
		return false
	})
	return age
}

// Seal ends the segment as planned: what has been accepted is stored, then the
// seal. It may be called again, and returns the seal of whoever sealed the
// segment. When ctx ends first the sealing goes on.
func (l *Log) Seal(ctx context.Context) (Seal, error) {
	l.mu.Lock()
	l.sealing = true
	l.kick()
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
		return Seal{}, fmt.Errorf("seal %v: %w: %w", l.id, smq.ErrTimeout, ctx.Err())
	}
	if seal, ok := l.Sealed(); ok {
		return seal, nil
	}
	return Seal{}, fmt.Errorf("seal %v: %w", l.id, l.Err())
}

// Probe looks whether somebody else has gone on behind the last chunk, and stops
// the log if so. An owner finds that out by itself with its next chunk; one that
// has nothing to store may never know, while its readers wait.
func (l *Log) Probe(ctx context.Context) error {
	l.mu.Lock()
	n, busy := uint64(len(l.chunks)), l.stopped != nil || len(l.inflight) > 0 || len(l.pending) > 0
	l.mu.Unlock()
	if busy {
		return nil
	}
	theirs, size, err := l.inTheWay(ctx, n)
	switch {
	case errors.Is(err, smq.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look behind chunk %d of %v: %w", n-1, l.id, err)
	case string(theirs.Writer) != string(l.writer):
		l.fenced(&takenError{footer: theirs, size: size})
	}
	return nil
}

// Close gives the log up without a seal: batches that are not stored are told
// smq.ErrUnavailable, and may be stored all the same.
func (l *Log) Close() {
	l.stop(ending{err: smq.ErrUnavailable}, 0)
}

// Done is closed when the log has stopped for good.
func (l *Log) Done() <-chan struct{} { return l.done }

// Err says why the log has stopped: smq.ErrSegmentSealed, whoever sealed it,
// or what made it impossible to go on. It is nil before.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped == nil {
		return nil
	}
	return l.stopped.err
}

// Sealed returns the segment's seal once there is one.
func (l *Log) Sealed() (Seal, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped == nil || l.stopped.seal == nil {
		return Seal{}, false
	}
	return *l.stopped.seal, true
}

// ShouldRoll is closed when the segment has become large or old enough to be
// sealed and followed by another.
func (l *Log) ShouldRoll() <-chan struct{} { return l.roll }

// requestRoll closes roll, once. l.mu is held.
func (l *Log) requestRoll() {
	if !l.rolled {
		l.rolled = true
		close(l.roll)
	}
}

// Stats is what a log can tell of itself.
type Stats struct {
	State        string // open, sealing, sealed, fenced, failed
	Chunks       uint64
	Bytes        uint64 // stored
	Messages     uint64 // committed in this segment
	Buffered     int64  // bytes accepted and not stored
	OldestUnsent time.Duration
	// StoreError is why the store has taken nothing since some seconds at
	// least, though there was something to take lately; nil otherwise.
	StoreError error
}

// Stats describes the log now.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{State: "open", Chunks: uint64(len(l.chunks)), Bytes: l.bytes, Messages: l.messages, Buffered: l.pendingBytes}
	for _, f := range l.inflight {
		s.Buffered += f.dataBytes
	}
	s.OldestUnsent = l.oldestUnstored()
	s.StoreError = l.trouble.now()
	switch {
	case l.stopped != nil && l.stopped.seal != nil:
		s.State = "sealed"
	case l.stopped != nil:
		s.State = "failed"
	case l.sealing:
		s.State = "sealing"
	}
	return s
}
