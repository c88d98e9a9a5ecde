package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// dice are a source of random numbers for one purpose, which several
// goroutines may throw.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64, purpose string) *dice {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return &dice{r: rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// intN returns a number from 0 to below n.
func (d *dice) intN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// upTo returns a duration from 0 to below most.
func (d *dice) upTo(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(most)))
}

// percent is true so often of a hundred times.
func (d *dice) percent(n int) bool { return d.intN(100) < n }

// fraction returns a number from 0 to below most, or 0 every second time.
func (d *dice) fraction(most float64) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.r.IntN(2) == 0 {
		return 0
	}
	return most * d.r.Float64()
}
