package client

import (
	"context"
	"errors"
	"fmt"
)

// result is a batch whose outcome is to be told, or a flush that is done when
// everything before it has been told.
type result struct {
	batch   *batch
	flushed chan struct{}
}

// flush waits until the batches up to a number are settled.
type flush struct {
	number uint64
	done   chan struct{}
}

func (p *Publisher) pushResult(r result) {
	p.results = append(p.results, r)
	select {
	case p.told <- struct{}{}:
	default:
	}
}

// tell is the goroutine that tells results, in order, until the publisher has
// stopped and all are told.
func (p *Publisher) tell() {
	defer close(p.ended)
	var results []result
	for {
		p.mu.Lock()
		clear(results)
		results, p.results = p.results, results[:0]
		stopped := p.stopped
		p.mu.Unlock()
		p.tellAll(results)
		if len(results) > 0 {
			continue
		}
		if stopped {
			return
		}
		<-p.told
	}
}

// releaseAfter is how many batches are told before their memory is released at
// once: Publish, which may wait for it, need not be woken for each.
const releaseAfter = 64

// tellAll tells results and releases the memory of their batches.
func (p *Publisher) tellAll(results []result) {
	begun := 0
	for i, r := range results {
		if r.flushed != nil {
			p.release(results[begun:i])
			begun = i
			close(r.flushed)
			continue
		}
		p.tellBatch(r.batch)
		if i-begun >= releaseAfter {
			p.release(results[begun : i+1])
			begun = i + 1
		}
	}
	p.release(results[begun:])
}

func (p *Publisher) release(results []result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var charged, metered int64
	for _, r := range results {
		b := r.batch
		if b == nil {
			continue
		}
		if p.options.Results == nil && p.firstErr == nil {
			p.firstErr = b.outcome.Err
		}
		p.encoders.recycleTokens(b.tokens)
		charged += b.charged
		metered += b.metered
	}
	p.metrics.buffered.Sub(float64(metered))
	p.charge(-charged)
}

// tellBatch tells a batch's outcome.
func (p *Publisher) tellBatch(b *batch) {
	o := b.outcome
	o.Partition = b.part.id
	if o.Err != nil {
		p.countFailed(b, o.Err)
	}
	if told := p.options.Results; told != nil {
		if b.cut > 0 && o.Err == nil {
			front := o
			front.BaseOffset, front.Tokens = -1, b.tokens[:b.cut]
			told(front)
			o.Tokens = b.tokens[b.cut:]
		} else {
			o.Tokens = b.tokens
		}
		told(o)
	}
	for _, w := range b.waiters {
		w.told <- b.outcomeOf(w.index)
	}
}

// outcomeOf is what became of a batch's i-th message.
func (b *batch) outcomeOf(i int32) outcome {
	o := outcome{partition: b.part.id, offset: -1, err: b.outcome.Err}
	if o.err == nil && i >= b.cut {
		o.offset = b.outcome.BaseOffset + int64(i-b.cut)
	}
	return o
}

func (p *Publisher) countFailed(b *batch, err error) {
	label := outcomeNotStored
	if errors.Is(err, ErrUnknown) {
		label = outcomeUnknown
	}
	p.metrics.failed.WithLabelValues(label).Add(float64(b.count))
}

// Flush sends what lingers and waits until everything published before has been
// acked or has failed, and Results has been told. It returns ctx's error if
// that ends first; else nil, or without Results the first failure since the
// last Flush.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	p.allDue()
	done := make(chan struct{})
	p.flushes = append(p.flushes, flush{p.batches, done})
	p.checkFlushes()
	p.mu.Unlock()
	select {
	case <-done:
	case <-p.ended:
	case <-ctx.Done():
		return fmt.Errorf("flush: %w", ctx.Err())
	}
	return p.takeFirstErr()
}

func (p *Publisher) takeFirstErr() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.firstErr
	p.firstErr = nil
	return err
}

// checkFlushes lets the flushes go on whose batches are all settled.
func (p *Publisher) checkFlushes() {
	waiting := p.flushes[:0]
	for _, f := range p.flushes {
		if p.live.head != nil && p.live.head.number <= f.number {
			waiting = append(waiting, f)
			continue
		}
		p.pushResult(result{flushed: f.done})
	}
	p.flushes = waiting
}

// Close waits as Flush does, and ends the publisher. If ctx ends first, what is
// left fails at once, Results is told so, and the error is ctx's. A second call
// waits for the first.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closing
	p.closing = true
	p.wakeBlocked()
	p.mu.Unlock()
	if !first {
		select {
		case <-p.ended:
			return p.takeFirstErr()
		case <-ctx.Done():
			return fmt.Errorf("close: %w", ctx.Err())
		}
	}
	err := p.Flush(ctx)
	// What the flush has not waited for fails; that is nothing if it succeeded.
	p.stop(fmt.Errorf("publisher %w before the ack came: %w", ErrClosed, errOr(ctx.Err(), ErrClosed)))
	p.client.forget(p)
	return err
}

func errOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// abort ends the publisher without waiting for acks. What is left fails.
func (p *Publisher) abort(cause error) {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.stop(cause)
}

// stop fails what is left and ends every goroutine. It returns when all have
// ended.
func (p *Publisher) stop(cause error) {
	p.mu.Lock()
	p.fail(cause)
	p.stopped = true
	p.alarm.stop()
	p.mu.Unlock()
	p.cancel()
	p.running.Wait()
	select {
	case p.told <- struct{}{}:
	default:
	}
	<-p.ended
}
