package seglog

import (
	"cmp"
	"slices"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// rememberedBatches is how many of a producer's last batches a partition
// remembers; a producer has at most as many unacked, as in Kafka.
const rememberedBatches = 5

// producerKey names a producer within a partition. Sequences run per pair.
type producerKey struct {
	id        int64
	partition smq.Partition
}

// producer is what a partition remembers of an idempotent producer.
type producer struct {
	epoch    int16
	n        int8 // entries in use
	appendMs int64
	last     [rememberedBatches]sequenced // oldest first
}

// sequenced is a remembered batch.
type sequenced struct {
	first  int32 // sequence of its first message
	count  int32
	offset int64 // its base offset
	// position is one more than the batch's position in this segment; 0 when
	// it came from an earlier one, or was recovered, so that it is stored.
	position uint64
}

func (s sequenced) lastSequence() int32 { return record.NextSequence(s.first, s.count-1) }

// push remembers a batch and forgets the oldest beyond the limit.
func (p *producer) push(s sequenced) {
	if p.n == rememberedBatches {
		copy(p.last[:], p.last[1:])
		p.n--
	}
	p.last[p.n] = s
	p.n++
}

func (p *producer) lastSequence() int32 { return p.last[p.n-1].lastSequence() }

// verdict is what a partition's memory says of an arriving batch.
type verdict struct {
	duplicate bool
	original  sequenced // when duplicate
	err       error
}

// check judges a batch with h by what is remembered of its producer. See
// Kafka's rules for idempotent producers (KIP-98, KIP-360).
func (p *producer) check(h *record.Header) verdict {
	switch {
	case p == nil && h.BaseSequence != 0:
		return verdict{err: smq.ErrUnknownProducer}
	case p == nil:
		return verdict{}
	case h.ProducerEpoch < p.epoch:
		return verdict{err: smq.ErrStaleProducer}
	case h.ProducerEpoch > p.epoch && h.BaseSequence != 0:
		return verdict{err: &smq.SequenceError{Last: -1}}
	case h.ProducerEpoch > p.epoch:
		return verdict{}
	}
	last := p.lastSequence()
	if h.BaseSequence == record.NextSequence(last, 1) {
		return verdict{}
	}
	for _, s := range p.last[:p.n] {
		if s.first == h.BaseSequence && s.count == h.Count {
			return verdict{duplicate: true, original: s}
		}
	}
	if behind(h.LastSequence(), p.last[0].first) {
		return verdict{err: smq.ErrDuplicate}
	}
	return verdict{err: &smq.SequenceError{Last: last}}
}

// behind reports whether sequence a comes before b, on the circle of 31 bits
// that sequences run on.
func behind(a, b int32) bool {
	d := uint32(b-a) & 0x7fffffff
	return d != 0 && d < 1<<30
}

// producers remembers the producers of a segment, up to a limit.
type producers struct {
	m   map[producerKey]*producer
	max int
}

// noted records an accepted batch with h.
func (ps *producers) noted(p smq.Partition, h *record.Header, offset int64, position uint64, nowMs int64) {
	key := producerKey{h.ProducerID, p}
	st := ps.m[key]
	if st == nil {
		ps.makeRoom()
		st = new(producer)
		ps.m[key] = st
	}
	if st.epoch != h.ProducerEpoch {
		*st = producer{epoch: h.ProducerEpoch}
	}
	st.appendMs = nowMs
	st.push(sequenced{first: h.BaseSequence, count: h.Count, offset: offset, position: position + 1})
}

// makeRoom forgets, when the limit is reached, the quarter that has been idle
// for longest. A forgotten producer that goes on is told so
// (smq.ErrUnknownProducer), so nothing is ever stored twice by it.
func (ps *producers) makeRoom() {
	if len(ps.m) < ps.max {
		return
	}
	times := make([]int64, 0, len(ps.m))
	for _, p := range ps.m {
		times = append(times, p.appendMs)
	}
	slices.Sort(times)
	ps.forgetUntil(times[len(times)/4])
}

// forgetUntil drops all whose last batch came at ms or before.
func (ps *producers) forgetUntil(ms int64) {
	for k, p := range ps.m {
		if p.appendMs <= ms {
			delete(ps.m, k)
		}
	}
}

// set puts back what a footer says.
func (ps *producers) set(m *smqpb.ProducerState) {
	p := &producer{epoch: int16(m.Epoch), appendMs: m.AppendMs}
	for i := range m.FirstSequences {
		p.push(sequenced{first: m.FirstSequences[i], count: m.Counts[i], offset: m.BaseOffsets[i]})
	}
	ps.m[producerKey{m.ProducerId, m.Partition}] = p
}

// message is the stored form of a producer's state.
func (p *producer) message(k producerKey) *smqpb.ProducerState {
	m := &smqpb.ProducerState{
		ProducerId:     k.id,
		Partition:      k.partition,
		Epoch:          int32(p.epoch),
		AppendMs:       p.appendMs,
		FirstSequences: make([]int32, p.n),
		Counts:         make([]int32, p.n),
		BaseOffsets:    make([]int64, p.n),
	}
	for i, s := range p.last[:p.n] {
		m.FirstSequences[i], m.Counts[i], m.BaseOffsets[i] = s.first, s.count, s.offset
	}
	return m
}

// messages is the stored form of the states of keys, sorted.
func (ps *producers) messages(keys []producerKey) []*smqpb.ProducerState {
	slices.SortFunc(keys, func(a, b producerKey) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.id, b.id))
	})
	list := make([]*smqpb.ProducerState, 0, len(keys))
	for _, k := range keys {
		if p := ps.m[k]; p != nil {
			list = append(list, p.message(k))
		}
	}
	return list
}

// all is the stored form of everything remembered.
func (ps *producers) all() []*smqpb.ProducerState {
	keys := make([]producerKey, 0, len(ps.m))
	for k := range ps.m {
		keys = append(keys, k)
	}
	return ps.messages(keys)
}
