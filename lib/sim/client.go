package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// client publishes a row of batches, in order, to the log that has their
// partition, and resends what is not acked to whoever has it next.
type client struct {
	w       *world
	name    string
	keys    []Key
	batches [][]byte
	sends   []int // attempts of each
	targets map[*openLog]*target
	level   seglog.Level
	rename  func(k Key) []byte // what a retry sends; nil: the same
}

// window is how many batches a client leaves unanswered, as Kafka's do.
const window = 5

// target is how far a client has got with one log.
type target struct {
	next     int   // batch to send
	waits    []int // for the answers to these
	skips    int   // batches sent out of turn, and not refused for it yet
	finished bool  // the log takes no more
}

// messages are so many messages for a partition, in one batch.
type messages struct {
	partition smq.Partition
	count     int
}

// client adds a client that publishes the row.
func (w *world) client(name string, producer int64, row ...messages) *client {
	c := &client{w: w, name: name, sends: make([]int, len(row)), targets: make(map[*openLog]*target)}
	sequences := make(map[smq.Partition]int32)
	for _, m := range row {
		k := Key{Producer: producer, Partition: m.partition, Sequence: sequences[m.partition]}
		b := batchOf(k, m.count)
		w.ledger.Mean(k, m.count, b)
		c.keys, c.batches = append(c.keys, k), append(c.batches, b)
		sequences[m.partition] += int32(m.count)
	}
	w.actors = append(w.actors, c)
	return c
}

// brokers lists the brokers.
func (w *world) brokers() []*broker {
	var list []*broker
	for _, a := range w.actors {
		if b, ok := a.(*broker); ok {
			list = append(list, b)
		}
	}
	return list
}

// clients lists the clients.
func (w *world) clients() []*client {
	var list []*client
	for _, a := range w.actors {
		if c, ok := a.(*client); ok {
			list = append(list, c)
		}
	}
	return list
}

// following is the first batch from i on that the log may take and that is not
// known to be stored.
func (c *client) following(i int, o *openLog) int {
	for i < len(c.keys) && (!o.id.Range.Contains(c.keys[i].Partition) || c.w.ledger.Acked(c.keys[i])) {
		i++
	}
	return i
}

func (c *client) begin() {}

func (c *client) choices() []choice {
	var list []choice
	logs := c.w.openLogs()
	for i, o := range slices.Backward(logs) {
		if !o.node.isDead() {
			list = append(list, c.towards(o, superseded(o, logs[i+1:]))...)
		}
	}
	return list
}

// superseded reports whether a later log has all of this one's partitions.
func superseded(o *openLog, later []*openLog) bool {
	n := 0
	for _, l := range later {
		if l.id.Range.Overlaps(o.id.Range) {
			n += min(int(l.id.Range.Hi), int(o.id.Range.Hi)) - max(int(l.id.Range.Lo), int(o.id.Range.Lo))
		}
	}
	return n >= o.id.Range.Len()
}

// towards lists what the client may send to one log. To send to one that is
// superseded stands for frames that were long on their way.
func (c *client) towards(o *openLog, superseded bool) []choice {
	t := c.targets[o]
	if t == nil {
		t = new(target)
		c.targets[o] = t
	}
	if t.finished {
		return nil
	}
	var list []choice
	if i := c.following(t.next, o); i < len(c.keys) && len(t.waits) < window {
		ch := choice{label: fmt.Sprintf("%s: send %v to %s", c.name, c.keys[i], o.node.name), by: c.name, do: func() { c.send(i, o, t) }}
		if superseded {
			ch.optional, ch.cost.retries = true, 1
		}
		list = append(list, ch)
		if late := c.following(i+1, o); late < len(c.keys) && !superseded {
			// The frame before was refused as a whole, or is still to come.
			list = append(list, choice{
				label: fmt.Sprintf("%s: send %v to %s out of turn", c.name, c.keys[late], o.node.name), by: c.name, cost: budget{retries: 1}, optional: true,
				do: func() { next := t.next; t.skips++; c.send(late, o, t); t.next = next },
			})
		}
	}
	if i := c.following(0, o); len(t.waits) > 0 && i < t.next {
		list = append(list, choice{
			label: fmt.Sprintf("%s: resend %v to %s", c.name, c.keys[i], o.node.name), by: c.name, cost: budget{retries: 1}, optional: true,
			do: func() { c.send(i, o, t) },
		})
	}
	return list
}

