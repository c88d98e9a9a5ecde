package broker

import (
	"math"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// Rates are sampled every sampleEvery, and averaged over about rateWindow: a step
// to twice a threshold is seen to pass it after two seconds, one to a quarter
// more than it within five, while traffic that comes in bursts once a second
// or so does not flicker. (With a window of w, a step to f times the threshold
// takes w·ln(f/(f-1)).)
const (
	sampleEvery = time.Second
	rateWindow  = 3 * time.Second
)

// What is less, a second, is silence: so an average of the past comes to an end.
const (
	silentMessages = 0.1
	silentBytes    = 100
)

// average is traffic a second, as an average that forgets.
type average struct{ messages, bytes float64 }

// scaled is the average times f.
func (a average) scaled(f float64) average { return average{a.messages * f, a.bytes * f} }

func (a average) plus(b average) average { return average{a.messages + b.messages, a.bytes + b.bytes} }

// audible is the average, or zero when it is as good as that.
func (a average) audible() average {
	if a.messages < silentMessages && a.bytes < silentBytes {
		return average{}
	}
	return a
}

// rates are what a segment and each of its partitions take in, and what the
// leader was told of that. Only partitions with traffic have a place here, so
// idle ones cost no time.
type rates struct {
	ident seglog.Ident

	mu      sync.Mutex
	at      time.Time     // of the last sample
	age     time.Duration // what the averages are made of; 0: there are none yet
	total   average
	told    average
	known   bool // the leader knows of the segment
	active  []activity
	place   []int32 // by partition less lo; valid if that place in active names the partition
	samples []seglog.Traffic
}

// activity is a partition that is not silent, or is and the leader does not know.
type activity struct {
	partition smq.Partition
	now       average
	told      average
}

// begin says from when on, and for which segment, rates are measured.
func (r *rates) begin(id seglog.Ident, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ident, r.at = id, now
}

// sample takes in what the log was offered since the last time, if that is long
// enough ago to tell a rate.
func (r *rates) sample(log *seglog.Log, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dt := now.Sub(r.at)
	if dt < sampleEvery/2 {
		return
	}
	r.at = now
	r.samples = log.TakeTraffic(r.samples)
	r.take(r.samples, dt)
}

// take averages traffic of the last dt in. r.mu is held.
func (r *rates) take(traffic []seglog.Traffic, dt time.Duration) {
	r.age += dt
	weight := weigh(dt, r.age)
	r.decay(1 - weight)
	per := weight / dt.Seconds()
	for _, t := range traffic {
		now := average{float64(t.Messages), float64(t.Bytes)}.scaled(per)
		a := r.activity(t.Partition)
		a.now = a.now.plus(now)
		r.total = r.total.plus(now)
	}
}

// weigh is what the last dt count for in averages over age. While that is short
// they are plain ones: a segment's first second says what it takes in, instead
// of a third of that.
func weigh(dt, age time.Duration) float64 {
	forget := func(d time.Duration) float64 { return -math.Expm1(-d.Seconds() / rateWindow.Seconds()) }
	return forget(dt) / forget(age)
}

// decay lets the averages fade, and forgets partitions that have fallen silent
// once the leader knows that. r.mu is held.
func (r *rates) decay(by float64) {
	r.total = r.total.scaled(by).audible()
	for i := 0; i < len(r.active); i++ {
		a := &r.active[i]
		a.now = a.now.scaled(by).audible()
		if a.now == a.told && a.now == (average{}) {
			r.forget(i)
			i--
		}
	}
}

// activity finds the partition's place or makes one. r.mu is held.
func (r *rates) activity(p smq.Partition) *activity {
	if r.place == nil {
		r.place = make([]int32, r.ident.Range.Len())
	}
	place := &r.place[p-r.ident.Range.Lo]
	i := int(*place)
	if i >= len(r.active) || r.active[i].partition != p {
		i = len(r.active)
		*place = int32(i)
		r.active = append(r.active, activity{partition: p})
	}
	return &r.active[i]
}

// forget gives up place i. r.mu is held.
func (r *rates) forget(i int) {
	last := len(r.active) - 1
	r.active[i] = r.active[last]
	r.place[r.active[i].partition-r.ident.Range.Lo] = int32(i)
	r.active = r.active[:last]
}

// touch says from when on the rates grow old.
func (r *rates) touch(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = now
}

// olderThan reports whether the last sample, or touch, is from before t.
func (r *rates) olderThan(t time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.Before(t)
}

// now is the segment's average.
func (r *rates) now() average {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}
