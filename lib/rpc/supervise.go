package rpc

import (
	"context"
	"time"
)

// How long a call to the leading broker goes on before the masters are asked
// whether it still leads, at first and later.
const (
	suspectAfter = 500 * time.Millisecond
	suspectEvery = 2 * time.Second
)

// supervise is a context for a call to the leading broker at addr, which ends with
// a NotLeaderError as its cause once the masters name another one: a broker that
// is paused or cut off does not say that it leads no more. stop must be called
// after the call.
func (c *Cluster) supervise(ctx context.Context, addr string) (supervised context.Context, stop func()) {
	supervised, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(suspectAfter)
		defer timer.Stop()
		for wait := suspectAfter; ; timer.Reset(wait) {
			select {
			case <-timer.C:
			case <-supervised.Done():
				return
			}
			wait = min(2*wait, suspectEvery)
			info, err := c.askMasters(supervised)
			if leader := info.GetLeader().GetAddress(); err == nil && leader != "" && leader != addr {
				cancel(&NotLeaderError{Address: leader})
				return
			}
		}
	}()
	return supervised, func() {
		cancel(nil)
		<-done
	}
}
