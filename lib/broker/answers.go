package broker

import (
	"context"
	"sync"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// answers are acks on their way to a publisher: logs put them in without
// waiting, one goroutine sends them. The stream bounds how many there can be.
type answers struct {
	wake chan struct{} // holds a token when there is something to look at

	mu       sync.Mutex
	acks     []seglog.Ack
	expected int  // batches received whose ack has not been put in
	ended    bool // no batches follow
	err      error
	gone     bool // nobody sends any more
}

func newAnswers() *answers { return &answers{wake: make(chan struct{}, 1)} }

// expect announces batches. It reports false when nobody sends acks any more.
func (a *answers) expect(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.gone {
		a.expected += n
	}
	return !a.gone
}

// Acked puts acks in.
func (a *answers) Acked(acks []seglog.Ack) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return
	}
	a.expected -= len(acks)
	a.acks = append(a.acks, acks...)
	a.poke()
}

// end says that no batches follow; err is why, nil when the publisher is done.
func (a *answers) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended, a.err = true, err
	a.poke()
}

func (a *answers) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// take returns the acks put in since, into the memory of last. done: there will
// be no more, and err is why.
func (a *answers) take(last []seglog.Ack) (acks []seglog.Ack, done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acks, a.acks = a.acks, last[:0]
	return acks, a.ended && (a.expected == 0 || a.err != nil), a.err
}

// abandon says that nobody sends any more, and returns how many answers were
// outstanding.
func (a *answers) abandon() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.expected + len(a.acks)
	a.gone, a.acks = true, nil
	return n
}

// answer sends acks as they come in, many in one frame when they come fast,
// until the publisher is done and all is answered, or the stream ends.
func (p *publishing) answer(ctx context.Context) error {
	var acks []seglog.Ack
	for {
		var done bool
		var err error
		acks, done, err = p.answers.take(acks)
		if len(acks) > 0 {
			if err := p.send(acks); err != nil {
				return err
			}
			continue
		}
		if done {
			return err
		}
		select {
		case <-p.answers.wake:
		case <-p.b.ending:
			return p.last(acks)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// last sends what acks there are, as the broker is leaving.
func (p *publishing) last(acks []seglog.Ack) error {
	if acks, _, _ = p.answers.take(acks); len(acks) > 0 {
		if err := p.send(acks); err != nil {
			return err
		}
	}
	return smq.ErrDraining
}

// send sends one frame of acks.
func (p *publishing) send(acks []seglog.Ack) error {
	values := make([]smqpb.PublishAck, len(acks))
	frame := &smqpb.PublishAcks{Acks: make([]*smqpb.PublishAck, len(acks))}
	accepted := 0
	for i := range acks {
		fill(&values[i], &acks[i])
		frame.Acks[i] = &values[i]
		if acks[i].Err == nil {
			accepted++
		} else {
			p.b.metrics.refused.WithLabelValues(values[i].Error.GetCode()).Inc()
		}
	}
	p.b.metrics.acked.Add(float64(accepted))
	err := p.stream.Send(frame)
	p.b.metrics.unacked.Sub(float64(len(acks)))
	p.unacked.Release(int64(len(acks)))
	return err
}

// fill is a log's ack in the form of the wire.
func fill(out *smqpb.PublishAck, in *seglog.Ack) {
	out.Id = in.ID
	if in.Err != nil {
		out.BaseOffset, out.Error = -1, rpc.ErrorInfo(in.Err)
		return
	}
	out.BaseOffset, out.Level, out.Duplicate = in.BaseOffset, smqpb.AckLevel_STORED, in.Duplicate
	if in.Level == seglog.Replicated {
		out.Level = smqpb.AckLevel_REPLICATED
	}
}
