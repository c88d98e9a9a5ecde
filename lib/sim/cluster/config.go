package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/sim"
	"github.com/seaweedmq/smq/lib/store/fault"
)

// config sizes a life. It follows from the seed, unless a failure is being made
// smaller.
type config struct {
	seed        uint64
	brokers     int // alive at a time
	replicas    int // of the topic
	partitions  int
	publishers  int
	messages    int // of a publisher
	subscribers int
	kills       int // of brokers, each followed by the start of another
	drains      int // likewise
	cuts        int // of a process off from the network, a broker off from the store too, for a while
	breaks      int // of all connections of a process
	faults      int // percent of what the seed asks for
	giveUps     int // 1: publishers give messages up after some seconds
	changes     int // splits and merges by hand
}

const configFormat = "seed=%d brokers=%d replicas=%d partitions=%d publishers=%d messages=%d subscribers=%d kills=%d drains=%d cuts=%d breaks=%d faults=%d giveups=%d changes=%d"

// sizes are the fields but for the seed; a life needs one of each of the first
// six.
func (c *config) sizes() []*int {
	return []*int{&c.brokers, &c.replicas, &c.partitions, &c.publishers, &c.messages, &c.subscribers, &c.kills, &c.drains, &c.cuts, &c.breaks, &c.faults, &c.giveUps, &c.changes}
}

// String is what parseConfig reads.
func (c config) String() string {
	fields := []any{c.seed}
	for _, n := range c.sizes() {
		fields = append(fields, *n)
	}
	return fmt.Sprintf(configFormat, fields...)
}

func parseConfig(s string) (config, error) {
	var c config
	fields := []any{&c.seed}
	for _, n := range c.sizes() {
		fields = append(fields, n)
	}
	if _, err := fmt.Sscanf(strings.TrimSpace(s), configFormat, fields...); err != nil {
		return config{}, fmt.Errorf("config %q: %w", s, err)
	}
	return c, nil
}

// drawConfig is the config of a seed.
func drawConfig(seed uint64) config {
	d := sim.NewDice(seed, "config")
	c := config{
		seed:        seed,
		brokers:     2 + d.IntN(2),
		replicas:    1,
		partitions:  1 + d.IntN(5),
		publishers:  1 + d.IntN(2),
		messages:    50 + d.IntN(500),
		subscribers: 1 + d.IntN(2),
		kills:       d.IntN(5),
		drains:      d.IntN(3),
		cuts:        d.IntN(4),
		breaks:      d.IntN(4),
		faults:      100 * min(1, d.IntN(5)),
		giveUps:     d.IntN(2),
	}
	if d.Percent(50) {
		c.replicas = 2 + d.IntN(2)
		c.brokers = c.replicas + d.IntN(2)
	}
	c.changes = d.IntN(12)
	return c
}

// deaths is how many brokers may die: all of them, or, when messages are acked
// that only replicas hold, all replicas of a segment but one. (It is less than
// is promised: the others could die too, once everything is stored again.)
func (c config) deaths() int {
	if c.replicas == 1 {
		return c.kills
	}
	return min(c.kills, c.replicas-1)
}

// leaves is how many brokers may be drained. A drain that the store keeps from
// its end is a death.
func (c config) leaves() int {
	if c.replicas == 1 || c.faults == 0 {
		return c.drains
	}
	return 0
}

// longestCut is for how long processes are cut off. A broker that is silent for
// longer than its lease counts as dead.
func (c config) longestCut() time.Duration {
	if c.replicas == 1 {
		return 8 * time.Second
	}
	return 1500 * time.Millisecond
}

// smaller lists configs that ask for less, each in one way.
func (c config) smaller() []config {
	var list []config
	for i, n := range c.sizes() {
		least := 0
		if i < 6 {
			least = 1
		}
		for _, less := range []int{least, *n / 2} {
			if less >= least && less < *n {
				d := c
				*d.sizes()[i] = less
				list = append(list, d)
			}
		}
	}
	return list
}

// limits are those of the life's segments.
func limits(d *sim.Dice) seglog.Limits {
	return seglog.Limits{
		ChunkBytes:   int64(1) << (6 + d.IntN(8)),
		Inflight:     1 + d.IntN(4),
		MaxChunks:    uint64(3 + d.IntN(1<<(2+d.IntN(6)))),
		NoSpaceAfter: 500 * time.Millisecond,
	}
}

// rates are those of one broker's store.
func (c config) rates(d *sim.Dice) fault.Rates {
	p := func(most float64) float64 { return d.Fraction(most) * float64(c.faults) / 100 }
	change := fault.Rate{
		Refuse: p(0.1), Full: p(0.1), Lose: p(0.15), Late: p(0.15), Drop: p(0.15),
		Delay: 0.5, MaxDelay: 1 + d.UpTo(100*time.Millisecond), MaxLate: 5 * time.Second,
	}
	look := fault.Rate{Refuse: p(0.03), Delay: d.Fraction(0.3), MaxDelay: 30 * time.Millisecond}
	rates := fault.Changes(change)
	for _, k := range []fault.Kind{fault.Read, fault.ReadAt, fault.Stat, fault.List} {
		rates[k] = look
	}
	return rates
}
