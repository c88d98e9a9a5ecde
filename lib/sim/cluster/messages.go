package cluster

import (
	"slices"
	"sync"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/sim"
	"github.com/seaweedmq/smq/lib/smq"
)

// messages remembers every message that was published, and what its publisher
// was told; and what subscribers were given. It is a sim.Witness.
type messages struct {
	replicated bool // messages are shown before they are stored

	mu        sync.Mutex
	published []published // by token
	byValue   map[string]uint64
	told      map[line]uint64 // the last token told of, plus one
	results   int
	acked     []claim
	seen      []claim
	waiting   []claim // early ones that the store does not have yet
	settling  []claim
	refused   []uint64 // tokens of messages that are certainly not in the log
	broken    error

	// Only the checker's goroutine uses these.
	log    map[smq.Partition][]string // values by offset
	places map[string]smq.Offset
	last   map[line]uint64 // the last token in the log, plus one
}

// line is what has an order: a publisher's messages in a partition.
type line struct {
	publisher string
	partition smq.Partition
}

type published struct {
	line  line
	value string
}

// claim is what somebody was made to believe of an offset.
type claim struct {
	by        string
	partition smq.Partition
	offset    smq.Offset // -1: somewhere
	value     string
	ack       bool
	early     bool // the store may have it later only
}

func newMessages(replicated bool) *messages {
	return &messages{replicated: replicated, byValue: make(map[string]uint64), told: make(map[line]uint64), log: make(map[smq.Partition][]string),
		places: make(map[string]smq.Offset), last: make(map[line]uint64)}
}

// publish notes a message that is about to be published, and returns its token.
func (m *messages) publish(publisher string, p smq.Partition, value string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	token := uint64(len(m.published))
	m.published = append(m.published, published{line{publisher, p}, value})
	m.byValue[value] = token
	return token
}

// tell notes what a publisher was told.
func (m *messages) tell(publisher string, r client.Results) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := line{publisher, r.Partition}
	for i, token := range r.Tokens {
		msg := m.published[token]
		if msg.line != l || token < m.told[l] {
			m.violated("answers", "%s is told of %s once more or out of order, in partition %d", publisher, msg.value, r.Partition)
		}
		m.told[l] = token + 1
		m.results++
		switch {
		case r.Err == nil && r.BaseOffset < 0:
			m.acked = append(m.acked, claim{publisher, r.Partition, -1, msg.value, true, m.replicated})
		case r.Err == nil:
			m.acked = append(m.acked, claim{publisher, r.Partition, r.BaseOffset + int64(i), msg.value, true, r.Level == client.AckReplicated})
		case isNotStored(r.Err):
			m.refused = append(m.refused, token)
		}
	}
}

// missing is how many messages nobody was told of.
func (m *messages) missing() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.published) - m.results
}

// give notes that a subscriber was given a message.
func (m *messages) give(subscriber string, p smq.Partition, r record.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, claim{subscriber, p, r.Offset, string(r.Value), false, m.replicated})
}

func (m *messages) violated(promise, format string, args ...any) {
	if m.broken == nil {
		m.broken = sim.Violated(promise, format, args...)
	}
}

// Begin puts the claims so far aside.
func (m *messages) Begin() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settling = slices.Concat(m.waiting, m.acked, m.seen)
	m.waiting, m.acked, m.seen = nil, nil, nil
	return m.broken
}

// Batch takes in the messages of a batch that has come into the log.
func (m *messages) Batch(k sim.Key, _ record.Header, batch []byte) error {
	var r record.Reader
	if err := r.Reset(batch); err != nil {
		return sim.Violated("P1", "%v: %v", k, err)
	}
	for rec, ok := r.Next(); ok; rec, ok = r.Next() {
		if err := m.stored(k, rec); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return sim.Violated("P1", "%v: %v", k, err)
	}
	return nil
}

func (m *messages) stored(k sim.Key, rec record.Record) error {
	value := string(rec.Value)
	m.mu.Lock()
	token, known := m.byValue[value]
	var msg published
	if known {
		msg = m.published[token]
	}
	m.mu.Unlock()
	switch at, twice := m.places[value]; {
	case !known || msg.line.partition != k.Partition:
		return sim.Violated("P1", "%q is at offset %d of partition %d, nobody has published it there", value, rec.Offset, k.Partition)
	case twice:
		return sim.Violated("P7", "%q is there twice, at offsets %d and %d of partition %d", value, at, rec.Offset, k.Partition)
	case token < m.last[msg.line]:
		return sim.Violated("P3", "%q is at offset %d of partition %d, behind later messages of its publisher", value, rec.Offset, k.Partition)
	}
	m.last[msg.line] = token + 1
	m.places[value] = rec.Offset
	m.log[k.Partition] = append(m.log[k.Partition], value)
	return nil
}

// Settle compares the claims with the log.
func (m *messages) Settle(*sim.Checker) error {
	for _, c := range m.settling {
		if err := m.settle(c); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, token := range m.refused {
		if at, ok := m.places[m.published[token].value]; ok {
			return sim.Violated("answers", "%q is at offset %d, but its publisher was told that it is not stored", m.published[token].value, at)
		}
	}
	return nil
}

func (m *messages) settle(c claim) error {
	promise, what := "P4", "read"
	if c.ack {
		promise, what = "P1", "was acked"
	}
	log := m.log[c.partition]
	switch _, there := m.places[c.value]; {
	case c.offset < 0 && there:
		return nil
	case c.early && c.offset >= int64(len(log)), c.early && c.offset < 0:
		m.waiting = append(m.waiting, c)
		return nil
	case c.offset < 0 || c.offset >= int64(len(log)):
		return sim.Violated(promise, "%s %s %q at offset %d of partition %d, where the log has nothing", c.by, what, c.value, c.offset, c.partition)
	case log[c.offset] != c.value:
		return sim.Violated(promise, "%s %s %q at offset %d of partition %d, where %q is", c.by, what, c.value, c.offset, c.partition, log[c.offset])
	}
	return nil
}

// outstanding is a violation when something that was acked or seen has not come
// into the store.
func (m *messages) outstanding() error {
	if len(m.waiting) == 0 {
		return nil
	}
	c := m.waiting[0]
	c.early = false
	return m.settle(c)
}
