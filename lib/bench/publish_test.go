package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// fake is a publisher whose messages are acked one after the other.
type fake struct {
	began time.Time
	told  func(client.Results)
	queue chan uint64 // tokens
	ended chan struct{}

	takes    time.Duration // how long each message takes to be acked
	stall    time.Duration // no ack comes from this time on
	until    time.Duration // to this one
	blocking bool          // Publish waits as well while it stalls
	level    client.AckLevel
	fail     func(n int) error // of the n-th message; nil: none fails
}

func (f *fake) open(told func(client.Results)) (Publisher, error) {
	f.began, f.told, f.queue, f.ended = time.Now(), told, make(chan uint64, 1e6), make(chan struct{})
	go func() {
		defer close(f.ended)
		n := 0
		for token := range f.queue {
			time.Sleep(f.takes)
			f.wait()
			r := client.Results{Tokens: []uint64{token}, Level: f.level}
			if f.fail != nil {
				r.Err = f.fail(n)
			}
			n++
			f.told(r)
		}
	}()
	return f, nil
}

// wait waits for the end of the stall.
func (f *fake) wait() {
	if at := time.Since(f.began); at >= f.stall && at < f.until {
		time.Sleep(f.until - at)
	}
}

func (f *fake) Publish(ctx context.Context, m *client.Message) error {
	if f.blocking {
		f.wait()
	}
	f.queue <- m.Token
	return ctx.Err()
}

func (f *fake) Close(context.Context) error {
	close(f.queue)
	<-f.ended
	return nil
}

// measure runs in a bubble, whose time is exact.
func measure(t *testing.T, o Options, f *fake) (out Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRun(o, 7, f.open)
		if err != nil {
			t.Fatal(err)
		}
		if out, err = r.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return out
}

// near allows for the three digits that are kept.
func near(got, want time.Duration) bool { return got >= want && got <= want+want/500+time.Microsecond }

// A stall of a second counts for all that was due meanwhile, whether the
// publisher takes messages while it lasts or not.
func TestAStallIsNotForgotten(t *testing.T) {
	for _, blocking := range []bool{false, true} {
		out := measure(t, Options{Stages: []Stage{{Rate: 1000}}, Size: 100, Producers: 1, Duration: 10 * time.Second, Settle: time.Minute},
			&fake{stall: 5 * time.Second, until: 6 * time.Second, blocking: blocking})
		if out.Messages != 10_000 || out.Ack.Count != 10_000 || out.Errors() != 0 {
			t.Errorf("%+v", out)
		}
		if !near(out.Ack.Max, time.Second) || !near(out.Ack.P99, 900*time.Millisecond) || out.Ack.P50 > time.Microsecond {
			t.Errorf("blocking %v: %+v", blocking, out.Ack)
		}
	}
}

func TestRates(t *testing.T) {
	out := measure(t, Options{Stages: []Stage{{Rate: 100}}, Size: 50, Producers: 1, Warmup: 5 * time.Second, Duration: 10 * time.Second, Settle: time.Minute},
		&fake{takes: 2 * time.Millisecond, level: client.AckReplicated})
	if out.Messages != 1000 || out.Replicated != 1000 || out.Stored != 0 || out.Bytes != 50_000 {
		t.Errorf("%+v", out)
	}
	// From 5 s to 14.99 s, and the time of the last ack.
	if want := 9992 * time.Millisecond; out.Elapsed != want {
		t.Errorf("elapsed %v, want %v", out.Elapsed, want)
	}
	if !near(out.Ack.Least, 2*time.Millisecond) || !near(out.Ack.Max, 2*time.Millisecond) {
		t.Errorf("%+v", out.Ack)
	}
	if got := out.MessagesPerSecond(); got < 100 || got > 100.1 {
		t.Errorf("%v messages a second", got)
	}
}

