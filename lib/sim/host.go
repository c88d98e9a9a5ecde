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

// host is a broker of a life: it opens the segments that the table gives it,
// and seals them when they should roll.
type host struct {
	l      *life
	name   string
	store  *fault.Store
	shared *seglog.Shared
	buffer int64 // bytes for batches
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	dead bool
	logs []*seglog.Log
}

func (l *life) startHost(ctx context.Context, name string) *host {
	d := NewDice(l.cfg.seed, "host "+name)
	h := &host{l: l, name: name, store: l.openStore(name)}
	h.buffer = int64(2000 + d.IntN(20_000))
	h.shared = seglog.NewShared(seglog.SharedOptions{Buffer: h.buffer, Cache: int64(1 + d.IntN(20_000))})
	h.ctx, h.cancel = context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts = append(l.hosts, h)
	return h
}

func (h *host) isDead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}

// kill ends the process: what it has under way in the store may be applied, and
// nothing that it says is heard any more.
func (h *host) kill() {
	h.mu.Lock()
	h.dead = true
	logs := h.logs
	h.mu.Unlock()
	h.cancel()
	h.store.Kill()
	for _, log := range logs {
		log.Close()
	}
}

// keep remembers a log to close, unless the process has died meanwhile.
func (h *host) keep(log *seglog.Log) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return false
	}
	h.logs = append(h.logs, log)
	return true
}

// serve opens a segment and looks after it to its end.
func (h *host) serve(p *place) {
	log := h.open(p)
	if log == nil {
		h.l.table.end(p)
		return
	}
	h.l.table.opened(p, log)
	h.l.note("%s owns %v", h.name, p.id)
	h.l.count("open")
	h.l.spawn(func() { h.probe(p, log) })
	select {
	case <-log.Done():
	case <-h.ctx.Done():
	case <-log.ShouldRoll():
		h.l.note("%s rolls %v", h.name, p.id)
		h.l.count("roll")
		if seal, err := log.Seal(h.ctx); err == nil {
			h.l.sealed(p, h.name, seal)
		}
	}
	if seal, ok := log.Sealed(); ok {
		h.l.sealed(p, h.name, seal)
	}
	if err := log.Err(); err != nil && !errors.Is(err, smq.ErrSegmentSealed) && !h.isDead() {
		h.l.fail(Violated("P5", "the log of %s for %v has stopped: %v", h.name, p.id, err))
	}
	h.l.table.end(p)
}

// probe looks from time to time whether the log is fenced.
func (h *host) probe(p *place, log *seglog.Log) {
	d := NewDice(h.l.cfg.seed, fmt.Sprintf("probe %v", p.id.Segment))
	for log.Err() == nil && pause(h.ctx, d.UpTo(time.Second)) {
		if err := log.Probe(h.ctx); errors.Is(err, smq.ErrCorrupt) {
			h.l.fail(Violated("P8", "%s looks behind %v: %v", h.name, p.id, err))
		}
	}
}

// open tries to own the segment until it does or never can.
func (h *host) open(p *place) *seglog.Log {
	d := NewDice(h.l.cfg.seed, fmt.Sprintf("open %v", p.id.Segment))
	for {
		log, err := seglog.Open(h.ctx, seglog.Config{
			Store: h.store, Ident: p.id, Predecessors: p.preds, Broker: smq.BrokerID(h.name), Limits: h.l.limits, Shared: h.shared,
		})
		switch {
		case err == nil && h.keep(log):
			return log
		case err == nil:
			log.Close()
			return nil
		case errors.Is(err, smq.ErrSegmentSealed), errors.Is(err, smq.ErrNotOwner):
			h.l.note("%s cannot open %v: %v", h.name, p.id, err)
			h.l.count("open: " + kindOf(err))
			return nil
		case errors.Is(err, smq.ErrCorrupt):
			h.l.fail(Violated("P8", "%s opens %v: %v", h.name, p.id, err))
			return nil
		}
		if !pause(h.ctx, 10*time.Millisecond+d.UpTo(200*time.Millisecond)) {
			return nil
		}
	}
}

// pause waits, and reports whether the context still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sealed notes a seal that somebody was told of.
func (l *life) sealed(p *place, by string, s seglog.Seal) {
	l.note("%s knows the seal of %v: chunk %d", by, p.id, s.Chunk)
	if err := l.table.seal(p, by, s); err != nil {
		l.fail(err)
	}
}

// released checks that the host has given all memory back (P10).
func (h *host) released(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := h.shared.Reserve(ctx, h.buffer); err != nil {
		return Violated("P10", "%s holds memory although nothing is buffered", h.name)
	}
	h.shared.Unreserve(h.buffer)
	return nil
}

// kindOf names the kind of an error, for counting.
func kindOf(err error) string {
	for _, kind := range []error{smq.ErrSegmentSealed, smq.ErrNotOwner, smq.ErrNoSpace, smq.ErrUnknownProducer, smq.ErrStaleProducer,
		smq.ErrOutOfSequence, smq.ErrDuplicate, smq.ErrOverloaded, smq.ErrUnavailable, smq.ErrTimeout} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "another"
}
