package client

import (
	"slices"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// fakeLog is a partition as it should be: what was appended, and the producers.
type fakeLog struct {
	batches   [][]byte // patched
	bases     []int64
	end       int64
	producers map[int64]*fakeProducer
}

type fakeProducer struct {
	epoch int16
	last  int32 // sequence
	held  []fakeHeld
}

type fakeHeld struct {
	first, count int32
	base         int64
}

// append does what an owner does with a batch.
func (l *fakeLog) append(b []byte, epoch int32) (base int64, duplicate bool, err error) {
	h, err := record.Validate(b)
	if err != nil {
		return -1, false, err
	}
	st := l.producers[h.ProducerID]
	if st != nil && h.ProducerEpoch == st.epoch {
		i := slices.IndexFunc(st.held, func(x fakeHeld) bool { return x.first == h.BaseSequence && x.count == h.Count })
		if i >= 0 {
			return st.held[i].base, true, nil
		}
	}
	switch {
	case st == nil && h.BaseSequence != 0:
		return -1, false, smq.ErrUnknownProducer
	case st != nil && h.ProducerEpoch < st.epoch:
		return -1, false, smq.ErrStaleProducer
	case st != nil && h.ProducerEpoch > st.epoch && h.BaseSequence != 0:
		return -1, false, &smq.SequenceError{Last: -1}
	case st != nil && h.ProducerEpoch == st.epoch && h.BaseSequence != record.NextSequence(st.last, 1):
		return -1, false, &smq.SequenceError{Last: st.last}
	}
	if st == nil || h.ProducerEpoch > st.epoch {
		st = &fakeProducer{epoch: h.ProducerEpoch}
		l.producers[h.ProducerID] = st
	}
	base = l.end
	stored := slices.Clone(b)
	record.Patch(stored, base, epoch)
	l.batches, l.bases = append(l.batches, stored), append(l.bases, base)
	l.end += int64(h.Count)
	st.last = h.LastSequence()
	st.held = append(st.held, fakeHeld{h.BaseSequence, h.Count, base})
	st.held = st.held[max(0, len(st.held)-5):]
	return base, false, nil
}

// from is the batches from the one that holds an offset on.
func (l *fakeLog) from(offset int64) [][]byte {
	i, found := slices.BinarySearch(l.bases, offset)
	if !found && i > 0 {
		i--
	}
	if offset >= l.end {
		return nil
	}
	return l.batches[i:]
}

// values are the values of all messages, in order.
func (l *fakeLog) values() []string {
	var values []string
	var r record.Reader
	for _, b := range l.batches {
		if err := r.Reset(b); err != nil {
			panic(err)
		}
		for rec, ok := r.Next(); ok; rec, ok = r.Next() {
			if rec.Offset != int64(len(values)) {
				panic("offsets are not dense")
			}
			values = append(values, string(rec.Value))
		}
		if r.Err() != nil {
			panic(r.Err())
		}
	}
	return values
}
