package dir

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// change is one call that changes the store, from its first check to its
// outcome.
type change struct {
	s        *Store
	op, path string
	state    atomic.Int32
}

// The states of a change. It goes from pending either to visible, just before
// the system call that everybody can see the effect of, or to abandoned, when
// the caller leaves earlier; whichever is first decides.
const (
	pending int32 = iota
	visible
	abandoned
)

// change begins a call. Once it succeeds either finish or cancel must follow.
func (s *Store) change(ctx context.Context, op, path string) (*change, error) {
	if err := s.enter(ctx, op, path); err != nil {
		return nil, err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s %s: not begun, too many others are: %w", op, path, ctx.Err())
	}
	c := &change{s: s, op: op, path: path}
	if err := s.prepare(); err != nil {
		return nil, c.cancel(err)
	}
	return c, nil
}

// cancel ends a change that has had no effect, and says why.
func (c *change) cancel(err error) error {
	<-c.s.slots
	return c.fail(err)
}

// finish runs the part of a change that waits for the disk, on a goroutine that
// the caller may leave behind when its context ends. commit must use nothing of
// the caller's, and must call begin before it does what others can see.
func (c *change) finish(ctx context.Context, commit func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() { <-c.s.slots }()
		done <- commit()
	}()
	select {
	case err := <-done:
		return c.fail(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done: // just in time
		return c.fail(err)
	default:
	}
	if c.state.CompareAndSwap(pending, abandoned) {
		return fmt.Errorf("%s %s: not done: %w", c.op, c.path, ctx.Err())
	}
	return fmt.Errorf("%s %s: %w: not finished: %w", c.op, c.path, store.ErrAmbiguous, ctx.Err())
}

// errAbandoned ends a commit whose caller has left. Nobody reads it.
var errAbandoned = errors.New("abandoned")

// begin is the point of no return: it fails if the caller has left, and if it
// succeeds the caller is told from now on that the outcome is unknown.
func (c *change) begin() error {
	if !c.state.CompareAndSwap(pending, visible) {
		return errAbandoned
	}
	return nil
}

// fail words an error, and gives a full disk its kind.
func (c *change) fail(err error) error {
	switch {
	case err == nil:
		return nil
	case noSpace(err) && !errors.Is(err, store.ErrAmbiguous):
		return fmt.Errorf("%s %s: %w: %w", c.op, c.path, smq.ErrNoSpace, err)
	default:
		return fmt.Errorf("%s %s: %w", c.op, c.path, err)
	}
}

// unknown words the failure of a step after which the change may, or may not,
// be there, now or after a power cut.
func unknown(err error) error {
	return fmt.Errorf("%w: %w", store.ErrAmbiguous, err)
}
