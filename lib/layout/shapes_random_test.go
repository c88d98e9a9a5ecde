package layout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
)

// randomShape is an hour of traffic that jumps, drifts, concentrates on some
// partitions and goes, then an hour of steady traffic; under any policy, with
// leaders that fall, brokers that join, die and leave.
func randomShape(seed uint64) shape {
	rnd := rand.New(rand.NewPCG(seed, 3))
	s := shape{
		name:       fmt.Sprintf("seed %d", seed),
		partitions: 1 + rnd.IntN(48), brokers: 1 + rnd.IntN(5), lasts: 2 * time.Hour,
		averages: time.Duration(2+rnd.IntN(4)) * time.Second,
		at:       map[time.Duration]func(*world){},
		quiet:    [][2]time.Duration{{80 * time.Minute, 2 * time.Hour}},
	}
	if rnd.IntN(2) == 0 {
		s.policy.MinSegments = 1 + rnd.IntN(4)
	}
	if rnd.IntN(2) == 0 {
		s.policy.MaxSegments = max(1, s.policy.MinSegments) + rnd.IntN(12)
	}
	if rnd.IntN(3) == 0 {
		s.policy.CoolDown = time.Duration(1+rnd.IntN(60)) * time.Second
	}
	for range rnd.IntN(4) {
		s.at[time.Duration(rnd.IntN(3600))*time.Second] = (*world).depose
	}
	for range rnd.IntN(3) {
		s.at[time.Duration(rnd.IntN(3600))*time.Second] = (*world).join
	}
	if s.brokers > 2 {
		s.at[time.Duration(rnd.IntN(3600))*time.Second] = (*world).kill
		s.at[time.Duration(rnd.IntN(3600))*time.Second] = (*world).drain
	}
	s.policy = clampTo(s.policy, s.partitions)
	s.traffic = wander(s.partitions)
	return s
}

// clampTo keeps the bounds within what the topic can have, so that the world
// can hold layouts against them.
func clampTo(p layout.Policy, partitions int) layout.Policy {
	p.MinSegments = min(p.MinSegments, partitions)
	if p.MaxSegments > 0 {
		p.MaxSegments = min(p.MaxSegments, partitions)
	}
	return p
}

// wander is a traffic that changes for an hour and then stays.
func wander(partitions int) func(time.Duration, *rand.Rand, []float64) {
	total, weights, until := 0.0, make([]float64, partitions), time.Duration(-1)
	drift := 1.0
	return func(now time.Duration, rnd *rand.Rand, out []float64) {
		if now >= until && now < time.Hour {
			until = now + time.Duration(1+rnd.IntN(300))*time.Second
			total, drift = []float64{0, 1, 15, 40, 100}[rnd.IntN(5)], 1+(rnd.Float64()-0.5)/50
			for p := range weights {
				weights[p] = rnd.Float64()
				if rnd.IntN(8) == 0 {
					weights[p] *= 1 + 100*rnd.Float64()
				}
				if rnd.IntN(4) == 0 {
					weights[p] = 0
				}
			}
		}
		if now < time.Hour {
			total = min(total*drift, 150)
		}
		sum := 1e-9
		for _, x := range weights {
			sum += x
		}
		for p := range out {
			out[p] = total * weights[p] / sum
		}
	}
}

// Whatever the traffic: layouts tile, bounds and the cool-down hold (the world
// looks at each change), and once the traffic is steady nothing changes any more.
func TestPlanKeepsItsPromises(t *testing.T) {
	changes := 0
	for seed := range uint64(40) {
		w := newWorld(t, randomShape(seed))
		w.run()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, w.log.String(w.shape))
		}
		changes += len(w.log.lines)
	}
	if changes < 400 {
		t.Errorf("%d changes in all: too few to say anything", changes)
	}
}
