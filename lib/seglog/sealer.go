package seglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// SealOptions say on whose behalf a segment is sealed.
type SealOptions struct {
	Broker smq.BrokerID
	// Unclean marks the seal: every replica was lost. A segment that its owner
	// never opened has nothing to lose, and its seal is never unclean.
	Unclean bool
	// Unopened seals only a segment that its owner has not opened; smq.ErrConflict
	// when it has.
	Unopened bool
	Limits   Limits
}

// SealStore seals a segment from the store alone: it returns the seal that is
// there, or writes one behind the last chunk, or as the first when the owner
// never opened the segment; preds are what the segment continues from. From
// then on the owner can store nothing more. It is idempotent, and safe at any
// time beside the owner and other sealers.
func SealStore(ctx context.Context, st store.Store, id Ident, preds []Seal, o SealOptions) (Seal, error) {
	return newSealer(st, id, preds, o).seal(ctx)
}

// SealHeld seals a segment as SealStore does, with batches that a fenced follower
// has handed over: those from position first on that are not stored.
func SealHeld(ctx context.Context, st store.Store, id Ident, preds []Seal, first smq.Position, held []Batch, o SealOptions) (Seal, error) {
	s := newSealer(st, id, preds, o)
	nowMs := time.Now().UnixMilli()
	for i, b := range held {
		h, err := record.Validate(b.Bytes)
		if err == nil && !id.Range.Contains(b.Partition) {
			err = fmt.Errorf("%w partition %d", smq.ErrInvalid, b.Partition)
		}
		if err != nil {
			return Seal{}, fmt.Errorf("seal %v with what was handed over: %w", id, err)
		}
		s.held = append(s.held, entry{bytes: b.Bytes, header: h, partition: b.Partition, offset: h.BaseOffset, position: first + uint64(i), appendMs: nowMs})
	}
	return s.seal(ctx)
}

// noChunk is the number of none.
const noChunk = math.MaxUint64

// sealer is one effort to seal a segment from outside of its owner.
type sealer struct {
	st     store.Store
	id     Ident
	preds  []Seal
	o      SealOptions
	limits Limits
	writer []byte
	held   []entry // what a follower still holds, by position
}

func newSealer(st store.Store, id Ident, preds []Seal, o SealOptions) *sealer {
	return &sealer{st: st, id: id, preds: preds, o: o, limits: o.Limits.withDefaults(), writer: newWriterID()}
}

func (s *sealer) seal(ctx context.Context) (Seal, error) {
	seal, err := s.run(ctx)
	if err != nil {
		return Seal{}, fmt.Errorf("seal %v: %w", s.id, err)
	}
	return seal, nil
}

func (s *sealer) run(ctx context.Context) (Seal, error) {
	retry := newBackoff()
	var r recovered
	for tried := uint64(noChunk); ; {
		if err := s.look(ctx, &r); err != nil {
			return Seal{}, err
		}
		if r.sealed {
			return describeSeal(ctx, s.st, s.id, r.last, r.lastSize)
		}
		if s.o.Unopened && r.chunks > 0 {
			return Seal{}, fmt.Errorf("it has been opened: %w", smq.ErrConflict)
		}
		if r.chunks == tried {
			// The outcome is unknown, or the store does not show yet what it
			// has said is there.
			tried = noChunk
			if err := retry.wait(ctx); err != nil {
				return Seal{}, err
			}
			continue
		}
		tried = r.chunks
		err := s.write(ctx, r)
		switch {
		case err == nil, errors.Is(err, smq.ErrExists), errors.Is(err, store.ErrAmbiguous):
			// Looked at once more: the seal is there, or an unsealed chunk
			// of the owner took the number and the next one is tried.
		default:
			return Seal{}, err
		}
	}
}

// look brings r up to what the store holds. Only what is new is read, so that
// the sealer outruns an owner that goes on writing.
func (s *sealer) look(ctx context.Context, r *recovered) (err error) {
	if r.chunks > 0 {
		return r.extend(ctx, s.st, s.id)
	}
	if *r, err = recoverSegment(ctx, s.st, s.id, s.limits); err != nil || r.chunks > 0 {
		return err
	}
	r.state, r.preds, err = openingState(ctx, s.st, s.id, s.preds, s.limits)
	return err
}

// write tries to create the seal behind what was recovered, with whatever is
// held and not stored.
func (s *sealer) write(ctx context.Context, r recovered) error {
	now := time.Now()
	m := s.id.newFooter(r.chunks, s.writer, s.o.Broker, now)
	if r.chunks > 0 {
		m.Previous = bytes.Clone(r.last.hash[:])
	}
	after := r.state.clone()
	held, err := s.rest(after)
	if err != nil {
		return err
	}
	m.FirstPosition, m.EndPosition = r.state.position, after.position
	_, content := layOut(m, held)
	m.Producers = after.producers.messages(touched(held))
	m.Sealed, m.Unclean = true, s.o.Unclean && r.chunks > 0
	m.Snapshot = after.snapshot(r.preds, now.Add(-s.limits.ProducerIdle).UnixMilli())
	b, _, err := encodeFooter(m)
	if err != nil {
		return err
	}
	return s.st.Create(ctx, s.id.ChunkPath(m.Chunk), append(content, store.Part{Bytes: b}))
}

// rest is what is held and not stored, as seen from a state after the last
// chunk; the state moves over it.
func (s *sealer) rest(after *state) ([]entry, error) {
	for len(s.held) > 0 && s.held[0].position < after.position {
		s.held = s.held[1:]
	}
	for i := range s.held {
		e := &s.held[i]
		offset, position := after.append(e.partition, &e.header, e.appendMs)
		if offset != e.offset || position != e.position {
			return nil, fmt.Errorf("%w replica: it holds position %d, offset %d of partition %d, where position %d, offset %d is due",
				smq.ErrCorrupt, e.position, e.offset, e.partition, position, offset)
		}
	}
	return s.held, nil
}
