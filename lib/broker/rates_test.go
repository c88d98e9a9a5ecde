package broker

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

var loadTopic = smq.Topic{Namespace: "default", Name: "t"}

// newRates are of a segment that was just opened.
func newRates(id smq.SegmentID, lo, hi int32) *rates {
	r := &rates{}
	r.begin(seglog.Ident{Topic: loadTopic, TopicID: "t1", Segment: id, Range: smq.Range{Lo: lo, Hi: hi}}, time.Now())
	return r
}

func offered(p smq.Partition, messages, bytes uint64) seglog.Traffic {
	return seglog.Traffic{Partition: p, Messages: messages, Bytes: bytes}
}

// near reports whether a is about as much as the two rates.
func near(a average, messages, bytes float64) bool {
	return math.Abs(a.messages-messages) < 0.01*messages+0.01 && math.Abs(a.bytes-bytes) < 0.01*bytes+0.01
}

func TestRatesOfSteadyTraffic(t *testing.T) {
	r := newRates(1, 10, 20)
	for i := range 60 {
		dt := time.Second + time.Duration(i%5)*300*time.Millisecond // a busy machine
		ms := uint64(dt / time.Millisecond)
		r.take([]seglog.Traffic{offered(12, ms, 100*ms), offered(19, 2*ms, ms)}, dt)
		// The first second already says how much it is.
		if !near(r.total, 3000, 101_000) || !near(r.activity(12).now, 1000, 100_000) || !near(r.activity(19).now, 2000, 1000) {
			t.Fatalf("after %d samples: %+v, %+v", i+1, r.total, r.active)
		}
	}
}

// A step is seen in time, however long everything was as before.
func TestRatesFollowAStep(t *testing.T) {
	r := newRates(1, 0, 4)
	second := func(n uint64) average {
		r.take([]seglog.Traffic{offered(0, n, 0)}, time.Second)
		return r.now()
	}
	for range 100 {
		second(100)
	}
	for i, want := range []float64{0.25, 0.48, 0.63, 0.73, 0.81} { // of the way, at least
		if got := second(1100).messages; got < 100+1000*want || got > 1100 {
			t.Errorf("%d s after the step: %.0f messages/s", i+1, got)
		}
	}
}

func TestRatesFallSilentForGood(t *testing.T) {
	r := newRates(1, 0, 100)
	for p := range int32(100) {
		r.take([]seglog.Traffic{offered(p, 1_000_000, 1<<30)}, time.Second)
	}
	if load := r.report(true); len(load.Partitions) < 40 {
		t.Fatalf("told of %d partitions", len(load.Partitions))
	}
	for range 120 {
		r.take(nil, time.Second)
		r.report(false)
	}
	if r.total != (average{}) || len(r.active) != 0 {
		t.Fatalf("two minutes later: %+v, %d partitions", r.total, len(r.active))
	}
}

// Partitions that are too quiet to be told one by one still add up.
func TestRatesOfManyQuietPartitions(t *testing.T) {
	const partitions = 10_000
	r := newRates(1, 0, partitions)
	for i := range int32(30) {
		var some []seglog.Traffic
		for p := range int32(100) {
			some = append(some, offered(100*i+p, 1, 10))
		}
		r.take(some, time.Second)
	}
	if !near(r.now(), 100, 1000) {
		t.Fatalf("%+v", r.now())
	}
}

// ours are the segments of a broker, without the broker.
func ours(all ...*rates) *segments {
	ss := &segments{byKey: make(map[segmentKey]*segment), past: make(map[segmentKey]*rates)}
	for _, r := range all {
		ss.past[segmentKey{r.ident.TopicID, r.ident.Segment}] = r
	}
	return ss
}

// opened measures a segment with the given predecessors.
func (ss *segments) opened(id smq.SegmentID, lo, hi int32, before ...smq.SegmentID) *rates {
	s := &segment{topic: &topic{}, key: segmentKey{"t1", id}}
	s.topic.ID, s.topic.Topic = "t1", loadTopic
	listed := layout.Segment{ID: id, Range: smq.Range{Lo: lo, Hi: hi}}
	for _, b := range before {
		listed.Predecessors = append(listed.Predecessors, layout.Predecessor{Segment: b})
	}
	ss.measure(s, listed)
	return &s.rates
}

