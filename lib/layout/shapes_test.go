package layout_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
)

var update = flag.Bool("update", false, "write the golden files anew")

const day = 24 * time.Hour

// spread is an even traffic of so many MB/s in all.
func spread(mb float64, out []float64) {
	for p := range out {
		out[p] = mb / float64(len(out))
	}
}

// hotSpot is a traffic of which one partition has a share, the rest is even.
func hotSpot(mb float64, p int, share float64, out []float64) {
	spread(mb*(1-share), out)
	out[p] += mb * share
}

// evenly makes a shape's traffic from a total.
func evenly(total func(now time.Duration, rnd *rand.Rand) float64) func(time.Duration, *rand.Rand, []float64) {
	return func(now time.Duration, rnd *rand.Rand, out []float64) { spread(total(now, rnd), out) }
}

// phase is how far into its period now is, from 0 to 1.
func phase(now, period time.Duration) float64 {
	return float64(now%period) / float64(period)
}

var shapes = []shape{
	{
		name: "step", about: "1MB/s, at 00:10:00 at once 40MB/s, from 12:00:00 on 1MB/s again.",
		partitions: 64, brokers: 4, lasts: day,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now >= 10*time.Minute && now < 12*time.Hour {
				return 40
			}
			return 1
		}),
		quiet:  [][2]time.Duration{{0, 10 * time.Minute}, {11 * time.Minute, 12 * time.Hour}, {12*time.Hour + time.Minute, day}},
		within: []milestone{{10*time.Minute + 10*time.Second, 4, 4}, {12*time.Hour + time.Minute, 1, 1}},
	},
	{
		name: "step-slow", about: "As step, but owners measure over 5 s.",
		partitions: 64, brokers: 4, lasts: time.Hour, averages: 5 * time.Second,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now >= 10*time.Minute && now < 30*time.Minute {
				return 40
			}
			return 1
		}),
		quiet:  [][2]time.Duration{{0, 10 * time.Minute}, {11 * time.Minute, 30 * time.Minute}, {31 * time.Minute, time.Hour}},
		within: []milestone{{10*time.Minute + 10*time.Second, 4, 4}, {31 * time.Minute, 1, 1}},
	},
	{
		name: "ramp", about: "From nothing up to 120MB/s at 12:00:00 and down to nothing again.",
		partitions: 64, brokers: 4, lasts: day,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			return 120 * (1 - math.Abs(2*phase(now, day)-1))
		}),
	},
	{
		name: "spikes", about: "5MB/s; every ten minutes a second of 100MB/s, at 12:00:00 a minute of it.",
		partitions: 64, brokers: 4, lasts: day,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now%(10*time.Minute) < time.Second || now >= 12*time.Hour && now < 12*time.Hour+time.Minute {
				return 100
			}
			return 5
		}),
		quiet: [][2]time.Duration{{0, 12 * time.Hour}, {12*time.Hour + 2*time.Minute, day}},
	},
	{
		name: "sawtooth-minute", about: "Every minute from 2 up to 40MB/s.",
		partitions: 64, brokers: 4, lasts: 6 * time.Hour,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 { return 2 + 38*phase(now, time.Minute) }),
		quiet:   [][2]time.Duration{{5 * time.Minute, day}},
	},
	{
		name: "sawtooth-hour", about: "Every hour from 2 up to 40MB/s.",
		partitions: 64, brokers: 4, lasts: 8 * time.Hour,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 { return 2 + 38*phase(now, time.Hour) }),
	},
	{
		name: "on-off", about: "Two minutes 40MB/s, one minute nothing, again and again.",
		partitions: 64, brokers: 4, lasts: 6 * time.Hour,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now%(3*time.Minute) < 2*time.Minute {
				return 40
			}
			return 0
		}),
	},
	{
		name: "sine", about: "A day's sine between 2 and 60MB/s, with noise.",
		partitions: 64, brokers: 4, lasts: day,
		traffic: evenly(func(now time.Duration, rnd *rand.Rand) float64 {
			return (31 - 29*math.Cos(2*math.Pi*phase(now, day))) * (0.8 + 0.4*rnd.Float64())
		}),
	},
	{
		name: "noise-above", about: "20MB/s, the threshold, with noise of 50 %.",
		partitions: 64, brokers: 4, lasts: 6 * time.Hour,
		traffic: evenly(func(_ time.Duration, rnd *rand.Rand) float64 { return 10 + 20*rnd.Float64() }),
		quiet:   [][2]time.Duration{{10 * time.Minute, day}},
	},
	{
		name: "noise-below", about: "40MB/s for a minute, then 10MB/s, half the threshold, with noise of 50 %.",
		partitions: 64, brokers: 4, lasts: 6 * time.Hour,
		traffic: evenly(func(now time.Duration, rnd *rand.Rand) float64 {
			if now < time.Minute {
				return 40
			}
			return 5 + 10*rnd.Float64()
		}),
		quiet: [][2]time.Duration{{20 * time.Minute, day}},
	},
	{
		name: "hot-key", about: "30MB/s, 96 % of it in partition 17; from 06:00:00 on 70 % of it.",
		partitions: 64, brokers: 4, lasts: day,
		traffic: func(now time.Duration, _ *rand.Rand, out []float64) {
			share := 0.96
			if now >= 6*time.Hour {
				share = 0.7
			}
			hotSpot(30, 17, share, out)
		},
		quiet: [][2]time.Duration{{0, 6 * time.Hour}, {6*time.Hour + time.Minute, day}},
	},
	{
		name: "moving-hot-key", about: "30MB/s, 60 % of it in one partition, every 20 minutes another one.",
		partitions: 64, brokers: 4, lasts: 6 * time.Hour,
		traffic: func(now time.Duration, _ *rand.Rand, out []float64) {
			hotSpot(30, int(now/(20*time.Minute))*29%64, 0.6, out)
		},
	},
	{
		name: "silence", about: "100MB/s, from 01:00:00 on nothing.",
		partitions: 64, brokers: 4, lasts: day,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now < time.Hour {
				return 100
			}
			return 0
		}),
		quiet:  [][2]time.Duration{{2 * time.Minute, time.Hour}, {time.Hour + time.Minute, day}},
		within: []milestone{{time.Hour, 11, 4}, {time.Hour + time.Minute, 1, 1}},
	},
	{
		name: "failover", about: "40MB/s from 00:10:00 on; a new leader a second after the first split was decided, and every hour.",
		partitions: 64, brokers: 4, lasts: 6 * time.Hour,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now < 10*time.Minute {
				return 1
			}
			return 40
		}),
		at:    hourly(10*time.Minute+5*time.Second, (*world).depose),
		quiet: [][2]time.Duration{{11 * time.Minute, day}},
	},
	{
		name: "loss", about: "60MB/s over four brokers; at 01:00:00 one dies, at 02:00:00 one is drained, at 03:00:00 one joins.",
		partitions: 64, brokers: 4, lasts: 4 * time.Hour,
		traffic: evenly(func(time.Duration, *rand.Rand) float64 { return 60 }),
		at:      map[time.Duration]func(*world){time.Hour: (*world).kill, 2 * time.Hour: (*world).drain, 3 * time.Hour: (*world).join},
		quiet:   [][2]time.Duration{{time.Minute, time.Hour}, {time.Hour + 2*time.Minute, 2 * time.Hour}, {2*time.Hour + 2*time.Minute, 3 * time.Hour}, {3*time.Hour + 2*time.Minute, day}},
	},
	{
		name: "join", about: "60MB/s over two brokers; at 01:00:00 a third joins, at 02:00:00 a fourth.",
		partitions: 64, brokers: 2, lasts: 6 * time.Hour,
		traffic: evenly(func(time.Duration, *rand.Rand) float64 { return 60 }),
		at:      map[time.Duration]func(*world){time.Hour: (*world).join, 2 * time.Hour: (*world).join},
		quiet:   [][2]time.Duration{{time.Minute, time.Hour}, {time.Hour + 2*time.Minute, 2 * time.Hour}, {2*time.Hour + 2*time.Minute, day}},
	},
	{
		name: "one-broker", about: "100MB/s on one broker, then nothing; at 02:00:00 another joins and the traffic is back.",
		partitions: 64, brokers: 1, lasts: 4 * time.Hour,
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now >= time.Hour && now < 2*time.Hour {
				return 0
			}
			return 100
		}),
		at:    map[time.Duration]func(*world){2 * time.Hour: (*world).join},
		quiet: [][2]time.Duration{{time.Minute, time.Hour}, {time.Hour + time.Minute, 2 * time.Hour}, {2*time.Hour + 2*time.Minute, day}},
	},
	{
		name: "bounds", about: "At least 3 segments, at most 5: nothing, from 01:00:00 on 200MB/s, from 02:00:00 on nothing.",
		partitions: 64, brokers: 4, lasts: 3 * time.Hour,
		policy: layout.Policy{MinSegments: 3, MaxSegments: 5},
		traffic: evenly(func(now time.Duration, _ *rand.Rand) float64 {
			if now >= time.Hour && now < 2*time.Hour {
				return 200
			}
			return 0
		}),
		quiet:  [][2]time.Duration{{time.Minute, time.Hour}, {time.Hour + time.Minute, 2 * time.Hour}, {2*time.Hour + time.Minute, day}},
		within: []milestone{{time.Minute, 3, 3}, {time.Hour + time.Minute, 5, 4}, {2*time.Hour + time.Minute, 3, 0}},
	},
}

// hourly is what happens at a time and at every full hour after it.
func hourly(first time.Duration, f func(*world)) map[time.Duration]func(*world) {
	at := map[time.Duration]func(*world){first: f}
	for h := time.Hour; h < day; h += time.Hour {
		at[h] = f
	}
	return at
}

// The golden files say what the planner makes of hours and days of traffic. They are
// written anew with -update; read what changed.
func TestPlanThroughDaysOfTraffic(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, s)
			w.run()
			got := w.log.String(s)
			path := filepath.Join("testdata", "plan", s.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s has changed; run with -update and look at the difference. Now it is\n%s", path, got)
			}
		})
	}
}
