// Package background runs what a service does in its own name: goroutines that
// live as long as the service, and tasks that several requests share and none
// of them may cut short.
package background

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/seaweedmq/smq/lib/smq"
)

// ErrStopped is what a group that has stopped says; it runs nothing more.
var ErrStopped = errors.New("stopped")

// Group is the tasks of one service. Make it with New.
type Group struct {
	flights singleflight.Group
	run     func(f func(ctx context.Context) error) error
	stop    func()
}

// New makes a group without tasks.
func New() *Group {
	ctx, cancel := context.WithCancel(context.Background())
	var (
		mu      sync.Mutex
		tasks   sync.WaitGroup
		stopped bool
	)
	enter := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			tasks.Add(1)
		}
		return !stopped
	}
	return &Group{
		run: func(f func(ctx context.Context) error) error {
			if !enter() {
				return ErrStopped
			}
			defer tasks.Done()
			return f(ctx)
		},
		stop: func() {
			mu.Lock()
			stopped = true
			mu.Unlock()
			cancel()
			tasks.Wait()
		},
	}
}

// Stop ends the context of every task and waits for all of them. It may be
// called again, but not by a task.
func (g *Group) Stop() { g.stop() }

// Run runs f with a context that ends when the group stops. ErrStopped, without
// running it, when it has.
func (g *Group) Run(f func(ctx context.Context) error) error { return g.run(f) }

// Go runs f in a goroutine of its own, as Run does.
func (g *Group) Go(f func(ctx context.Context)) {
	go func() {
		// The only error is that the group has stopped before.
		_ = g.run(func(ctx context.Context) error { f(ctx); return nil })
	}()
}

// Once runs f as Run does, one at a time for each key, for up to the given time:
// calls that come while it runs share its outcome. When ctx ends first, f goes
// on and the call returns an smq.ErrTimeout that wraps ctx's error.
func (g *Group) Once(ctx context.Context, key string, limit time.Duration, f func(ctx context.Context) error) error {
	outcome := g.flights.DoChan(key, func() (any, error) {
		return nil, g.run(func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return f(ctx)
		})
	})
	select {
	case r := <-outcome:
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", smq.ErrTimeout, ctx.Err())
	}
}

// Wait returns nil after d, or ctx's error when it ends before.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