// send publishes batch i to a log, and what follows it next.
func (c *client) send(i int, o *openLog, t *target) {
	t.next = i + 1
	k, bytes := c.keys[i], slices.Clone(c.batches[i])
	c.sends[i]++
	if c.rename != nil && c.sends[i] > 1 {
		bytes = c.rename(k)
	}
	t.waits = append(t.waits, i)
	if err := o.node.shared.Reserve(o.node.ctx, int64(len(bytes))); err != nil {
		panic(err) // the buffer holds everything that a scenario sends
	}
	id := c.w.ledger.Attempt(k, o.node.name)
	o.node.told("batch", mixString(uint64(k.Sequence), k.String()))
	batch := []seglog.Batch{{ID: id, Partition: k.Partition, Bytes: bytes, Level: c.level}}
	var sink seglog.Sink = &answers{c: c, o: o, t: t, early: o.log.Err() == nil && c.w.untouched(o)}
	if c.w.wrap != nil {
		sink = c.w.wrap(sink, batch, o)
	}
	o.log.Append(batch, sink)
}

// answers takes a log's acks to the client.
type answers struct {
	c     *client
	o     *openLog
	t     *target
	early bool // the batch was sent before anybody sealed the segment
}

// Acked takes note of the acks, unless they died with their process.
func (a *answers) Acked(acks []seglog.Ack) {
	if a.o.node.isDead() {
		return
	}
	w := a.c.w
	for _, ack := range acks {
		k := w.ledger.Answer(a.o.node.name, ack)
		w.mu.Lock()
		if ack.Err == nil && ack.Level == seglog.Replicated && w.expired(a.o.node) {
			w.broken = Violated("P5", "%s acks %v from memory without a lease", a.o.node.name, k)
		}
		if a.early && w.onlyPlanned(a.o.id) && errors.Is(ack.Err, smq.ErrSegmentSealed) {
			w.broken = Violated("answers", "%v was accepted before the segment's planned seal, which left it out", k)
		}
		a.answered(k, ack.Err)
		w.mu.Unlock()
	}
}

func (a *answers) answered(k Key, err error) {
	i := slices.Index(a.c.keys, k)
	if at := slices.Index(a.t.waits, i); at >= 0 {
		a.t.waits = slices.Delete(a.t.waits, at, at+1)
	}
	switch {
	case err == nil:
	case errors.Is(err, smq.ErrNoSpace): // to be sent again, in order
		a.t.next = min(a.t.next, i)
	case outOfTurn(err) && a.t.skips > 0:
		a.t.skips--
		a.t.next = min(a.t.next, i)
	default:
		a.t.finished = true
	}
}

func (c *client) digest() uint64 {
	h := mixString(0, c.name)
	for i, k := range c.keys {
		if c.w.ledger.Acked(k) {
			h = mix(h, uint64(i))
		}
	}
	for _, o := range c.w.openLogs() {
		if t := c.targets[o]; t != nil && !o.node.isDead() {
			h = mixString(h, fmt.Sprint(o.node.name, t.next, t.waits, t.skips, t.finished))
		}
	}
	return h
}

// outOfTurn reports whether a batch was refused because one before it is missing.
func outOfTurn(err error) bool {
	return errors.Is(err, smq.ErrOutOfSequence) || errors.Is(err, smq.ErrUnknownProducer)
}

// expired reports whether a broker's lease has run out.
func (w *world) expired(n *node) bool {
	return slices.ContainsFunc(w.brokers(), func(b *broker) bool { return b.n == n && b.expired.Load() })
}

// untouched reports whether the log's owner has not begun to seal it.
func (w *world) untouched(o *openLog) bool {
	return !slices.ContainsFunc(w.actors, func(a actor) bool {
		b, ok := a.(*broker)
		return ok && b.n == o.node && b.sealing
	})
}

// onlyPlanned reports whether nobody but its owner seals the segment.
func (w *world) onlyPlanned(id seglog.Ident) bool {
	return !slices.ContainsFunc(w.actors, func(a actor) bool {
		s, seals := a.(*sealer)
		r, follows := a.(*replica)
		return seals && s.id == id || follows && r.owner.id == id
	})
}

// delivered checks that what a client could bring to the log has been.
func (c *client) delivered() error {
	for _, k := range c.keys {
		for _, o := range slices.Backward(c.w.openLogs()) {
			if !o.id.Range.Contains(k.Partition) {
				continue
			}
			if !o.node.isDead() && o.log.Err() == nil && !c.w.ledger.Acked(k) {
				return Violated("answers", "%v is never acked, although %s is there to take it", k, o.node.name)
			}
			break
		}
	}
	return nil
}
