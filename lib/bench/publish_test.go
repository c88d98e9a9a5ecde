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
		out := measure(t, Options{Rate: 1000, Size: 100, Producers: 1, Duration: 10 * time.Second, Settle: time.Minute},
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
	out := measure(t, Options{Rate: 100, Size: 50, Producers: 1, Warmup: 5 * time.Second, Duration: 10 * time.Second, Settle: time.Minute},
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
		{Rate: 1000, Messages: 777, Warmup: time.Second},
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
	out := measure(t, Options{Rate: 100, Size: 16, Producers: 1, Duration: time.Second, Settle: time.Minute},
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
	out := measure(t, Options{Rate: 100, Size: 16, Producers: 1, Duration: 10 * time.Second, Settle: 5 * time.Second}, f)
	if out.Unsent == 0 || out.Messages+out.Unsent != 1000 || out.Errors() != out.Unsent {
		t.Errorf("%+v", out)
	}
}

// What interrupts a run leaves what it has found so far.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRun(Options{Rate: 100, Size: 16, Producers: 1, Duration: time.Hour, Settle: time.Minute}, 7, (&fake{takes: time.Millisecond}).open)
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
	o := Options{Rate: 1000, Producers: 4, Messages: 10, Warmup: time.Second, Duration: 3 * time.Second}
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
		if got := s.left(4*time.Second - 4*time.Millisecond + time.Duration(k)*time.Millisecond); got != 1 {
			t.Errorf("producer %d: %d are left of the last one", k, got)
		}
	}
	if total != 10 {
		t.Errorf("%d messages in all", total)
	}
	if _, ok := (Options{Producers: 1}).schedule(0).due(5); ok {
		t.Error("a message is due without a rate")
	}
}

func TestValidate(t *testing.T) {
	good := Options{Rate: 1, Size: 16, Producers: 1, Messages: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Options){
		"rate":     func(o *Options) { o.Rate = -1 },
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
func publishIdle(tb testing.TB, messages int64, rate float64) {
	r, err := NewRun(Options{Rate: rate, Size: 1024, Producers: 1, Messages: messages}, 7, new(idle).open)
	if err != nil {
		tb.Fatal(err)
	}
	if out, err := r.Publish(context.Background()); err != nil || out.Messages != messages {
		tb.Fatalf("%v, %+v", err, out)
	}
}

// Runs cost the same number of allocations, however many messages they have.
func TestNoAllocationPerMessage(t *testing.T) {
	for _, rate := range []float64{0, 1e9} {
		few := testing.AllocsPerRun(3, func() { publishIdle(t, 100, rate) })
		many := testing.AllocsPerRun(3, func() { publishIdle(t, 100_000, rate) })
		if many-few > 100 {
			t.Errorf("at a rate of %v: %v allocations for 100 messages, %v for 100000", rate, few, many)
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
	publishIdle(b, int64(b.N/100*100+100), 0)
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
		r, err := NewRun(Options{Rate: 100, Size: 16, Producers: 1, Duration: time.Hour, Settle: time.Minute}, 7, (&fake{}).open)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := r.EndToEnd(t.Context(), broken{}); !errors.Is(err, smq.ErrNotFound) || time.Since(begun) > time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}
