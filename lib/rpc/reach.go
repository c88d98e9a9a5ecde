package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// gRPC waits longer and longer between two attempts to reach a peer, and calls
// meanwhile fail for what the last one has found. A peer that is started anew at its
// old address would be given up for dead until the wait is over, while everybody
// else knows that it is back. So a call makes a new attempt at once and
// waits for that.

const (
	// freshFor is for how long what an attempt has found is as good as a new one.
	freshFor = 20 * time.Millisecond
	// answersWithin is how long calls wait for an attempt since it has begun. A peer
	// that is there takes less; where nobody answers, calls had better fail.
	answersWithin = 250 * time.Millisecond
)

// dials are the attempts to connect to a peer, one after the other.
type dials struct {
	mu      sync.Mutex
	begun   time.Time       // when the present one began, or the last one
	failed  time.Time       // when one has failed last; zero: none has
	failing context.Context // ends when one fails from now on
	fail    context.CancelFunc
}

func newDials() *dials {
	d := &dials{}
	d.failing, d.fail = context.WithCancel(context.Background())
	return d
}

func (d *dials) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = time.Now()
}

// end takes note that an attempt has failed, or that a connection has ended.
func (d *dials) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail()
	d.failed = time.Now()
	d.failing, d.fail = context.WithCancel(context.Background())
}

// next is for how long a new attempt is worth waiting for, and a context that ends
// when one has failed. fresh: the last one has failed just now.
func (d *dials) next() (wait time.Duration, failing context.Context, fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	wait = answersWithin
	if d.begun.After(d.failed) { // it is under way
		wait -= now.Sub(d.begun)
	}
	return wait, d.failing, now.Sub(d.failed) < freshFor
}

// reach has a peer that was out of reach at the last attempt tried again, and waits
// until that has succeeded or failed, but not for long.
func (w *watcher) reach(ctx context.Context, conn *grpc.ClientConn) {
	if conn.GetState() != connectivity.TransientFailure {
		return
	}
	wait, failing, fresh := w.dials.next()
	if fresh || wait <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(failing, cancel)()
	conn.ResetConnectBackoff()
	conn.WaitForStateChange(ctx, connectivity.TransientFailure)
}
