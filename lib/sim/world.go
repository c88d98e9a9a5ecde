package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var (
	topic   = smq.Topic{Namespace: "default", Name: "t"}
	topicID = smq.TopicID("0123456789abcdef0123456789abcdef")
)

func ident(id smq.SegmentID, r smq.Range) seglog.Ident {
	return seglog.Ident{Topic: topic, TopicID: topicID, Segment: id, Range: r}
}

// world is one execution: the processes, their store, and what outsiders know.
type world struct {
	gate    *gate
	ledger  *Ledger
	checker *Checker
	limits  seglog.Limits
	upload  bool // logs upload every chunk before they create it
	wrap    func(seglog.Sink, []seglog.Batch, *openLog) seglog.Sink
	actors  []actor
	turn    string // who acted last
	nodes   []*node

	mu     sync.Mutex
	logs   []*openLog // by segment
	seals  map[smq.SegmentID]seglog.Seal
	broken error
}

// actor is somebody who may act whenever the world stands still.
type actor interface {
	begin() // what needs no choice
	choices() []choice
	digest() uint64
}

func newWorld() *world {
	w := &world{gate: newGate(), ledger: NewLedger(), seals: make(map[smq.SegmentID]seglog.Seal)}
	w.checker = NewChecker(w.gate.st, topic, topicID, w.ledger)
	return w
}

// node is a process together with what ends with it.
type node struct {
	*process
	ctx     context.Context
	cancel  context.CancelFunc
	shared  *seglog.Shared
	create  func(ctx context.Context, path string, content []store.Part) error // instead of the process's; nil: not
	log     *seglog.Log
	running string // the call that it is in, "" when none
}

// buffer is the memory that a node has for batches.
const buffer = 1 << 20

// Create is the process's, unless something is wrong with the node.
func (n *node) Create(ctx context.Context, path string, content []store.Part) error {
	if n.create != nil {
		return n.create(ctx, path, content)
	}
	return n.process.Create(ctx, path, content)
}

func (w *world) node(name string) *node {
	limits := store.Limits{Inline: 1 << 20, Piece: 1 << 20}
	if w.upload {
		limits.Inline = 0
	}
	n := &node{process: w.gate.process(name, limits), shared: seglog.NewShared(seglog.SharedOptions{Buffer: buffer, Replica: buffer})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	w.nodes = append(w.nodes, n)
	return n
}

// run has the node do a call of its own, in the background.
func (w *world) run(n *node, what string, f func()) {
	n.running = what
	n.told(what, 0)
	go func() {
		f()
		w.mu.Lock()
		defer w.mu.Unlock()
		n.running = ""
	}()
}

// busy says what call the node is in.
func (w *world) busy(n *node) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return n.running
}

// owns reports whether the node has opened a log.
func (n *node) owns() bool { return n.log != nil }

// crash ends a node: nothing of it runs any further.
func (w *world) crash(n *node) {
	w.gate.kill(n.process)
	n.cancel()
	w.mu.Lock()
	log := n.log
	w.mu.Unlock()
	if log != nil {
		log.Close()
	}
}

// openLog is a log that its owner serves, and a reader at its end.
type openLog struct {
	w     *world
	node  *node
	log   *seglog.Log
	id    seglog.Ident
	tail  *seglog.Cursor
	ended bool
}

