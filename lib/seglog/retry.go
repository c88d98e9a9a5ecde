package seglog

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seaweedmq/smq/lib/smq"
)

// newWriterID draws the 16 bytes that tell one writer's chunks from another's.
func newWriterID() []byte {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand)
	return b
}

// retryBackoff spaces the attempts at a store that fails: from 10 ms up to 1 s,
// with jitter.
type retryBackoff struct{ *backoff.ExponentialBackOff }

func newBackoff() retryBackoff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 10*time.Millisecond, time.Second
	b.Reset()
	return retryBackoff{b}
}

// wait returns after the next interval, or with the context's error.
func (b retryBackoff) wait(ctx context.Context) error {
	t := time.NewTimer(b.NextBackOff())
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", smq.ErrTimeout, ctx.Err())
	}
}
