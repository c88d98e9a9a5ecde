package background

import (
	"context"
	"math/rand/v2"
	"time"
)

// Bounds of the waits of a Backoff.
const (
	minBackoff = 10 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
)

// Backoff spaces attempts at the store whose outcome is unknown, or that somebody else
// was faster with: waits that double, with jitter. The zero value is ready for use.
type Backoff struct{ last time.Duration }

// Next returns nil after the next wait, or ctx's error when it ends before.
func (b *Backoff) Next(ctx context.Context) error {
	b.last = min(max(2*b.last, minBackoff), maxBackoff)
	return Wait(ctx, b.last/2+rand.N(b.last/2))
}
