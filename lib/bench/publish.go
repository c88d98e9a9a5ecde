package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/client"
)

// Publisher is what a producer publishes with; a *client.Publisher is one.
type Publisher interface {
	Publish(ctx context.Context, m *client.Message) error
	Close(ctx context.Context) error
}

// Open makes a publisher whose results go to told.
type Open func(told func(client.Results)) (Publisher, error)

// Run is a run that publishes.
type Run struct {
	options   Options
	id        uint64
	began     time.Time
	producers []*producer
	acked     atomic.Int64 // messages, those of the warm-up too
	windows   *windows
}

// NewRun prepares a run: its producers' publishers are made. The id tells its
// messages from those of others; those who receive them need it.
func NewRun(o Options, id uint64, open Open) (*Run, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Run{options: o, id: id, windows: newWindows()}
	for k := range o.Producers {
		p := &producer{run: r, schedule: o.schedule(k), acks: newLatencies()}
		if o.InFlight > 0 {
			p.slots = make(chan struct{}, o.InFlight)
		}
		var err error
		if p.publisher, err = open(p.told); err != nil {
			r.abandon()
			return nil, err
		}
		r.producers = append(r.producers, p)
	}
	return r, nil
}

// abandon ends publishers that have published nothing.
func (r *Run) abandon() {
	for _, p := range r.producers {
		_ = p.publisher.Close(context.Background()) // nothing is under way
	}
}

// Acked is how many messages are acked so far, with those of the warm-up.
func (r *Run) Acked() int64 { return r.acked.Load() }

// During tells how long the acks took of the messages that were due, or offered,
// in the seconds from one time to another; longer windows of time than seconds in
// runs of more than ten minutes. What is not counted is not in it.
func (r *Run) During(from, to time.Time) Latency {
	return r.windows.during(from.Sub(r.began), to.Sub(r.began))
}

// Stages tells, for each stage, how long the acks took of what was due in it, to
// the second: what was due in the second in which a stage ends counts for it.
func (r *Run) Stages() []Latency {
	var out []Latency
	for _, s := range r.options.schedule(0).stages {
		end := s.end
		if end == 0 {
			end = math.MaxInt64
		}
		out = append(out, r.windows.beginning(s.begin, end))
	}
	return out
}

// Began is when publishing began.
func (r *Run) Began() time.Time { return r.began }

// since is the time since the start.
func (r *Run) since() time.Duration { return time.Since(r.began) }

// Publish publishes until the end, or until ctx ends, and then waits for the
// acks. The error is why it could not be done; messages that failed are none.
func (r *Run) Publish(ctx context.Context) (Result, error) {
	r.start()
	err := r.publish(ctx)
	return r.result(), err
}

func (r *Run) start() { r.began = time.Now() }

func (r *Run) publish(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range r.producers {
		group.Go(func() error { return p.work(ctx) })
	}
	return group.Wait()
}

// result sums the producers up.
func (r *Run) result() Result {
	var out Result
	var acks []*latencies
	var last time.Duration
	for _, p := range r.producers {
		p.acks.mu.Lock()
		out.Messages += p.counted.messages
		out.Stored += p.counted.stored
		out.Replicated += p.counted.replicated
		out.Failed += p.counted.failed
		if out.FirstErr == nil {
			out.FirstErr = p.counted.firstErr
		}
		last = max(last, p.counted.last)
		p.acks.mu.Unlock()
		out.Unsent += p.unsent
		acks = append(acks, p.acks)
	}
	out.Ack = summary(acks)
	out.Bytes = out.Messages * int64(r.options.Size)
	out.Elapsed = max(last-r.options.Warmup, 0)
	return out
}

// producer publishes one producer's part.
type producer struct {
	run       *Run
	schedule  schedule
	publisher Publisher
	slots     chan struct{} // as many as may be under way; nil: no limit

	unsent int64 // due messages that were given up; valid at the end

	acks    *latencies
	counted counted // guarded by the lock of acks
}

// counted is what has become of the messages that count.
type counted struct {
	messages           int64 // acked
	stored, replicated int64
	failed             int64
	firstErr           error
	last               time.Duration // when the last one was acked
}

// work publishes and waits for the acks.
func (p *producer) work(ctx context.Context) error {
	err := p.publish(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // whoever ended it knows
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.run.options.Settle)
	defer cancel()
	if closing := p.publisher.Close(settling); err == nil && closing != nil && settling.Err() == nil {
		err = closing
	}
	return err
}

// publish publishes until the end or until ctx ends.
func (p *producer) publish(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	m := client.Message{Value: filler(p.run.options.Size), Partition: client.AnyPartition}
	var counting int64
	for i := int64(0); ; i++ {
		at, open := p.schedule.due(i)
		if open && !p.schedule.over(at, counting) {
			if err := p.waitUntil(ctx, timer, at); err != nil {
				return err
			}
		}
		if !open {
			if err := p.slot(ctx); err != nil {
				return err
			}
			at = p.run.since()
		}
		if p.schedule.over(at, counting) {
			return nil
		}
		if open && p.late() {
			p.unsent = p.schedule.left(i)
			return nil
		}
		if p.schedule.counts(at) {
			counting++
		}
		stamp(m.Value, p.run.id, at)
		m.Token = uint64(at)
		if err := p.publisher.Publish(ctx, &m); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
}

// late reports whether the end lies so far back that what was due before it is
// given up.
func (p *producer) late() bool {
	return p.schedule.end > 0 && p.run.since() >= p.schedule.end+p.run.options.Settle
}

// waitUntil waits for a time since the start. What is due is not waited for.
func (p *producer) waitUntil(ctx context.Context, timer *time.Timer, at time.Duration) error {
	wait := at - p.run.since()
	if wait <= 0 {
		return ctx.Err()
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slot waits until one more message may be under way.
func (p *producer) slot(ctx context.Context) error {
	if p.slots == nil {
		return ctx.Err()
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// told takes in the fate of messages.
func (p *producer) told(r client.Results) {
	now := p.run.since()
	if r.Err == nil {
		p.run.acked.Add(int64(len(r.Tokens)))
	}
	p.count(r, now)
	if p.slots != nil {
		for range r.Tokens {
			<-p.slots
		}
	}
}

func (p *producer) count(r client.Results, now time.Duration) {
	p.acks.mu.Lock()
	defer p.acks.mu.Unlock()
	var n int64
	for _, token := range r.Tokens {
		at := time.Duration(token)
		if !p.schedule.counts(at) {
			continue
		}
		n++
		if r.Err == nil {
			p.acks.add(now - at)
			p.run.windows.add(at, now-at)
		}
	}
	switch {
	case n == 0:
		return
	case r.Err != nil:
		p.counted.failed += n
		if p.counted.firstErr == nil {
			p.counted.firstErr = r.Err
		}
		return
	case r.Level == client.AckReplicated:
		p.counted.replicated += n
	default:
		p.counted.stored += n
	}
	p.counted.messages += n
	p.counted.last = now
}