// What counts is limited by number, after the warm-up.
func TestANumberOfMessages(t *testing.T) {
	for _, o := range []Options{
		{Stages: []Stage{{Rate: 1000}}, Messages: 777, Warmup: time.Second},
		{InFlight: 4, Messages: 777, Warmup: time.Second},
		{InFlight: 1, Messages: 777},
	} {
		o.Size, o.Producers, o.Settle = 16, 1, time.Minute
		out := measure(t, o, &fake{takes: time.Millisecond})
		if out.Messages != 777 || out.Ack.Count != 777 || out.Stored != 777 {
			t.Errorf("%+v: %+v", o, out)
		}
		if o.InFlight > 0 && !near(out.Ack.P50, time.Duration(o.InFlight)*time.Millisecond) {
			t.Errorf("with %d under way: %+v", o.InFlight, out.Ack)
		}
	}
}

func TestFailuresAreCounted(t *testing.T) {
	out := measure(t, Options{Stages: []Stage{{Rate: 100}}, Size: 16, Producers: 1, Duration: time.Second, Settle: time.Minute},
		&fake{fail: func(n int) error {
			if n%10 == 3 {
				return smq.ErrNoSpace
			}
			return nil
		}})
	if out.Messages != 90 || out.Failed != 10 || out.Errors() != 10 || !errors.Is(out.FirstErr, smq.ErrNoSpace) || out.Ack.Count != 90 {
		t.Errorf("%+v", out)
	}
}

// A rate that is far too high ends a while after its time, and what was not
// offered by then is told.
func TestARateThatIsNotReached(t *testing.T) {
	f := &fake{stall: 2 * time.Second, until: time.Hour, blocking: true}
	out := measure(t, Options{Stages: []Stage{{Rate: 100}}, Size: 16, Producers: 1, Duration: 10 * time.Second, Settle: 5 * time.Second}, f)
	if out.Unsent == 0 || out.Messages+out.Unsent != 1000 || out.Errors() != out.Unsent {
		t.Errorf("%+v", out)
	}
}

// What interrupts a run leaves what it has found so far.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRun(Options{Stages: []Stage{{Rate: 100}}, Size: 16, Producers: 1, Duration: time.Hour, Settle: time.Minute}, 7, (&fake{takes: time.Millisecond}).open)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Microsecond)
		defer cancel()
		out, err := r.Publish(ctx)
		if err != nil || out.Messages != 1001 || r.Acked() != 1001 {
			t.Errorf("%v, %+v", err, out)
		}
	})
}

// The producers' messages interleave evenly.
func TestSchedules(t *testing.T) {
	o := Options{Stages: []Stage{{Rate: 1000}}, Producers: 4, Messages: 10, Warmup: time.Second, Duration: 3 * time.Second}
	var total int64
	for k := range 4 {
		s := o.schedule(k)
		if at, ok := s.due(3); !ok || at != time.Duration(12+k)*time.Millisecond {
			t.Errorf("producer %d: the fourth message is due at %v", k, at)
		}
		total += s.most
		if s.over(4*time.Second-1, 0) || !s.over(4*time.Second, 0) || !s.over(0, 3) || s.counts(time.Second-1) || !s.counts(time.Second) {
			t.Errorf("producer %d: %+v", k, s)
		}
		if got := s.left(999); got != 1 {
			t.Errorf("producer %d: %d are left of the last one", k, got)
		}
		if got := s.left(1000); got != 0 {
			t.Errorf("producer %d: %d are left behind the last one", k, got)
		}
	}
	if total != 10 {
		t.Errorf("%d messages in all", total)
	}
	if _, ok := (Options{Producers: 1}).schedule(0).due(5); ok {
		t.Error("a message is due without a rate")
	}
}

