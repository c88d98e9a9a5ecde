package sim

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// finish checks what must hold when nothing is left to happen.
func (w *world) finish(ctx context.Context) error {
	if err := w.unanswered(); err != nil {
		return err
	}
	if err := w.outstanding(ctx); err != nil {
		return err
	}
	for _, c := range w.clients() {
		if err := c.delivered(); err != nil {
			return err
		}
	}
	for _, id := range w.checker.Segments() {
		if err := w.verify(ctx, id); err != nil {
			return err
		}
	}
	for _, n := range w.nodes {
		if err := n.released(); err != nil {
			return err
		}
		if err := n.sane(); err != nil {
			return err
		}
	}
	return nil
}

// verify has the log's own verification, and a reader of the sealed segment,
// agree with the checker.
func (w *world) verify(ctx context.Context, id seglog.Ident) error {
	report, err := seglog.Verify(ctx, w.gate.st, id)
	if err != nil {
		return Violated("P1", "verify %v: %v", id, err)
	}
	if len(report.Problems) > 0 {
		return Violated("P1", "verify %v: %s", id, strings.Join(report.Problems, "; "))
	}
	seal, found, err := seglog.FindSeal(ctx, w.gate.st, id)
	if err != nil || found != report.Sealed {
		return Violated("P8", "%v: sealed %v, but its seal is found %v, %v", id, report.Sealed, found, err)
	}
	w.mu.Lock()
	told, known := w.seals[id.Segment]
	w.mu.Unlock()
	if known && (!found || seal.Chunk != told.Chunk || string(seal.Hash) != string(told.Hash) || seal.Messages != told.Messages || seal.Bytes != told.Bytes) {
		return Violated("P8", "%v: its seal is %+v, told was %+v", id, seal, told)
	}
	if !found {
		return nil
	}
	return w.readSealed(ctx, id)
}

// readSealed reads a sealed segment as any broker would, and compares it with
// the checker's history.
func (w *world) readSealed(ctx context.Context, id seglog.Ident) error {
	src, err := seglog.OpenSealed(ctx, w.gate.st, id, seglog.NewShared(seglog.SharedOptions{}))
	if err != nil {
		return Violated("P4", "%v", err)
	}
	cursor := seglog.NewCursor(src)
	ends := make(map[smq.Partition]smq.Offset)
	for p := id.Range.Lo; p < id.Range.Hi; p++ {
		start, end, err := src.Offsets(ctx, p)
		if err != nil {
			return Violated("P4", "%v", err)
		}
		cursor.Add(p, start)
		ends[p] = end
	}
	for {
		d, err := cursor.Next(ctx, 1)
		if err != nil {
			return Violated("P4", "read %v: %v", id, err)
		}
		for _, b := range d.Batches {
			w.ledger.Seen("reader of "+id.String(), b.Partition, b.BaseOffset, b.Bytes, false)
		}
		if d.AtEnd {
			break
		}
	}
	for p, end := range ends {
		if at, _ := cursor.Position(p); at != end {
			return Violated("P4", "reader of %v ends at offset %d of partition %d, the segment at %d", id, at, p, end)
		}
	}
	return w.checker.Check(ctx)
}

// released checks that a living node has given all memory back (P10).
func (n *node) released() error {
	if n.isDead() {
		return nil
	}
	ctx, cancel := context.WithTimeout(n.ctx, time.Second)
	defer cancel()
	if err := n.shared.Reserve(ctx, buffer); err != nil {
		return Violated("P10", "%s holds memory although nothing is buffered", n.name)
	}
	n.shared.Unreserve(buffer)
	return nil
}

// sane checks that a living node's log, if it has stopped, has done so because
// the segment is sealed.
func (n *node) sane() error {
	if n.isDead() || n.log == nil || n.log.Err() == nil || errors.Is(n.log.Err(), smq.ErrSegmentSealed) {
		return nil
	}
	return Violated("P5", "the log of %s has stopped: %v", n.name, n.log.Err())
}
