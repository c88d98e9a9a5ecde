package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// frameBytes and frameBatches are where a frame counts as full.
	frameBytes   = 1 << 20
	frameBatches = 8192
	// openTimeout bounds the opening of a stream.
	openTimeout = 5 * time.Second
)

// link is a publisher's stream to a broker. The publisher's lock guards it.
type link struct {
	addr     string
	wake     chan struct{} // something is ready, or the link is to end
	ready    []*partition  // that have something to send; those with another ready link have gone
	inflight map[uint64]attempt
	healthy  bool // the broker has answered
	retired  bool // the broker owns nothing any more; the link ends once all is answered
}

// attempt is a batch sent once.
type attempt struct {
	id    uint64 // rises with every attempt of the publisher
	batch *batch
	route *route
	at    time.Duration // when, at the earliest
}

// current reports whether no later attempt at the batch has been made.
func (a attempt) current() bool { return a.batch.attempt == a.id }

// link is the stream to a broker, which it opens if there is none.
func (p *Publisher) link(addr string) *link {
	l := p.links[addr]
	if l == nil {
		l = &link{addr: addr, wake: make(chan struct{}, 1), inflight: make(map[uint64]attempt)}
		p.links[addr] = l
		p.spawn(func(ctx context.Context) { p.serve(ctx, l) })
	}
	return l
}

// enqueue makes the link's sender look at t, which is in no such list.
func (l *link) enqueue(t *partition) {
	t.ready = l
	l.ready = append(l.ready, t)
	l.retired = false
	l.poke()
}

func (l *link) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// dequeue is the first partition that is ready, or nil.
func (l *link) dequeue() *partition {
	for len(l.ready) > 0 {
		t := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		if t.ready == l {
			t.ready = nil
			return t
		}
	}
	l.ready = nil
	return nil
}

// retire lets a link end that is of no use any more.
func (p *Publisher) retire(l *link) {
	if l.retired = !p.router.serves(l.addr); l.retired {
		l.poke()
	}
}

// serve is the link's goroutine: it opens the stream and sends.
func (p *Publisher) serve(ctx context.Context, l *link) {
	streams := p.metrics.streams.WithLabelValues(streamPublish)
	streams.Inc()
	defer streams.Dec()
	defer p.client.conns.OnQuiet(l.addr, func() { p.suspect(l) })()
	err := p.exchange(ctx, l)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.linkEnded(l, err)
}

// suspect looks out for others to send to, because a link's broker is quiet. What
// it has not answered is sent to them once the layout names them, see moved; its
// answers count as before if they come after all.
func (p *Publisher) suspect(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links[l.addr] == l && !p.stopped {
		p.router.suspect(l.addr)
	}
}

// exchange sends and receives until the stream breaks, which gives an error,
// or is no longer needed.
func (p *Publisher) exchange(ctx context.Context, l *link) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.openStream(ctx, cancel, l.addr)
	if err != nil {
		return err
	}
	received := make(chan error, 1)
	go func() {
		received <- p.receive(l, stream)
		cancel()
	}()
	if err = p.send(ctx, l, stream); err != nil && !errors.Is(err, io.EOF) {
		cancel()
		<-received
		return err
	}
	if err == nil && ctx.Err() == nil {
		cancel() // retired: all has been answered
		<-received
		return nil
	}
	return <-received
}

// openStream opens a stream and says hello.
func (p *Publisher) openStream(ctx context.Context, cancel context.CancelFunc, addr string) (*rpc.PublishClient, error) {
	timer := time.AfterFunc(openTimeout, cancel)
	defer timer.Stop()
	stream, err := p.openPublish(ctx, addr)
	if err == nil {
		hello := &smqpb.PublishHello{Topic: p.topic.GetTopic(), TopicId: p.topic.GetTopicId(), Acks: smqpb.AckLevel(p.options.Acks)}
		err = stream.Send(&smqpb.PublishHead{Hello: hello})
		if errors.Is(err, io.EOF) {
			err = stream.Recv(&smqpb.PublishAcks{}) // tells why
		}
	}
	if err != nil {
		return nil, fmt.Errorf("publish to broker %s: %w", addr, err)
	}
	return stream, nil
}

func (p *Publisher) openPublish(ctx context.Context, addr string) (*rpc.PublishClient, error) {
	conn, err := p.client.cluster.Conn(addr)
	if err != nil {
		return nil, err
	}
	return rpc.OpenPublish(ctx, conn)
}

