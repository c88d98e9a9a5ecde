package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/store/fault"
)

// config sizes a life. It follows from the seed, unless a failure is being made
// smaller.
type config struct {
	seed       uint64
	hosts      int // brokers alive at a time
	leaders    int // who seal and replace, all at once
	partitions int
	producers  int
	batches    int // of a producer in a partition
	readers    int
	changes    int // splits, merges and rolls that a leader wishes for
	crashes    int // of brokers
	pauses     int // of brokers' stores
	faults     int // percent of what the seed asks for
	lost       int // percent of acks that do not reach their clients
	giveUps    int // 1: clients give batches up when they wait for long
}

const configFormat = "seed=%d hosts=%d leaders=%d partitions=%d producers=%d batches=%d readers=%d changes=%d crashes=%d pauses=%d faults=%d lost=%d giveups=%d"

// sizes are the fields but for the seed.
func (c *config) sizes() []*int {
	return []*int{&c.hosts, &c.leaders, &c.partitions, &c.producers, &c.batches, &c.readers, &c.changes, &c.crashes, &c.pauses, &c.faults, &c.lost, &c.giveUps}
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
	d := NewDice(seed, "config")
	return config{
		seed:       seed,
		hosts:      2 + d.IntN(2),
		leaders:    1 + d.IntN(2),
		partitions: 1 + d.IntN(4),
		producers:  1 + d.IntN(3),
		batches:    4 + d.IntN(40),
		readers:    1 + d.IntN(2),
		changes:    d.IntN(6),
		crashes:    d.IntN(4),
		pauses:     d.IntN(3),
		faults:     100 * min(1, d.IntN(8)), // one in eight lives knows no faults
		lost:       d.IntN(2) * d.IntN(30),
		giveUps:    d.IntN(2),
	}
}

// smaller lists configs that ask for less, each in one way.
func (c config) smaller() []config {
	var list []config
	for i, n := range c.sizes() {
		least := 0
		if i < 5 { // a life needs one of each of the first
			least = 1
		}
		for _, less := range []int{least, *n / 2, *n - 1} {
			if less >= least && less < *n {
				d := c
				*d.sizes()[i] = less
				list = append(list, d)
			}
		}
	}
	return list
}

// limits are those of the life's segments: small, so that a short life sees
// rolls, full chunks and snapshots.
func limits(d *Dice) seglog.Limits {
	return seglog.Limits{
		ChunkBytes:   int64(1) << d.IntN(11),
		MinInterval:  time.Duration(1+d.IntN(5)) * time.Millisecond,
		Inflight:     1 + d.IntN(4),
		MaxChunks:    uint64(4 + d.IntN(100)),
		NoSpaceAfter: 200 * time.Millisecond,
	}
}

// rates are those of one process's store.
func (c config) rates(d *Dice) fault.Rates {
	p := func(most float64) float64 { return d.Fraction(most) * float64(c.faults) / 100 }
	change := fault.Rate{
		Refuse: p(0.2), Full: p(0.2), Lose: p(0.2), Late: p(0.2), Drop: p(0.2),
		Delay: 0.5, MaxDelay: 1 + d.UpTo(200*time.Millisecond), MaxLate: 5 * time.Second,
	}
	look := fault.Rate{Refuse: p(0.05), Delay: d.Fraction(0.5), MaxDelay: 50 * time.Millisecond}
	rates := fault.Changes(change)
	for _, k := range []fault.Kind{fault.Read, fault.ReadAt, fault.Stat, fault.List} {
		rates[k] = look
	}
	return rates
}
