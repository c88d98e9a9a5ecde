package fault

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"time"
)

// Rate says how likely each outcome is for a call; the sum of the first five is
// at most 1. DieBefore and DieAfter do not happen by chance.
type Rate struct {
	Refuse, Full, Lose, Late, Drop float64

	Delay    float64       // the probability of a delay
	MaxDelay time.Duration // delays are up to that
	MaxLate  time.Duration // late changes arrive up to that late
}

// Rates are the rates of each kind of call. What is absent does not fail.
type Rates map[Kind]Rate

// Everything gives all kinds of calls one rate.
func Everything(r Rate) Rates {
	rates := Rates{}
	for k := range Kind(kinds) {
		rates[k] = r
	}
	return rates
}

// Changes gives all kinds of calls that change the store one rate.
func Changes(r Rate) Rates {
	rates := Everything(r)
	for k := range rates {
		if !k.Changes() {
			delete(rates, k)
		}
	}
	return rates
}

// Roll decides by chance, the same for the same call each time.
func (s *Store) Roll(op Op) Decision {
	rate := s.rates[op.Kind]
	random := s.chance(op, "")
	var d Decision
	x := random.Float64()
	for _, o := range []struct {
		outcome Outcome
		rate    float64
	}{{Refuse, rate.Refuse}, {Full, rate.Full}, {Lose, rate.Lose}, {Late, rate.Late}, {Drop, rate.Drop}} {
		if x < o.rate {
			d.Outcome = o.outcome
			break
		}
		x -= o.rate
	}
	if random.Float64() < rate.Delay {
		d.Delay = upTo(random, rate.MaxDelay)
	}
	d.LateBy = upTo(random, rate.MaxLate)
	return d
}

func upTo(random *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return 1 + time.Duration(random.Int64N(int64(limit)))
}

// chance is a source of random numbers for one question about one call.
func (s *Store) chance(op Op, question string) *rand.Rand {
	h := fnv.New64a()
	for _, part := range []string{op.Kind.String(), op.Path, strconv.Itoa(op.N), question} {
		io.WriteString(h, part)
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}
