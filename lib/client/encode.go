package client

import (
	"context"
	"runtime"

	"github.com/seaweedmq/smq/lib/record"
)

const (
	// maxEncoders bounds the goroutines that compress a publisher's batches
	// besides those that send them.
	maxEncoders = 8
	// spares bounds the builders and token lists kept for later.
	spares = 64
)

// encoders turn messages into batches ahead of sending, where that is much
// work: off the goroutines that publish, several at a time.
type encoders struct {
	queue        []*batch
	running      int
	spareBuilder []*record.Builder
	spareTokens  [][]uint64
}

func (e *encoders) builder(codec record.Codec) *record.Builder {
	if n := len(e.spareBuilder); n > 0 {
		b := e.spareBuilder[n-1]
		e.spareBuilder = e.spareBuilder[:n-1]
		return b
	}
	return record.NewBuilder(codec)
}

// tokens is an empty list, possibly nil.
func (e *encoders) tokens() []uint64 {
	n := len(e.spareTokens)
	if n == 0 {
		return nil
	}
	t := e.spareTokens[n-1]
	e.spareTokens = e.spareTokens[:n-1]
	return t
}

func (e *encoders) recycleTokens(t []uint64) {
	if cap(t) > 0 && len(e.spareTokens) < spares {
		e.spareTokens = append(e.spareTokens, t[:0])
	}
}

// recycle takes back the builder of a batch that needs it no more, unless
// somebody is encoding with it.
func (e *encoders) recycle(b *batch) {
	if b.builder == nil || b.phase == encoding {
		return
	}
	b.builder.Reset()
	if len(e.spareBuilder) < spares {
		e.spareBuilder = append(e.spareBuilder, b.builder)
	}
	b.builder = nil
}

// encodeAhead hands a closed batch to an encoder, if that is worth it. A sender
// that needs the batch first encodes it by itself.
func (p *Publisher) encodeAhead(b *batch) {
	if p.options.Codec == record.None {
		return
	}
	p.encoders.queue = append(p.encoders.queue, b)
	if p.encoders.running < min(maxEncoders, runtime.GOMAXPROCS(0)) && !p.stopped {
		p.encoders.running++
		p.spawn(p.encodeQueued)
	}
}

// encodeQueued is an encoder. It ends when there is nothing to do.
func (p *Publisher) encodeQueued(context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.encoders.queue) > 0 {
		b := p.encoders.queue[0]
		p.encoders.queue[0] = nil
		p.encoders.queue = p.encoders.queue[1:]
		if b.settled || b.phase != closed {
			continue
		}
		p.encode(b)
		p.schedule(b.part)
	}
	p.encoders.running--
}

// encode makes the bytes of a closed batch. It gives the lock up meanwhile.
func (p *Publisher) encode(b *batch) {
	b.phase = encoding
	builder, producer, epoch, seq := b.builder, b.producer, b.epoch, b.seq
	p.mu.Unlock()
	bytes, err := builder.Finish(nil, producer, epoch, seq)
	p.mu.Lock()
	b.phase = encoded
	p.encoders.recycle(b)
	switch {
	case b.settled: // given up meanwhile
	case err != nil:
		p.giveUp(b.part, b.part.index(b), err)
	default:
		b.keep(bytes, epoch, seq)
		p.recharge(b)
	}
}

// recharge counts the batch by what it takes now that it is encoded.
func (p *Publisher) recharge(b *batch) {
	now := batchOverhead + int64(len(b.bytes)) + 8*int64(len(b.tokens))
	if less := b.charged - now; less > 0 {
		b.charged = now
		p.charge(-less)
	}
}
