package client

import (
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// schedule sees to it that the partition's next batch is sent: at once, or when
// the route to its owner opens. The lock is held, as in all of these.
func (p *Publisher) schedule(t *partition) {
	if t.ready != nil || t.parked || p.stopped || t.next() == nil {
		return
	}
	rt := p.router.find(t.id)
	if !p.router.open(rt) {
		t.parked = true
		p.router.park(rt, t.id)
		return
	}
	p.link(rt.addr).enqueue(t)
}

// resume lets a parked partition go on.
func (p *Publisher) resume(partition int32) {
	t := p.parts.get(partition)
	t.parked = false
	p.schedule(t)
}

// moved sends what the broker of a route that is no more has not acked to
// whoever owns the partitions now.
func (p *Publisher) moved(rt *route) {
	p.parts.each(rt.lo, rt.hi, func(t *partition) {
		t.recall()
		t.ready = nil
		p.schedule(t)
	})
	for _, l := range p.links {
		p.retire(l)
	}
}

// giveUp fails the partition's batches from the i-th of the queue on, and the
// open one. What is published from now on starts anew in a higher epoch.
func (p *Publisher) giveUp(t *partition, i int, cause error) {
	lost := t.queue[i:]
	t.queue = t.queue[:i:i]
	t.sent = min(t.sent, i)
	for _, b := range lost {
		p.settle(b, Results{BaseOffset: -1, Err: b.failure(cause)})
	}
	if b := t.open; b != nil {
		t.open = nil
		p.settle(b, Results{BaseOffset: -1, Err: b.failure(cause)})
	}
	t.raise()
}

// settle ends a batch, which is in no queue any more, with its outcome.
func (p *Publisher) settle(b *batch, outcome Results) {
	b.settled = true
	b.outcome = outcome
	b.bytes = nil
	p.encoders.recycle(b)
	p.live.remove(b)
	p.lingering.remove(b)
	p.pushResult(result{batch: b})
	p.checkFlushes()
}

// fail ends the publisher: everything fails, and so will Publish.
func (p *Publisher) fail(cause error) {
	if p.err != nil {
		return
	}
	p.err = cause
	p.parts.each(0, p.topic.GetPartitions(), func(t *partition) {
		p.giveUp(t, 0, cause)
		t.ready = nil
	})
	p.wakeBlocked()
}

// expired is the cause for a batch whose delivery timeout has passed.
func (p *Publisher) expired(t *partition) error {
	err := fmt.Errorf("%w: not delivered within %v", smq.ErrTimeout, p.options.DeliveryTimeout)
	if why := p.obstacle(t); why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// obstacle is why the partition's batches have no answer yet, as far as is known.
func (p *Publisher) obstacle(t *partition) error {
	rt := p.router.find(t.id)
	switch {
	case t.trouble != nil: // that says more than a later silence
		return t.trouble
	case rt.lastErr != nil:
		return rt.lastErr
	case rt.addr != "":
		return fmt.Errorf("broker %s gives no answer", rt.addr)
	}
	return nil
}

// tick does what is due: the publisher's only timer calls it.
func (p *Publisher) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alarm.rang() {
		return
	}
	now := p.now()
	for b := p.lingering.head; b != nil && b.opened+p.options.Linger <= now; b = p.lingering.head {
		p.makeDue(b)
	}
	if b := p.live.head; b != nil {
		since := max(b.opened+max(p.options.Linger, 0), p.lastAck)
		p.alarm.set(p.acks.lasts(p.logger, now, since, p.obstacle(b.part)))
	}
	p.expire(now)
	if next := p.router.tick(now); next != 0 {
		p.alarm.set(next)
	}
	if b := p.lingering.head; b != nil {
		p.alarm.set(b.opened + p.options.Linger)
	}
	if b := p.live.head; b != nil && p.options.DeliveryTimeout > 0 {
		p.alarm.set(b.opened + p.options.DeliveryTimeout)
	}
}

// expire gives up batches whose delivery timeout has passed.
func (p *Publisher) expire(now time.Duration) {
	timeout := p.options.DeliveryTimeout
	var last error
	for b := p.live.head; timeout > 0 && b != nil && b.opened+timeout <= now; b = p.live.head {
		last = p.expired(b.part)
		p.giveUp(b.part, b.part.index(b), last)
	}
	if last != nil {
		p.logger.Debug("messages were not delivered in time", "error", last) // each message has its result
	}
}
