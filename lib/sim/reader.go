package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/fault"
)

// reader reads one partition from its beginning, through all its segments and
// at the end of the living one.
type reader struct {
	l         *life
	name      string
	partition smq.Partition
	store     *fault.Store
	shared    *seglog.Shared
	dice      *Dice

	mu       sync.Mutex
	position smq.Offset
}

func (l *life) startReaders(ctx context.Context) []*reader {
	var list []*reader
	for i := range l.cfg.readers {
		for p := range l.cfg.partitions {
			name := fmt.Sprintf("r%d/p%d", i+1, p)
			d := NewDice(l.cfg.seed, "reader "+name)
			r := &reader{l: l, name: name, partition: smq.Partition(p), store: l.openStore(name), dice: d,
				shared: seglog.NewShared(seglog.SharedOptions{Cache: int64(1 + d.IntN(10_000))})}
			list = append(list, r)
			l.spawn(func() { r.run(ctx) })
		}
	}
	return list
}

// at is the offset that comes next.
func (r *reader) at() smq.Offset {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.position
}

func (r *reader) run(ctx context.Context) {
	for i := 0; pause(ctx, r.dice.UpTo(100*time.Millisecond)); {
		chain := r.l.table.chain(r.partition)
		if i == len(chain) {
			continue // its successor is not named yet
		}
		src := r.source(ctx, chain[i])
		if src == nil {
			continue
		}
		if r.read(ctx, src) {
			i++
		}
	}
}

// source finds who has the segment: its living owner, or the store once it is
// sealed.
func (r *reader) source(ctx context.Context, p *place) seglog.Source {
	s := r.l.table.state(p)
	if s.sealed == nil || r.dice.Percent(30) {
		if s.log == nil || s.owner.isDead() {
			return nil
		}
		return s.log
	}
	src, err := seglog.OpenSealed(ctx, r.store, p.id, r.shared)
	if err != nil {
		r.judge(err)
		return nil
	}
	return src
}

// read delivers what the source has, and reports whether that was all it ever
// will.
func (r *reader) read(ctx context.Context, src seglog.Source) (end bool) {
	cursor := seglog.NewCursor(src)
	cursor.Add(r.partition, r.at())
	for {
		changed := src.Changed()
		d, err := cursor.Next(ctx, 1+r.dice.IntN(1000))
		if err != nil {
			r.judge(err)
			return false
		}
		for _, b := range d.Batches {
			if !r.deliver(src, b) {
				return false
			}
		}
		switch {
		case d.AtEnd:
			return true
		case !d.AtTail:
			continue
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
			return false // look whether somebody else has it now
		case <-ctx.Done():
			return false
		}
	}
}

// deliver takes a batch, which must be the next.
func (r *reader) deliver(src seglog.Source, b seglog.Delivered) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.BaseOffset != r.position {
		r.l.fail(Violated("P4", "%s is given offset %d by %v, next is %d", r.name, b.BaseOffset, src.Ident(), r.position))
		return false
	}
	r.l.ledger.Seen(r.name, b.Partition, b.BaseOffset, b.Bytes, false)
	r.position = b.EndOffset
	return true
}

// judge fails the life for errors that a store which is only slow or absent
// does not explain.
func (r *reader) judge(err error) {
	if errors.Is(err, smq.ErrCorrupt) || errors.Is(err, smq.ErrConflict) || errors.Is(err, smq.ErrNotFound) {
		r.l.fail(Violated("P4", "%s: %v", r.name, err))
	}
}
