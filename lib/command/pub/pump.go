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
	tee    io.Writer // gets all that is read; nil: nobody does
	pace   *pace     // nil: no limit
	warn   func(format string, args ...any)

	read atomic.Int64 // bytes of input so far
	next uint64       // token of the next message
}

// run publishes what is in the inputs, until they end, stop ends, or something
// fails. ctx limits the publishing itself. The error is what is wrong with the
// input or a message of it; the tally knows what became of the messages.
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
	p.source.reset(newFeed(reader, reading.Done(), &p.read))
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
	for number = 1; ; number++ {
		if closed(p.tally.enough) {
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
		p.pace.wait(reading, &m)
		p.tally.sending(&m)
		if err := p.to.Publish(ctx, &m); err != nil {
			p.tally.refused(&m, err)
			if p.tally.keeps() && ctx.Err() == nil {
				continue
			}
			return number, refusedError{err}
		}
	}
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

// wait waits until the message may go, or ctx ends: a message that was read is
// published even then.
func (p *pace) wait(ctx context.Context, m *client.Message) {
	if p == nil {
		return
	}
	left := 1
	if p.bytes {
		left = len(m.Key) + len(m.Value)
	}
	for left > 0 {
		n := min(left, p.limiter.Burst())
		if p.limiter.WaitN(ctx, n) != nil {
			return
		}
		left -= n
	}
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
