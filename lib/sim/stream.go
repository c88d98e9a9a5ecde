package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// stream is what one producer publishes to one partition, by the rules for
// clients: in order, at most five batches unanswered, the same bytes again,
// everything unanswered from the first on whenever anything goes wrong.
type stream struct {
	l         *life
	name      string
	producer  int64
	partition smq.Partition
	dice      *Dice
	pace      time.Duration // the most between two looks

	mu       sync.Mutex // guards all below
	epoch    int16
	sequence int32  // of the next batch
	left     int    // batches to come
	queue    []item // not acked, oldest first
	sent     int    // of queue, over conn
	conn     *conn  // nil: to be found
	progress time.Time
	news     chan struct{} // wakes the stream
}

// item is a batch to publish.
type item struct {
	key   Key
	bytes []byte
	acked bool
}

func (l *life) startStreams(ctx context.Context) []*stream {
	var list []*stream
	for producer := range l.cfg.producers {
		for p := range l.cfg.partitions {
			name := fmt.Sprintf("c%d/p%d", producer+1, p)
			d := NewDice(l.cfg.seed, "stream "+name)
			s := &stream{l: l, name: name, producer: int64(producer + 1), partition: smq.Partition(p), left: l.cfg.batches,
				dice: d, pace: 20*time.Millisecond + d.UpTo(500*time.Millisecond), progress: time.Now(), news: make(chan struct{}, 1)}
			list = append(list, s)
			l.spawn(func() { s.run(ctx) })
		}
	}
	return list
}

func (s *stream) isDone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left == 0 && len(s.queue) == 0
}

func (s *stream) describe() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d batches to come, %d unanswered, %d sent, epoch %d, progress %v ago", s.left, len(s.queue), s.sent, s.epoch, time.Since(s.progress))
}

func (s *stream) run(ctx context.Context) {
	for !s.isDone() && pause(ctx, s.dice.UpTo(s.pace)) {
		s.fill()
		if s.connect(ctx) {
			s.send()
			s.await(ctx)
		}
	}
}

// fill makes new batches, a few at a time.
func (s *stream) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := s.dice.IntN(4); n > 0 && s.left > 0 && len(s.queue) < window; n-- {
		count := 1 + s.dice.IntN(3)
		k := Key{Producer: s.producer, Epoch: s.epoch, Partition: s.partition, Sequence: s.sequence}
		bytes := batchOf(k, count)
		s.l.ledger.Mean(k, count, bytes)
		s.queue = append(s.queue, item{key: k, bytes: bytes})
		s.sequence += int32(count)
		s.left--
	}
}

// connect looks for the partition's owner, unless there is a connection.
func (s *stream) connect(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		return true
	}
	h, log := s.l.table.serving(s.partition)
	if log == nil || h.isDead() {
		return false
	}
	s.conn = &conn{s: s, h: h, log: log, queue: make(chan []item, 100)}
	s.sent = 0
	s.l.spawn(func() { s.connected(ctx) })
	return true
}

func (s *stream) connected(ctx context.Context) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		c.run(ctx)
	}
}

// send publishes what the connection has not carried yet.
func (s *stream) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil || s.sent == len(s.queue) {
		return
	}
	frame := slices.Clone(s.queue[s.sent:])
	s.sent = len(s.queue)
	select {
	case s.conn.queue <- frame:
	default: // it is stuck; the time-out will find out
	}
}

// await waits for news, and gives up the connection, or the batches, when there
// are none for long.
func (s *stream) await(ctx context.Context) {
	if s.idle() {
		return
	}
	t := time.NewTimer(500*time.Millisecond + s.dice.UpTo(2*time.Second))
	defer t.Stop()
	select {
	case <-s.news:
	case <-ctx.Done():
	case <-t.C:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conn = nil
		if s.l.cfg.giveUps == 1 && time.Since(s.progress) > 3*time.Second {
			s.giveUp()
		}
	}
}

func (s *stream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent == 0 || len(s.queue) == 0
}

// giveUp fails everything that is not acked and goes on in a new epoch, from
// which on nothing of the old one can be stored. s.mu is held.
func (s *stream) giveUp() {
	s.l.count("give up")
	s.l.note("%s gives up %d batches from %v on", s.name, len(s.queue), s.queue[0].key)
	s.queue, s.sent, s.sequence = nil, 0, 0
	s.epoch++
	s.progress = time.Now()
}

// answer is news of a batch over a connection.
func (s *stream) answer(c *conn, k Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	i := slices.IndexFunc(s.queue, func(it item) bool { return it.key == k })
	switch {
	case i < 0:
		return
	case err == nil:
		s.queue[i].acked = true
		for len(s.queue) > 0 && s.queue[0].acked {
			s.queue, s.sent = s.queue[1:], s.sent-1
			s.progress = time.Now()
		}
	default:
		s.conn = nil
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// conn carries a stream's batches to one log, in order, and slowly. What it has
// on the way arrives even when the stream has given it up.
type conn struct {
	s     *stream
	h     *host
	log   *seglog.Log
	queue chan []item
}

func (c *conn) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.h.ctx.Done():
			return
		case frame := <-c.queue:
			if c.s.dice.Percent(20) && !pause(ctx, c.s.dice.UpTo(500*time.Millisecond)) {
				return
			}
			c.deliver(frame)
		case <-time.After(30 * time.Second):
			return // nobody uses it any more
		}
	}
}

// deliver does what a broker does with a frame.
func (c *conn) deliver(frame []item) {
	batches := make([]seglog.Batch, 0, len(frame))
	for _, it := range frame {
		ctx, cancel := context.WithTimeout(c.h.ctx, time.Second)
		err := c.h.shared.Reserve(ctx, int64(len(it.bytes)))
		cancel()
		if err != nil {
			c.s.l.count("refused: " + kindOf(err))
			c.s.answer(c, it.key, err)
			break
		}
		id := c.s.l.ledger.Attempt(it.key, c.h.name)
		batches = append(batches, seglog.Batch{ID: id, Partition: it.key.Partition, Bytes: slices.Clone(it.bytes)})
	}
	c.log.Append(batches, c)
}

// Acked passes answers on, unless they are lost or their process is dead.
func (c *conn) Acked(acks []seglog.Ack) {
	if c.h.isDead() {
		return
	}
	for _, a := range acks {
		k := c.s.l.ledger.Answer(c.h.name, a)
		switch {
		case a.Duplicate && a.Err == nil:
			c.s.l.count("acked: again")
		case a.Err == nil:
			c.s.l.count("acked")
		default:
			c.s.l.count("refused: " + kindOf(a.Err))
			c.s.l.note("%s: %s refuses %v: %v", c.s.name, c.h.name, k, a.Err)
			c.judge(k, a.Err)
		}
		if !c.s.dice.Percent(c.s.l.cfg.lost) || c.s.l.isHealed() {
			c.s.answer(c, k, a.Err)
		}
	}
}

// judge fails the life for errors that a client which keeps the rules is never
// told.
func (c *conn) judge(k Key, err error) {
	switch {
	case errors.Is(err, smq.ErrDuplicate) && !c.s.settled(k):
		c.s.l.fail(Violated("P7", "%s does not know the offset of %v, which is not acked: %v", c.h.name, k, err))
	case errors.Is(err, smq.ErrCorrupt), errors.Is(err, smq.ErrInvalid), errors.Is(err, smq.ErrTooLarge):
		c.s.l.fail(Violated("answers", "%s refuses %v: %v", c.h.name, k, err))
	}
}

// settled reports whether the stream does not wait for the batch any more.
func (s *stream) settled(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.queue, func(it item) bool { return it.key == k })
}