// send sends frames until the stream breaks, ctx ends or the link is retired.
func (p *Publisher) send(ctx context.Context, l *link, stream *rpc.PublishClient) error {
	var f frame
	for {
		retired := p.fill(&f, l)
		if len(f.payload) > 0 {
			if err := stream.Send(&f.head, f.payload...); err != nil {
				return err
			}
			p.metrics.sentBatches.Add(float64(len(f.payload)))
			p.metrics.sentBytes.Add(float64(f.bytes))
			continue
		}
		if retired {
			return nil
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// receive takes in acks until the stream ends, and tells why it did.
func (p *Publisher) receive(l *link, stream *rpc.PublishClient) error {
	var acks smqpb.PublishAcks
	for {
		if err := stream.Recv(&acks); errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: broker %s ended the stream", smq.ErrUnavailable, l.addr)
		} else if err != nil {
			return fmt.Errorf("publish to broker %s: %w", l.addr, err)
		}
		p.acked(l, &acks)
	}
}

// frame is a frame to send; its memory is used again for the next.
type frame struct {
	head    smqpb.PublishHead
	batches []smqpb.PublishBatch
	payload [][]byte
	bytes   int
}

func (f *frame) reset() {
	clear(f.payload)
	f.payload = f.payload[:0]
	f.head.Batches = f.head.Batches[:0]
	f.bytes = 0
}

func (f *frame) full() bool { return f.bytes >= frameBytes || len(f.payload) >= frameBatches }

func (f *frame) add(id uint64, b *batch, segment uint64) {
	n := len(f.payload)
	if n == len(f.batches) {
		// A new array: the head points into the present one until it is sent.
		f.batches = make([]smqpb.PublishBatch, max(64, 2*n))
	}
	entry := &f.batches[n]
	entry.Id, entry.Segment, entry.Partition, entry.Size = id, segment, b.part.id, uint32(len(b.bytes))
	f.head.Batches = append(f.head.Batches, entry)
	f.payload = append(f.payload, b.bytes)
	f.bytes += len(b.bytes)
}

// fill gathers what is ready to be sent on the link, from one partition after
// the other. It reports whether the link may end.
func (p *Publisher) fill(f *frame, l *link) (retired bool) {
	f.reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for !f.full() {
		t := l.dequeue()
		if t == nil {
			break
		}
		if !p.leads(l, t) {
			p.schedule(t)
			continue
		}
		b := p.take(t)
		if b == nil || !p.leads(l, t) {
			p.schedule(t)
			continue
		}
		if f.bytes > 0 && f.bytes+len(b.bytes) > frameBytes+frameBytes/4 {
			l.ready = append(l.ready, t) // into the next frame
			t.ready = l
			break
		}
		p.sending(l, f, b, now)
		p.schedule(t)
	}
	return l.retired && len(f.payload) == 0 && len(l.inflight) == 0
}

// leads reports whether the link is the way to a partition now.
func (p *Publisher) leads(l *link, t *partition) bool {
	rt := p.router.find(t.id)
	return rt.addr == l.addr && p.router.open(rt)
}

// take is the partition's next batch, encoded; nil if there is none any more:
// the lock is given up in order to encode.
func (p *Publisher) take(t *partition) *batch {
	if t.gapped && t.sent == 0 {
		t.restart()
	}
	b := t.next()
	if b == nil {
		return nil
	}
	if b.phase == building {
		p.close(t)
	}
	if b.phase == encoded {
		return b
	}
	p.encode(b)
	if t.next() != b {
		return nil
	}
	return b
}

// sending notes that the batch, its partition's next, goes out in the frame.
func (p *Publisher) sending(l *link, f *frame, b *batch, now time.Duration) {
	rt := p.router.find(b.part.id)
	p.attempts++
	id := p.attempts
	if b.tries > 0 {
		p.metrics.resent.Inc()
	}
	b.attempt = id
	b.tries++
	b.furthest = max(b.furthest, rt.segment)
	b.part.sent++
	b.part.used = true
	l.inflight[id] = attempt{id: id, batch: b, route: rt, at: now}
	f.add(id, b, rt.segment)
}

// linkEnded gives what the broker has not answered to another link. What
// becomes of it there is unknown: it counts as tried and not refused.
func (p *Publisher) linkEnded(l *link, err error) {
	if p.links[l.addr] == l {
		delete(p.links, l.addr)
	}
	if p.stopped {
		return
	}
	if err != nil {
		p.logger.Debug("the stream to a broker broke", "address", l.addr, "unanswered", len(l.inflight), "error", err)
	}
	for id, a := range l.inflight {
		if b := a.batch; !b.settled && b.attempt == id {
			b.part.recall()
			p.strayed(l, b.part, err)
		}
	}
	for t := l.dequeue(); t != nil; t = l.dequeue() {
		p.strayed(l, t, err)
	}
}

// strayed sends a partition on its way whose link is gone. A broker that has
// answered before gets another chance at once, lest a mere disconnection wait
// for the leader; one that has not is asked about first.
func (p *Publisher) strayed(l *link, t *partition, err error) {
	if rt := p.router.find(t.id); err != nil && rt.addr == l.addr {
		if l.healthy {
			p.router.doubt(rt, err)
		} else {
			p.router.block(rt, err)
		}
	}
	p.schedule(t)
}
