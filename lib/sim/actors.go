package sim

import (
	"sync/atomic"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// choice is something that may happen next.
type choice struct {
	label    string
	by       string // who acts; "" for what just happens
	cost     budget
	optional bool // a run may end without it
	do       func()
}

// budget counts what a search allows only so often in a run.
type budget struct {
	faults  int // outcomes other than success
	crashes int
	retries int // clients' attempts that nothing called for
	turns   int // switches away from somebody who could have gone on
}

// anyTurns is more turns than a run can take.
const anyTurns = 1 << 20

func (b budget) covers(c budget) bool {
	return b.faults >= c.faults && b.crashes >= c.crashes && b.retries >= c.retries && b.turns >= c.turns
}

func (b budget) less(c budget) budget {
	return budget{b.faults - c.faults, b.crashes - c.crashes, b.retries - c.retries, b.turns - c.turns}
}

// broker is a node that opens one segment, as soon as it knows the seals that
// it continues from, and may seal it as planned.
type broker struct {
	w       *world
	n       *node
	id      seglog.Ident
	preds   []smq.SegmentID // that it continues
	after   []smq.SegmentID // whose seals it waits for: those, unless something is wrong
	planned bool            // seals its segment at some time
	opened  bool            // has tried to
	sealing bool

	followers []*replica
	expired   atomic.Bool // its lease has run out
}

// broker adds a broker that opens a segment behind others.
func (w *world) broker(name string, segment smq.SegmentID, r smq.Range, preds ...smq.SegmentID) *broker {
	b := &broker{w: w, n: w.node(name), id: ident(segment, r), preds: preds, after: preds}
	w.actors = append(w.actors, b)
	return b
}

// begin opens the segment as soon as possible. That is no choice: until it
// creates the first chunk the broker reads only what can change no more.
func (b *broker) begin() {
	if _, known := b.w.sealsOf(b.after); known && !b.opened && !b.n.isDead() {
		b.opened = true
		seals, _ := b.w.sealsOf(b.preds)
		b.w.run(b.n, "open", func() { b.w.open(b.n, b.id, seals, b.replication()) })
	}
}

func (b *broker) choices() []choice {
	if b.n.isDead() {
		return nil
	}
	var list []choice
	if len(b.followers) > 0 && !b.expired.Load() {
		list = append(list, choice{label: b.n.name + ": the lease ends", by: b.n.name, cost: budget{faults: 1}, optional: true, do: func() {
			b.expired.Store(true)
			b.n.told("expired", 0)
		}})
	}
	if b.planned && !b.sealing && b.n.log != nil && b.n.log.Err() == nil {
		list = append(list, choice{label: b.n.name + ": seal " + b.id.Segment.String(), by: b.n.name, do: func() {
			b.sealing = true
			b.w.run(b.n, "seal", b.seal)
		}})
	}
	return list
}

func (b *broker) seal() {
	seal, err := b.n.log.Seal(b.n.ctx)
	if err == nil {
		b.w.sealed(b.n, seal)
	}
	b.w.unexpected(b.n, err)
}

func (b *broker) digest() uint64 { return 0 } // the node's trace says it all

// sealer is a node that seals a segment from the store, and tries again when
// the store refuses.
type sealer struct {
	w     *world
	n     *node
	id    seglog.Ident
	preds []smq.SegmentID
	tries int
}

// sealer adds a sealer of a segment that follows on others.
func (w *world) sealer(name string, segment smq.SegmentID, r smq.Range, preds ...smq.SegmentID) *sealer {
	s := &sealer{w: w, n: w.node(name), id: ident(segment, r), preds: preds}
	w.actors = append(w.actors, s)
	return s
}

func (s *sealer) begin() {}

func (s *sealer) choices() []choice {
	if s.n.isDead() || s.w.busy(s.n) != "" || s.done() {
		return nil
	}
	seals, known := s.w.sealsOf(s.preds)
	if !known {
		return nil
	}
	return []choice{{label: s.n.name + ": seal " + s.id.Segment.String(), by: s.n.name, do: func() {
		s.tries++
		s.w.run(s.n, "seal", func() { s.w.seal(s.n, s.id, seals) })
	}}}
}

// done reports whether it was told the seal.
func (s *sealer) done() bool {
	_, known := s.w.sealsOf([]smq.SegmentID{s.id.Segment})
	return s.tries > 0 && known
}

func (s *sealer) digest() uint64 { return uint64(s.tries) }

// unanswered lists what nobody answered although nothing keeps it from being
// answered.
func (w *world) unanswered() error {
	for _, n := range w.nodes {
		if n.isDead() {
			continue
		}
		if what := w.busy(n); what != "" {
			return Violated("answers", "%s is stuck in %q", n.name, what)
		}
		if keys := w.ledger.Unanswered(n.name); len(keys) > 0 {
			return Violated("answers", "%s never answers %v", n.name, keys)
		}
	}
	return nil
}