// opened makes a log known to clients.
func (w *world) opened(n *node, log *seglog.Log) error {
	o := &openLog{w: w, node: n, log: log, id: log.Ident(), tail: seglog.NewCursor(log)}
	for p := o.id.Range.Lo; p < o.id.Range.Hi; p++ {
		start, _, err := log.Offsets(n.ctx, p)
		if err != nil {
			return err
		}
		o.tail.Add(p, start)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n.log = log
	w.logs = append(w.logs, o)
	slices.SortStableFunc(w.logs, func(a, b *openLog) int { return cmp.Compare(a.id.Segment, b.id.Segment) })
	return nil
}

// open has the node try to become the segment's owner. That somebody else is,
// or that it is sealed, is no failure; a dead store is not one either.
func (w *world) open(n *node, id seglog.Ident, preds []seglog.Seal, r seglog.Replication) {
	log, err := seglog.Open(n.ctx, seglog.Config{
		Store: n, Ident: id, Predecessors: preds, Broker: smq.BrokerID(n.name), Limits: w.limits, Shared: n.shared, Replication: r,
	})
	if err == nil {
		err = w.opened(n, log)
	}
	w.unexpected(n, err, smq.ErrNotOwner, smq.ErrSegmentSealed, errRefused, smq.ErrNoSpace)
}

// seal has the node seal a segment from the store alone.
func (w *world) seal(n *node, id seglog.Ident, preds []seglog.Seal) {
	seal, err := seglog.SealStore(n.ctx, n, id, preds, seglog.SealOptions{Broker: smq.BrokerID(n.name), Limits: w.limits})
	if err == nil {
		w.sealed(n, seal)
	}
	w.unexpected(n, err, errRefused, smq.ErrNoSpace)
}

// sealed notes a seal that somebody was told of.
func (w *world) sealed(n *node, seal seglog.Seal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.seals[seal.Segment]
	if ok && (known.Chunk != seal.Chunk || string(known.Hash) != string(seal.Hash) || known.Messages != seal.Messages || known.Bytes != seal.Bytes) {
		w.broken = Violated("P8", "%s was told another seal of segment %v: %+v, known is %+v", n.name, seal.Segment, seal, known)
	}
	w.seals[seal.Segment] = seal
	n.told(fmt.Sprintf("seal %v", seal.Chunk), 0)
}

// unexpected keeps an error that is none of those expected, and not the
// process's death.
func (w *world) unexpected(n *node, err error, expected ...error) {
	if err == nil || n.isDead() {
		return
	}
	for _, e := range expected {
		if errors.Is(err, e) {
			n.told(e.Error(), 0)
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = Violated("answers", "%s: %v", n.name, err)
}

// sealsOf returns the seals of segments, when all of them are known.
func (w *world) sealsOf(ids []smq.SegmentID) ([]seglog.Seal, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seals := make([]seglog.Seal, len(ids))
	for i, id := range ids {
		s, ok := w.seals[id]
		if !ok {
			return nil, false
		}
		seals[i] = s
	}
	return seals, true
}

// openLogs lists the logs that have opened, successors last.
func (w *world) openLogs() []*openLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.logs)
}

// read has the readers at the ends of all logs take what they can.
func (w *world) read(ctx context.Context) error {
	for _, o := range w.openLogs() {
		if err := o.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (o *openLog) read(ctx context.Context) error {
	for !o.ended && !o.node.isDead() {
		d, err := o.tail.Next(ctx, 1<<20)
		if err != nil {
			return Violated("P4", "reader at %s: %v", o.node.name, err)
		}
		for _, b := range d.Batches {
			o.w.ledger.Seen("reader at "+o.node.name, b.Partition, b.BaseOffset, b.Bytes, o.w.replicated())
		}
		o.ended = d.AtEnd
		if d.AtTail || d.AtEnd {
			return nil
		}
	}
	return nil
}

// check looks whether all promises hold now.
func (w *world) check(ctx context.Context) error {
	if err := w.checker.Unchanged(ctx); err != nil {
		return err
	}
	if err := w.read(ctx); err != nil {
		return err
	}
	if err := w.checker.Check(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

// tick is the time that passes between two choices: enough for every timer of
// the log to fire, so that everybody waits for the store or has nothing to do.
const tick = 2 * time.Second

// teardown ends everything that still runs.
func (w *world) teardown() {
	for _, n := range w.nodes {
		w.crash(n)
	}
	// An Open that came through at the very end has its log closed too.
	time.Sleep(tick)
	for _, n := range w.nodes {
		w.crash(n)
	}
}