// Rates follow one another, for all producers at the same time; the first one is
// that of the warm-up too.
func TestStages(t *testing.T) {
	stages := []Stage{{Rate: 100, For: 2 * time.Second}, {Rate: 0, For: time.Second}, {Rate: 1000, For: time.Second}}
	for _, producers := range []int{1, 3} {
		o := Options{Stages: stages, Size: 16, Producers: producers, Warmup: time.Second, Settle: time.Minute}
		for i := range int64(1300) {
			at, _ := o.schedule(int(i) % producers).due(i / int64(producers))
			want := time.Duration(i) * 10 * time.Millisecond
			if i >= 300 {
				want = 4*time.Second + time.Duration(i-300)*time.Millisecond
			}
			if at != want {
				t.Fatalf("%d producers: message %d is due at %v, want %v", producers, i, at, want)
			}
		}
		for k := range producers {
			s := o.schedule(k)
			left := s.left(0)
			if at, _ := s.due(left - 1); s.over(at, 0) {
				t.Errorf("producer %d of %d: the last of %d is not due any more", k, producers, left)
			}
			if at, _ := s.due(left); !s.over(at, 0) {
				t.Errorf("producer %d of %d: one more than %d is due", k, producers, left)
			}
		}
	}
	f := &fake{}
	out := measure(t, Options{Stages: stages, Size: 16, Producers: 1, Warmup: time.Second, Settle: time.Minute}, f)
	if out.Messages != 1200 || out.Elapsed < 3999*time.Millisecond-time.Second || out.Elapsed > 4*time.Second {
		t.Errorf("%+v", out)
	}
	// An earlier end cuts a stage short.
	out = measure(t, Options{Stages: stages, Size: 16, Producers: 1, Warmup: time.Second, Duration: time.Second, Settle: time.Minute}, &fake{})
	if out.Messages != 100 {
		t.Errorf("%+v", out)
	}
	given := Options{Stages: stages, Producers: 1, Duration: 3500 * time.Millisecond}
	if got := given.schedule(0).left(0); got != 700 {
		t.Errorf("%d messages are due in 3.5 s, not 700", got)
	}
}

// During tells of the seconds asked for, and of no others.
func TestDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{stall: 5 * time.Second, until: 5500 * time.Millisecond}
		r, err := NewRun(Options{Stages: []Stage{{Rate: 100}}, Size: 16, Producers: 1, Duration: 10 * time.Second, Settle: time.Minute}, 7, f.open)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := func(d time.Duration) time.Time { return r.Began().Add(d) }
		if l := r.During(at(5100*time.Millisecond), at(5200*time.Millisecond)); l.Count != 100 || l.P99 < 480*time.Millisecond || l.P50 > time.Microsecond {
			t.Errorf("the second of the stall: %+v", l)
		}
		if l := r.During(at(3*time.Second), at(4999*time.Millisecond)); l.Count != 200 || l.Max > time.Microsecond {
			t.Errorf("the two before: %+v", l)
		}
		if l := r.During(at(-time.Hour), at(time.Hour)); l.Count != 1000 || l.Max < 500*time.Millisecond {
			t.Errorf("all: %+v", l)
		}
		if l := r.During(at(20*time.Second), at(time.Hour)); l != (Latency{}) {
			t.Errorf("behind the end: %+v", l)
		}
	})
}

// Each stage is told of by itself.
func TestStagesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{stall: 4 * time.Second, until: 4500 * time.Millisecond} // in the second stage
		r, err := NewRun(Options{Stages: []Stage{{Rate: 100, For: 2 * time.Second}, {Rate: 200, For: 3 * time.Second}, {Rate: 50, For: 2 * time.Second}},
			Size: 16, Producers: 1, Warmup: time.Second, Settle: time.Minute}, 7, f.open)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := r.Stages()
		for i, want := range []struct {
			count int64
			slow  bool
		}{{200, false}, {600, true}, {100, false}} {
			if l := all[i]; l.Count != want.count || (l.Max > 400*time.Millisecond) != want.slow {
				t.Errorf("stage %d: %+v", i, l)
			}
		}
	})
}

// However long a run, its windows are bounded, and none of them is lost.
func TestWindowsGrowLonger(t *testing.T) {
	w := newWindows()
	for i := range 5000 {
		if i%7 != 0 { // some seconds have none
			w.add(time.Duration(i)*time.Second, time.Duration(1+i)*time.Millisecond)
		}
	}
	if len(w.hists) > mostWindows || w.length != 16*time.Second {
		t.Errorf("%d windows of %v", len(w.hists), w.length)
	}
	if l := w.during(0, 5000*time.Second); l.Count != 5000-715 {
		t.Errorf("%d messages in all", l.Count)
	}
	if l := w.during(1607*time.Second, 1608*time.Second); l.Count < 13 || l.Least > 1602*time.Millisecond || l.Least < 1580*time.Millisecond || l.Max < 1610*time.Millisecond || l.Max > 1640*time.Millisecond {
		t.Errorf("from 1600 s to 1616 s: %+v", l)
	}
}

