package pub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
)

// publisher is the part of client.Publisher that is used here.
type publisher interface {
	Publish(ctx context.Context, m *client.Message) error
	Close(ctx context.Context) error
}

// pump moves messages from inputs to a publisher.
type pump struct {
	source source
	to     publisher
	tally  *tally
	tee    io.Writer     // gets all that is read; nil: nobody does
	pace   *pace         // nil: no limit
	drain  time.Duration // how long what was read is sent at its pace once the reading was stopped
	warn   func(format string, args ...any)

	read  atomic.Int64 // bytes of input so far
	next  uint64       // token of the next message
	feed  *feed        // of the present input
	until time.Time    // when the time to drain is over; zero while the reading goes on
}

// run publishes what is in the inputs, until they end, stop ends, or something
// fails. ctx limits the publishing itself, and ends only after stop. The error is
// what is wrong with the input or a message of it; the tally knows what became of
// the messages, also of those that were read when stop ended and were not sent in
// the time that was left.
func (p *pump) run(ctx, stop context.Context, inputs []input) error {
	reading, enough := context.WithCancel(stop)
	defer enough()
	go func() {
		select {
		case <-p.tally.enough:
			enough()
		case <-reading.Done():
		}
	}()
	for _, in := range inputs {
		if err := p.runInput(ctx, reading, in); err != nil {
			if errors.Is(err, errStopped) {
				return nil
			}
			return err
		}
	}
	return nil
}

func (p *pump) runInput(ctx, reading context.Context, in input) error {
	file, err := in.open()
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", in.name, reason(err))
	}
	defer file.Close() // only read
	reader := io.Reader(file)
	if p.tee != nil {
		reader = io.TeeReader(reader, p.tee)
	}
	p.feed = newFeed(reader, reading.Done(), &p.read)
	p.source.reset(p.feed)
	number, err := p.messages(ctx, reading, in.name)
	switch {
	case err == nil, errors.Is(err, errStopped):
		return err
	case errors.As(err, new(refusedError)):
		return fmt.Errorf("%s, message %d: %w", in.name, number, err)
	}
	// What is wrong with the input's text is not what is wrong with the call.
	return cli.Exit(cli.ExitFailed, fmt.Errorf("cannot read %s, message %d: %w", in.name, number, reason(err)))
}

// messages publishes one input. It returns the number, from 1, of the message
// that the error is about.
func (p *pump) messages(ctx, reading context.Context, name string) (number int, err error) {
	var m client.Message
	over := false // there is no more time; what is left is counted, and not sent
	for number = 1; ; number++ {
		if !over && closed(p.tally.enough) {
			return number, errStopped
		}
		err := p.source.next(&m)
		switch {
		case err == io.EOF:
			return number, nil
		case err != nil && p.tally.keeps() && errors.As(err, new(badMessage)):
			p.leaveOut(name, number, err)
			continue
		case err != nil:
			return number, err
		}
		m.Token = p.next
		p.next++
		if !over && !p.mayGo(ctx, reading, &m) {
			if closed(p.tally.enough) {
				return number, errStopped
			}
			over = true
		}
		p.tally.sending(&m)
		if !over {
			err = p.to.Publish(ctx, &m)
			over = err != nil && ctx.Err() != nil
		}
		switch {
		case over:
			p.tally.notSent(&m)
		case err != nil:
			p.tally.refused(&m, err)
			if !p.tally.keeps() {
				return number, refusedError{err}
			}
		}
	}
}

// mayGo waits until a message may be sent, and reports whether it may. What was
// read when the reading was stopped keeps its pace, for as long as there is time:
// a burst is what --rate is there to prevent.
func (p *pump) mayGo(ctx, reading context.Context, m *client.Message) bool {
	left := p.pace.wait(reading, p.pace.cost(m))
	if left == 0 || closed(p.tally.enough) {
		return left == 0
	}
	if p.until.IsZero() {
		p.until = time.Now().Add(p.drain)
	}
	draining, cancel := context.WithDeadline(ctx, p.until)
	defer cancel()
	return p.pace.wait(draining, left) == 0
}

// maxWarnings is how many messages that are left out are told of one by one.
const maxWarnings = 10

// leaveOut passes over a message that cannot be read.
func (p *pump) leaveOut(name string, number int, err error) {
	p.next++ // it has a number, as others have
	n := p.tally.unreadable(fmt.Errorf("%s, message %d: %w", name, number, err))
	switch {
	case n < maxWarnings:
		p.warn("%s, message %d is left out: %v", name, number, err)
	case n == maxWarnings:
		p.warn("%s, message %d is left out, and more may be: %v", name, number, err)
	}
}

// refusedError is why the publisher did not take a message.
type refusedError struct{ err error }

func (e refusedError) Error() string { return e.err.Error() }
func (e refusedError) Unwrap() error { return e.err }

// cost is what a message counts against the limit.
func (p *pace) cost(m *client.Message) int {
	switch {
	case p == nil:
		return 0
	case p.bytes:
		return len(m.Key) + len(m.Value)
	}
	return 1
}

// wait waits until something of the given cost may go, or ctx ends, or will have
// ended by then. It returns what of the cost is still to be waited for; 0: it may go.
func (p *pace) wait(ctx context.Context, cost int) (left int) {
	for cost > 0 {
		n := min(cost, p.limiter.Burst())
		if p.limiter.WaitN(ctx, n) != nil {
			break
		}
		cost -= n
	}
	return cost
}

// newLimiter allows for a hundredth of a second's worth at once.
func newLimiter(perSecond float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/100)))
}

// graceful derives the context of publishing from the one that signals end: it
// goes on for some more time, to flush what was read.
func graceful(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	going, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})
	return going, func() { stop(); cancel(nil) }
}
