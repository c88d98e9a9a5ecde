package seglog

import "time"

// Limits shape a segment's chunks and life. The zero value of each field
// stands for its default.
type Limits struct {
	// ChunkBytes is the size at which a chunk is full; one larger batch may
	// exceed it. Default 4 MiB.
	ChunkBytes int64
	// MinInterval is the least time between two chunks that are not full, so
	// that a steady trickle does not make a chunk of every batch. Default 5 ms.
	MinInterval time.Duration
	// MaxDelay is how long a batch that nobody waits to see stored is kept for
	// a chunk to fill. Default 50 ms.
	MaxDelay time.Duration
	// MaxUnstored is how old the oldest batch that is not stored may be for
	// others to be acked as replicated. Default 2 s.
	MaxUnstored time.Duration
	// Inflight is how many chunks are uploaded at once. Default 4.
	Inflight int
	// MaxChunks, MaxBytes and MaxAge are where a segment asks to be rolled.
	// Default 4,096, 16 GiB and 24 h.
	MaxChunks uint64
	MaxBytes  uint64
	MaxAge    time.Duration
	// MaxProducers is how many pairs of an idempotent producer and a partition
	// a segment remembers; those idle for longest are forgotten beyond it.
	// Default 100,000.
	MaxProducers int
	// ProducerIdle is how long an idle producer is remembered. Default 24 h.
	ProducerIdle time.Duration
	// NoSpaceAfter is how long a full store is tried before what waits for it
	// is refused. Default 1 s.
	NoSpaceAfter time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.ChunkBytes, 4<<20)
	setDefault(&l.MinInterval, 5*time.Millisecond)
	setDefault(&l.MaxDelay, 50*time.Millisecond)
	setDefault(&l.MaxUnstored, 2*time.Second)
	setDefault(&l.Inflight, 4)
	setDefault(&l.MaxChunks, 4096)
	setDefault(&l.MaxBytes, 16<<30)
	setDefault(&l.MaxAge, 24*time.Hour)
	setDefault(&l.MaxProducers, 100_000)
	setDefault(&l.ProducerIdle, 24*time.Hour)
	setDefault(&l.NoSpaceAfter, time.Second)
	return l
}

func setDefault[T int | int64 | uint64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
