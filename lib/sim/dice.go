package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Dice are a source of random numbers for one purpose, which several
// goroutines may throw.
type Dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

// NewDice returns the dice of a seed for a purpose.
func NewDice(seed uint64, purpose string) *Dice {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return &Dice{r: rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// IntN returns a number from 0 to below n.
func (d *Dice) IntN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// UpTo returns a duration from 0 to below most.
func (d *Dice) UpTo(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(most)))
}

// Percent is true so often of a hundred times.
func (d *Dice) Percent(n int) bool { return d.IntN(100) < n }

// Fraction returns a number from 0 to below most, or 0 every second time.
func (d *Dice) Fraction(most float64) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.r.IntN(2) == 0 {
		return 0
	}
	return most * d.r.Float64()
}
