package seglog

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/seaweedmq/smq/lib/smq"
)

// maxCreates is how many chunks a broker creates at once. When they queue,
// more goes into each.
const maxCreates = 16

// Shared is what the segments of one broker share: memory, the cache of
// chunks, creates in flight, metrics.
type Shared struct {
	cache   *chunkCache
	creates *semaphore.Weighted
	memory  *semaphore.Weighted
	limit   int64
	replica *semaphore.Weighted
	metrics *metrics
}

// SharedOptions size what is shared.
type SharedOptions struct {
	// Buffer bounds the bytes that are received and not stored yet.
	// Default 128 MiB.
	Buffer int64
	// Replica bounds the bytes held for other brokers' segments. Default
	// 128 MiB.
	Replica int64
	// Cache bounds the bytes of stored chunks kept for readers, the newest
	// ones included. Default 128 MiB.
	Cache int64
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// NewShared makes what the segments of a broker share.
func NewShared(o SharedOptions) *Shared {
	setDefault(&o.Buffer, 128<<20)
	setDefault(&o.Replica, 128<<20)
	setDefault(&o.Cache, 128<<20)
	m := newMetrics(o.Registerer)
	return &Shared{
		cache:   newChunkCache(o.Cache, m),
		creates: semaphore.NewWeighted(maxCreates),
		memory:  semaphore.NewWeighted(o.Buffer),
		limit:   o.Buffer,
		replica: semaphore.NewWeighted(o.Replica),
		metrics: m,
	}
}

// Reserve takes n bytes of memory for batches that are about to be appended,
// and waits for them while the buffers are full. smq.ErrOverloaded when ctx
// ends first, smq.ErrTooLarge when there are not so many at all.
func (s *Shared) Reserve(ctx context.Context, n int64) error {
	if n > s.limit {
		return fmt.Errorf("%w: %d bytes at once, this broker buffers %d", smq.ErrTooLarge, n, s.limit)
	}
	if err := s.memory.Acquire(ctx, n); err != nil {
		return fmt.Errorf("%w: the broker's buffers are full: %w", smq.ErrOverloaded, err)
	}
	s.metrics.buffered.Add(float64(n))
	return nil
}

// ReserveReplica takes n bytes of memory for batches that are about to be given
// to a Follower. It does not wait: what gives memory back is the owner's news, and
// comes behind these batches. smq.ErrOverloaded when there are not so many.
func (s *Shared) ReserveReplica(n int64) error {
	if !s.replica.TryAcquire(n) {
		return fmt.Errorf("%w: no memory for replicas", smq.ErrOverloaded)
	}
	s.metrics.replicated.Add(float64(n))
	return nil
}

func (s *Shared) releaseReplica(n int64) {
	if n > 0 {
		s.replica.Release(n)
		s.metrics.replicated.Sub(float64(n))
	}
}

// Unreserve gives memory back that was reserved for bytes which did not reach
// a log.
func (s *Shared) Unreserve(n int64) { s.release(n) }

func (s *Shared) release(n int64) {
	if n > 0 {
		s.memory.Release(n)
		s.metrics.buffered.Sub(float64(n))
	}
}

func (s *Shared) acquireCreate(ctx context.Context) (release func(), err error) {
	if err := s.creates.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { s.creates.Release(1) }, nil
}