func TestSuccessorsInheritRates(t *testing.T) {
	whole := newRates(1, 0, 10)
	for range 30 {
		whole.take([]seglog.Traffic{offered(1, 1000, 10_000), offered(6, 3000, 90_000), offered(9, 500, 5_000)}, time.Second)
	}
	ss := ours(whole)
	left, right := ss.opened(2, 0, 6, 1), ss.opened(3, 6, 10, 1)
	if !near(left.now(), 1000, 10_000) || !near(right.now(), 3500, 95_000) || !near(right.activity(6).now, 3000, 90_000) {
		t.Fatalf("split: %+v, %+v", left.now(), right.now())
	}
	// They go on from there: one second does not count for all.
	right.take(nil, time.Second)
	if now := right.now().messages; now < 2000 || now > 3000 {
		t.Fatalf("a second without messages makes it %.0f messages/s", now)
	}
	ss = ours(left, right)
	if merged := ss.opened(4, 0, 10, 2, 3); !near(merged.now(), left.now().messages+right.now().messages, left.now().bytes+right.now().bytes) || len(merged.active) != 3 {
		t.Fatalf("merge: %+v", merged.now())
	}
	// One of them was another broker's: what is ours does not tell all.
	if merged := ss.opened(5, 0, 20, 2, 3, 99); merged.now() != (average{}) || merged.report(true) != nil {
		t.Fatalf("with a stranger: %+v", merged.now())
	}
	ss.expire(time.Now().Add(time.Hour))
	if late := ss.opened(6, 0, 10, 2, 3); late.now() != (average{}) {
		t.Fatalf("an hour later: %+v", late.now())
	}
}

// What is too quiet to show by partition is shared out, and does not get lost.
func TestSuccessorsShareTheQuiet(t *testing.T) {
	whole := newRates(1, 0, 10)
	whole.take([]seglog.Traffic{offered(1, 1000, 0)}, time.Second)
	whole.total.messages += 500
	ss := ours(whole)
	left, right := ss.opened(2, 0, 4, 1), ss.opened(3, 4, 10, 1)
	if !near(left.now(), 1200, 0) || !near(right.now(), 300, 0) {
		t.Fatalf("%+v, %+v", left.now(), right.now())
	}
}

// The rates are those of what is offered: a store that takes nothing is no
// silence. A segment that ends keeps its last ones.
func TestRatesOfALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := slow{Store: mem.New().Handle(), ready: make(chan struct{})}
		id := seglog.Ident{Topic: loadTopic, TopicID: "t1", Segment: 1, Range: smq.Range{Lo: 0, Hi: 4}}
		shared := seglog.NewShared(seglog.SharedOptions{})
		log, err := seglog.Open(t.Context(), seglog.Config{Store: st, Ident: id, Broker: "b", Shared: shared})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		b := &Broker{metrics: newMetrics(nil, nil), cfg: Config{StuckAfter: time.Hour}}
		own := &segments{b: b, byKey: make(map[segmentKey]*segment)}
		s := &segment{log: log, ready: make(chan struct{})}
		close(s.ready)
		own.byKey[segmentKey{"t1", 1}] = s
		b.owned.Store(own)
		s.rates.begin(id, time.Now())

		var size uint64
		offer := func() {
			batch := loadBatch(t, 100)
			size = uint64(len(batch))
			if err := shared.Reserve(t.Context(), int64(size)); err != nil {
				t.Fatal(err)
			}
			log.Append([]seglog.Batch{{Partition: 2, Bytes: batch}}, dropped{})
		}
		for range 10 {
			offer()
			time.Sleep(time.Second) // of the bubble's clock
			b.sample(time.Now())
		}
		if !near(s.rates.now(), 100, float64(size)) || b.loads.get().GetMessagesPerSecond() != s.rates.now().messages {
			t.Fatalf("%+v, the broker has %v", s.rates.now(), b.loads.get())
		}
		if stats := log.Stats(); stats.Messages != 0 {
			t.Fatalf("the store has taken %d messages", stats.Messages)
		}
		offer()
		time.Sleep(time.Millisecond)
		b.sample(time.Now()) // too early to tell anything
		close(st.ready)
		if _, err := log.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.sample(time.Now())
		if !near(s.rates.now(), 100, float64(size)) {
			t.Fatalf("sealed: %+v", s.rates.now())
		}
	})
}

// slow is a store that takes no chunk with messages until it is ready.
type slow struct {
	store.Store
	ready chan struct{}
}

func (s slow) Create(ctx context.Context, path string, content []store.Part) error {
	if !strings.HasSuffix(path, "/00000000000000000000.log") {
		select {
		case <-s.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.Create(ctx, path, content)
}

// dropped takes acks that nobody waits for.
type dropped struct{}

func (dropped) Acked([]seglog.Ack) {}

func loadBatch(t *testing.T, n int) []byte {
	b := record.NewBuilder(record.None)
	for range n {
		if err := b.Append(0, nil, []byte("value"), nil); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Finish(nil, -1, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// BenchmarkSampleIdle is a second of a segment with 100,000 partitions that
// nobody writes to; BenchmarkSampleBusy of one all of whose partitions are
// written to.
func BenchmarkSampleIdle(b *testing.B) { benchmarkSample(b, 0) }

func BenchmarkSampleBusy(b *testing.B) { benchmarkSample(b, 100_000) }

func benchmarkSample(b *testing.B, busy int32) {
	r := newRates(1, 0, 100_000)
	traffic := make([]seglog.Traffic, busy)
	for p := range traffic {
		traffic[p] = offered(int32(p), 100, 10_000)
	}
	r.take(traffic, time.Second)
	r.report(true)
	b.ReportAllocs()
	for b.Loop() {
		r.take(traffic, time.Second)
		if r.report(false) != nil {
			b.Fatal("what has not changed is reported")
		}
	}
}