func TestValidate(t *testing.T) {
	good := Options{Stages: []Stage{{Rate: 1}}, Size: 16, Producers: 1, Messages: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Options){
		"rate":     func(o *Options) { o.Stages = []Stage{{Rate: -1}} },
		"standing": func(o *Options) { o.Stages = []Stage{{For: time.Second}} },
		"stages":   func(o *Options) { o.Stages = []Stage{{Rate: 1}, {Rate: 2, For: time.Second}} },
		"endless":  func(o *Options) { o.Stages = []Stage{{Rate: 1, For: time.Second}, {Rate: 0}} },
		"size":     func(o *Options) { o.Size = 15 },
		"large":    func(o *Options) { o.Size = smq.MaxMessageSize + 1 },
		"nobody":   func(o *Options) { o.Producers = 0 },
		"both":     func(o *Options) { o.InFlight = 1 },
		"no end":   func(o *Options) { o.Messages = 0 },
		"negative": func(o *Options) { o.Warmup = -1 },
	} {
		o := good
		spoil(&o)
		if err := o.Validate(); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// idle acks at once, a hundred messages at a time, and allocates nothing.
type idle struct {
	told   func(client.Results)
	tokens []uint64
}

func (n *idle) open(told func(client.Results)) (Publisher, error) {
	n.told, n.tokens = told, make([]uint64, 0, 100)
	return n, nil
}

func (n *idle) Publish(_ context.Context, m *client.Message) error {
	if n.tokens = append(n.tokens, m.Token); len(n.tokens) == cap(n.tokens) {
		n.told(client.Results{Tokens: n.tokens})
		n.tokens = n.tokens[:0]
	}
	return nil
}

func (n *idle) Close(context.Context) error { return nil }

// publishIdle publishes a number of messages to nobody.
func publishIdle(tb testing.TB, messages int64, stages ...Stage) {
	r, err := NewRun(Options{Stages: stages, Size: 1024, Producers: 1, Messages: messages}, 7, new(idle).open)
	if err != nil {
		tb.Fatal(err)
	}
	if out, err := r.Publish(context.Background()); err != nil || out.Messages != messages {
		tb.Fatalf("%v, %+v", err, out)
	}
}

// Runs cost the same number of allocations, however many messages they have.
func TestNoAllocationPerMessage(t *testing.T) {
	for _, stages := range [][]Stage{nil, {{Rate: 1e9}}} {
		few := testing.AllocsPerRun(3, func() { publishIdle(t, 100, stages...) })
		many := testing.AllocsPerRun(3, func() { publishIdle(t, 100_000, stages...) })
		if many-few > 100 {
			t.Errorf("at rates of %v: %v allocations for 100 messages, %v for 100000", stages, few, many)
		}
	}
	rc := &receiver{run: &Run{id: 7}, latencies: newLatencies(), tally: newTally()}
	value := filler(100)
	stamp(value, 7, time.Second)
	if n := testing.AllocsPerRun(100, func() { rc.take(value, 2*time.Second) }); n > 0 {
		t.Errorf("%v allocations to receive a message", n)
	}
}

func BenchmarkProduce(b *testing.B) {
	b.ReportAllocs()
	publishIdle(b, int64(b.N/100*100+100))
}

func BenchmarkReceive(b *testing.B) {
	rc := &receiver{run: &Run{id: 7}, latencies: newLatencies(), tally: newTally()}
	value := filler(100)
	stamp(value, 7, time.Second)
	b.ReportAllocs()
	for i := range b.N {
		rc.take(value, time.Second+time.Duration(i)*time.Microsecond)
	}
}

// broken gives nothing but an error.
type broken struct{}

func (broken) Poll(context.Context) (*client.Fetch, error) { return nil, smq.ErrNotFound }

// Publishing ends when nothing can be received.
func TestReceivingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRun(Options{Stages: []Stage{{Rate: 100}}, Size: 16, Producers: 1, Duration: time.Hour, Settle: time.Minute}, 7, (&fake{}).open)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := r.EndToEnd(t.Context(), broken{}); !errors.Is(err, smq.ErrNotFound) || time.Since(begun) > time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}
