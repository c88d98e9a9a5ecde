package pub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// fakePublisher acks what it gets, but for what the test says. It tells the
// results when it is closed, or when asked for.
type fakePublisher struct {
	results func(client.Results)
	fate    func(m client.Message) error // of a message; nil: acked
	refuse  func(m client.Message) error // instead of taking it
	onTake  func(m client.Message)

	mu    sync.Mutex
	taken []client.Message
	told  int
}

func (f *fakePublisher) Publish(_ context.Context, m *client.Message) error {
	if f.refuse != nil {
		if err := f.refuse(*m); err != nil {
			return err
		}
	}
	f.mu.Lock()
	copied := *m
	copied.Key, copied.Value = copyBytes(m.Key), copyBytes(m.Value)
	f.taken = append(f.taken, copied)
	f.mu.Unlock()
	if f.onTake != nil {
		f.onTake(copied)
	}
	return nil
}

func (f *fakePublisher) Close(context.Context) error {
	f.tell()
	return nil
}

func (f *fakePublisher) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; f.told < len(f.taken); f.told++ {
		m := f.taken[f.told]
		r := client.Results{Partition: max(m.Partition, 0), Tokens: []uint64{m.Token}, BaseOffset: int64(f.told), Level: client.AckStored}
		if f.fate != nil {
			if r.Err = f.fate(m); r.Err != nil {
				r.BaseOffset = -1
			}
		}
		f.results(r)
	}
}

func (f *fakePublisher) values() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, m := range f.taken {
		all = append(all, string(m.Value))
	}
	return strings.Join(all, " ")
}

// setup is a pump of lines with everything around it.
type setup struct {
	pump           *pump
	fake           *fakePublisher
	env            *cli.Env
	errOut         bytes.Buffer
	failed, report bytes.Buffer
}

func newSetup(keep, report bool) *setup {
	s := &setup{fake: &fakePublisher{}}
	var k, r io.Writer
	if keep {
		k = &s.failed
	}
	if report {
		r = &s.report
	}
	t := newTally(k, r)
	s.fake.results = t.results
	s.env = &cli.Env{Name: "smq-pub", Stderr: &s.errOut, Getenv: func(string) string { return "" }}
	s.pump = &pump{source: plain(&lines{delimiter: []byte("\n")}), to: s.fake, tally: t, warn: s.env.Warnf}
	return s
}

func (s *setup) deliver(ctx context.Context, texts ...string) error {
	var inputs []input
	for i, text := range texts {
		inputs = append(inputs, input{name: fmt.Sprint("file", i), open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}})
	}
	return deliver(ctx, s.env, s.pump, inputs, false)
}

func TestDeliverAll(t *testing.T) {
	s := newSetup(true, true)
	if err := s.deliver(t.Context(), "a\nb", "c\n"); err != nil {
		t.Fatal(err)
	}
	if got := s.fake.values(); got != "a b c" {
		t.Errorf("published %s", got)
	}
	if !strings.HasPrefix(s.errOut.String(), "smq-pub: sent 3, acked 3, failed 0, 3 bytes, ") || strings.Count(s.errOut.String(), "\n") != 1 {
		t.Errorf("stderr %q", s.errOut.String())
	}
	want := `{"message":1,"partition":0,"offset":0,"ack":"stored"}
{"message":2,"partition":0,"offset":1,"ack":"stored"}
{"message":3,"partition":0,"offset":2,"ack":"stored"}
`
	if s.report.String() != want || s.failed.Len() > 0 {
		t.Errorf("report %s, failures %s", s.report.String(), s.failed.String())
	}
	if len(s.pump.tally.held) > 0 {
		t.Errorf("%d messages are still held", len(s.pump.tally.held))
	}
}

func TestFailuresAreKeptAsEnvelopes(t *testing.T) {
	s := newSetup(true, true)
	s.fake.fate = func(m client.Message) error {
		switch string(m.Value) {
		case "b":
			return fmt.Errorf("%w: %w", client.ErrNotStored, smq.ErrTimeout)
		case "c":
			return fmt.Errorf("%w: %w", client.ErrUnknown, smq.ErrUnavailable)
		}
		return nil
	}
	s.fake.onTake = func(client.Message) { s.fake.tell() }
	err := s.deliver(t.Context(), "a\nb\nc\nd\n")
	if cli.ExitCode(err, nil) != cli.ExitPartly || err.Error() != "2 of 4 messages are not acked: not stored: timed out" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(s.errOut.String(), "sent 4, acked 2, failed 2, 4 bytes, ") || !strings.Contains(s.errOut.String(), "(1 of the failed may be stored)") {
		t.Errorf("stderr %q", s.errOut.String())
	}
	if got := s.report.String(); !strings.Contains(got, `{"message":2,"partition":0,"stored":"no","error":"not stored: timed out"}`) ||
		!strings.Contains(got, `{"message":3,"partition":0,"stored":"unknown","error":"unknown whether it is stored: unavailable"}`) {
		t.Errorf("report %s", got)
	}
	again, err := readAll(plain(&envelopes{}), &s.failed)
	if err != nil || strings.Join(again, " ") != `null:"b" p0 null:"c" p0` {
		t.Errorf("kept %s, %v", again, err)
	}
}

func TestFirstFailureEndsReading(t *testing.T) {
	s := newSetup(false, false)
	s.fake.fate = func(client.Message) error { return fmt.Errorf("%w: %w", client.ErrNotStored, smq.ErrTimeout) }
	in, out := io.Pipe()
	s.fake.onTake = func(client.Message) { s.fake.tell() }
	go out.Write([]byte("a\n")) // and then nothing, for ever
	inputs := []input{{name: "pipe", open: func() (io.ReadCloser, error) { return in, nil }}}
	err := deliver(t.Context(), s.env, s.pump, inputs, false)
	if cli.ExitCode(err, nil) != cli.ExitUnreachable || s.fake.values() != "a" {
		t.Errorf("published %s: %v", s.fake.values(), err)
	}
}

// TestFirstFailureEndsWhatWasReadAhead: nothing is published behind a gap, not
// even what was read already.
func TestFirstFailureEndsWhatWasReadAhead(t *testing.T) {
	s := newSetup(false, false)
	s.fake.fate = func(client.Message) error { return fmt.Errorf("%w: %w", client.ErrNotStored, smq.ErrTimeout) }
	s.fake.onTake = func(client.Message) { s.fake.tell() }
	if err := s.deliver(t.Context(), "a\nb\nc\n", "d\n"); err == nil || s.fake.values() != "a" {
		t.Errorf("published %s: %v", s.fake.values(), err)
	}
}

func TestRefusedMessageNamesItself(t *testing.T) {
	s := newSetup(false, false)
	s.fake.refuse = func(m client.Message) error {
		if string(m.Value) == "c" {
			return fmt.Errorf("%w partition 9", smq.ErrInvalid)
		}
		return nil
	}
	err := s.deliver(t.Context(), "a\n", "b\nc\nd\n")
	if cli.ExitCode(err, nil) != cli.ExitPartly || err.Error() != "file1, message 2: invalid partition 9" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(s.errOut.String(), "sent 3, acked 2, failed 1") {
		t.Errorf("stderr %q", s.errOut.String())
	}
}

func TestBadInputIsNoUsageError(t *testing.T) {
	s := newSetup(false, false)
	s.pump.source = plain(&envelopes{})
	err := s.deliver(t.Context(), "nonsense")
	if cli.ExitCode(err, nil) != cli.ExitFailed || !strings.HasPrefix(err.Error(), "cannot read file0, message 1: invalid JSON") {
		t.Errorf("%v", err)
	}
	err = s.deliver(t.Context(), "{\"value\":\"a\"}\nnonsense")
	if cli.ExitCode(err, nil) != cli.ExitPartly {
		t.Errorf("after a good one: %v", err)
	}
}

// TestKeptFailuresEndNoReading goes on behind what cannot be read and what the
// publisher does not take, when failures are kept.
func TestKeptFailuresEndNoReading(t *testing.T) {
	large := strings.Repeat("x", smq.MaxMessageSize+3<<20)
	for name, test := range map[string]struct {
		source source
		text   string
		want   string // the error
	}{
		"a large line":       {&lines{delimiter: []byte("--")}, "a--" + large + "--b--refused--c", "2 of 5 messages are not acked: file0, message 2: too large: "},
		"the last is large":  {&lines{delimiter: []byte("\n")}, "a\nrefused\nb\nc\n" + large, "2 of 5 messages are not acked: "},
		"JSON, not envelope": {&envelopes{}, `{"value":"a"} 5 {"value":"b"}` + "\n" + `{"value":"refused"}{"value":"c"}`, "2 of 5 messages are not acked: file0, message 2: invalid envelope"},
	} {
		s := newSetup(true, false)
		s.pump.source = plain(test.source)
		s.fake.refuse = func(m client.Message) error {
			if string(m.Value) == "refused" {
				return fmt.Errorf("%w partition 9", smq.ErrInvalid)
			}
			return nil
		}
		err := s.deliver(t.Context(), test.text)
		if cli.ExitCode(err, nil) != cli.ExitPartly || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.fake.values(); got != "a b c" {
			t.Errorf("%s: published %q", name, got)
		}
		if got := s.failed.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"refused"`) {
			t.Errorf("%s: kept %q", name, got)
		}
		if got := s.errOut.String(); !strings.Contains(got, "is left out: ") || !strings.Contains(got, "(1 of the failed could not be read and are not kept)") {
			t.Errorf("%s: stderr %q", name, got)
		}
	}
}

// TestBrokenJSONEndsReading keeps failures, but cannot tell what comes next.
func TestBrokenJSONEndsReading(t *testing.T) {
	s := newSetup(true, false)
	s.pump.source = plain(&envelopes{})
	err := s.deliver(t.Context(), `{"value":"a"} {"value" {"value":"b"}`)
	if cli.ExitCode(err, nil) != cli.ExitPartly || !strings.Contains(err.Error(), "message 2: invalid JSON") {
		t.Errorf("%v", err)
	}
}

// TestSignalFlushesWhatWasRead interrupts a pipe that has given two lines and a
// half.
func TestSignalFlushesWhatWasRead(t *testing.T) {
	s := newSetup(false, false)
	ctx, cancel := context.WithCancelCause(t.Context())
	in, out := io.Pipe()
	s.fake.onTake = func(m client.Message) {
		if string(m.Value) == "b" {
			cancel(&cli.SignalError{Signal: syscall.SIGINT})
		}
	}
	go out.Write([]byte("a\nb\nhalf"))
	inputs := []input{{name: "pipe", open: func() (io.ReadCloser, error) { return in, nil }}}
	s.env.Flags.Timeout = cli.Duration(1e9)
	err := deliver(ctx, s.env, s.pump, inputs, false)
	if code := cli.ExitCode(err, context.Cause(ctx)); code != 130 || s.fake.values() != "a b" {
		t.Errorf("exit code %d (%v), published %s", code, err, s.fake.values())
	}
	if got := s.errOut.String(); !strings.Contains(got, "sent 2, acked 2, failed 0") || !strings.Contains(got, "4 bytes of an unfinished message were read and not sent") {
		t.Errorf("stderr %q", got)
	}
}

// stuckPublisher takes messages and never gets an ack.
type stuckPublisher struct{ fakePublisher }

func (s *stuckPublisher) Close(ctx context.Context) error {
	<-ctx.Done()
	s.fate = func(client.Message) error { return fmt.Errorf("%w: %w", client.ErrUnknown, ctx.Err()) }
	s.tell()
	return ctx.Err()
}

// TestSignalDoesNotWaitForever: nobody acks, and the flush ends after --timeout.
func TestSignalDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(false, false)
		stuck := &stuckPublisher{}
		stuck.results = s.pump.tally.results
		s.pump.to = stuck
		s.env.Flags.Timeout = cli.Duration(10 * time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, func() { cancel(&cli.SignalError{Signal: syscall.SIGINT}) })
		err := s.deliver(ctx, "a\nb\n")
		if code := cli.ExitCode(err, context.Cause(ctx)); code != 130 || err.Error() != "interrupted by SIGINT: 2 of 2 messages are not acked" {
			t.Errorf("exit code %d: %v", code, err)
		}
		if waited := time.Since(start); waited != 11*time.Second {
			t.Errorf("waited %v of virtual time", waited)
		}
	})
}

// interrupted delivers lines, "1000", "1001" and so on, at a rate, and is interrupted after
// a second. It returns when each was published.
func interrupted(t *testing.T, s *setup, lines int, pace string) (taken []time.Duration, err error) {
	t.Helper()
	if s.pump.pace, err = parseRate(pace); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range lines {
		fmt.Fprintln(&text, 1000+i)
	}
	s.env.Flags.Timeout = cli.Duration(10 * time.Second)
	ctx, cancel := context.WithCancelCause(t.Context())
	start := time.Now()
	s.fake.onTake = func(m client.Message) {
		if string(m.Value) != fmt.Sprint(1000+len(taken)) {
			t.Errorf("%q is published behind %d others", m.Value, len(taken))
		}
		taken = append(taken, time.Since(start))
	}
	time.AfterFunc(time.Second, func() { cancel(&cli.SignalError{Signal: syscall.SIGINT}) })
	err = s.deliver(ctx, text.String())
	if code := cli.ExitCode(err, context.Cause(ctx)); code != 130 {
		t.Errorf("exit code %d: %v", code, err)
	}
	return taken, err
}

// What was read when a signal came is sent as slowly as all else.
func TestSignalKeepsTheRate(t *testing.T) {
	for _, rate := range []string{"10/s", "40B/s"} { // four bytes a message
		synctest.Test(t, func(t *testing.T) {
			s := newSetup(false, false)
			taken, err := interrupted(t, s, 40, rate)
			if !errors.As(err, new(*cli.SignalError)) || len(taken) != 40 {
				t.Errorf("%s: published %d: %v", rate, len(taken), err)
			}
			for i, at := range taken {
				if due := time.Duration(i) * 100 * time.Millisecond; at < due-100*time.Millisecond {
					t.Errorf("%s: message %d is published after %v, in a burst", rate, i, at)
				}
			}
			if got := s.errOut.String(); !strings.Contains(got, "sent 40, acked 40, failed 0") || strings.Contains(got, "not sent") {
				t.Errorf("%s: stderr %q", rate, got)
			}
		})
	}
}

// There is half of the time to flush for that. What is left then is not sent, but
// told of and kept, in order.
func TestSignalLeavesWhatTheRateHasNoTimeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(true, true)
		s.fake.fate = func(m client.Message) error {
			if string(m.Value) == "1059" {
				return fmt.Errorf("%w: %w", client.ErrUnknown, smq.ErrTimeout)
			}
			return nil
		}
		start := time.Now()
		taken, err := interrupted(t, s, 1000, "10/s")
		if n := len(taken); n < 60 || n > 61 || time.Since(start) > 6*time.Second {
			t.Fatalf("published %d in %v", n, time.Since(start))
		}
		sent := len(taken)
		if want := fmt.Sprintf("interrupted by SIGINT: %d of 1000 messages are not acked", 1000-sent+1); err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		line := fmt.Sprintf("sent %d, acked %d, failed %d, %d bytes, ", sent, sent-1, 1000-sent+1, 4*sent)
		more := fmt.Sprintf("(1 of the failed may be stored) (%d of the failed were read and not sent)", 1000-sent)
		if got := s.errOut.String(); !strings.Contains(got, line) || !strings.Contains(got, more) {
			t.Errorf("stderr %q", got)
		}
		kept, err := readAll(plain(&envelopes{}), &s.failed)
		if err != nil || len(kept) != 1000-sent+1 || kept[0] != `null:"1059" p0` || kept[len(kept)-1] != `null:"1999"` {
			t.Errorf("%d are kept, %.60v, %v", len(kept), kept, err)
		}
		report := strings.Split(s.report.String(), "\n")
		if last := report[max(0, len(report)-2)]; len(report) != 1001 || last != `{"message":1000,"stored":"no","error":"not stored: interrupted by SIGINT before it was sent"}` {
			t.Errorf("the last is reported as %s", last)
		}
	})
}

// Nothing is published behind a gap, also not when the gap comes while a message
// waits for its time.
func TestFirstFailureEndsWaitingForTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(false, false)
		s.pump.pace, _ = parseRate("1/s")
		s.env.Flags.Timeout = cli.Duration(10 * time.Second)
		s.fake.fate = func(client.Message) error { return fmt.Errorf("%w: %w", client.ErrNotStored, smq.ErrTimeout) }
		s.fake.onTake = func(client.Message) { time.AfterFunc(500*time.Millisecond, s.fake.tell) }
		if err := s.deliver(t.Context(), "a\nb\nc\n"); err == nil || s.fake.values() != "a" {
			t.Errorf("published %s: %v", s.fake.values(), err)
		}
	})
}

// A publisher whose buffer is full takes nothing more. What was read behind is told
// of when the time after the signal is over.
func TestSignalLeavesWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(true, false)
		full := &fullPublisher{fits: 3}
		full.results = s.pump.tally.results
		s.pump.to = full
		s.env.Flags.Timeout = cli.Duration(10 * time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(&cli.SignalError{Signal: syscall.SIGTERM}) })
		err := s.deliver(ctx, "a\nb\nc\nd\ne\nf\n")
		if code := cli.ExitCode(err, context.Cause(ctx)); code != 143 || err.Error() != "interrupted by SIGTERM: 6 of 6 messages are not acked" {
			t.Errorf("exit code %d: %v", code, err)
		}
		if got := s.errOut.String(); !strings.Contains(got, "sent 3, acked 0, failed 6, 3 bytes") || !strings.Contains(got, "(3 of the failed may be stored) (3 of the failed were read and not sent)") {
			t.Errorf("stderr %q", got)
		}
		kept, err := readAll(plain(&envelopes{}), &s.failed)
		if err != nil || strings.Join(kept, " ") != `null:"a" p0 null:"b" p0 null:"c" p0 null:"d" null:"e" null:"f"` {
			t.Errorf("kept %s, %v", kept, err)
		}
	})
}

// fullPublisher has room for some messages, and never gets an ack.
type fullPublisher struct {
	stuckPublisher
	fits int
}

func (f *fullPublisher) Publish(ctx context.Context, m *client.Message) error {
	if f.fits == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	f.fits--
	return f.stuckPublisher.Publish(ctx, m)
}

func TestTeePassesInputOn(t *testing.T) {
	s := newSetup(false, false)
	var out bytes.Buffer
	s.pump.tee = &out
	if err := s.deliver(t.Context(), "a\nb", "c"); err != nil || out.String() != "a\nbc" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestStoppedFeedGivesWhatItHas stops a feed that has read some blocks of its
// input but not its end.
func TestStoppedFeedGivesWhatItHas(t *testing.T) {
	in, out := io.Pipe()
	stop := make(chan struct{})
	var read atomic.Int64
	f := newFeed(in, stop, &read)
	for range feedBlocks {
		out.Write([]byte("abc")) // returns when it is read
	}
	for read.Load() < 3*feedBlocks {
		runtime.Gosched() // a block is counted once it can be had
	}
	close(stop)
	got, err := io.ReadAll(f)
	if want := strings.Repeat("abc", feedBlocks); err != errStopped || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestLateInputIsCounted stops a feed that waits for input, which then comes.
func TestLateInputIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		stop := make(chan struct{})
		f := newFeed(in, stop, new(atomic.Int64))
		out.Write([]byte("abc"))
		if _, err := io.ReadFull(f, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until it waits for more
		close(stop)
		if _, err := io.ReadAll(f); err != errStopped || f.late() != 0 {
			t.Errorf("nothing has come: %v, %d", err, f.late())
		}
		out.Write([]byte("defg"))
		synctest.Wait()
		if n := f.late(); n != 4 {
			t.Errorf("%d bytes have come late", n)
		}
	})
}

func TestStopPassesThroughSources(t *testing.T) {
	template, err := newTemplate(`%k %v\n`)
	if err != nil {
		t.Fatal(err)
	}
	const whole1 = `{"value":"a"}`
	for name, test := range map[string]struct {
		source source
		text   string
		held   int // bytes of a message without an end
	}{
		"lines": {&lines{delimiter: []byte("\n")}, "ab\na", 1}, "lines, all": {&lines{delimiter: []byte("\n")}, "ab\n", 0}, "raw": {&whole{}, "ab", 2},
		"length": {&lengths{}, "\x00\x00\x00\x01a\x00\x00\x00\x09ab", 6}, "length, all": {&lengths{}, "\x00\x00\x00\x01a", 0},
		"length, in the length": {&lengths{}, "\x00", 1}, "json": {&envelopes{}, whole1 + "\n" + ` {"value"`, 8}, "json, all": {&envelopes{}, whole1 + "\n", 0},
		"json, on lines": {&envelopes{}, "{\n\"value\"", 9}, "json, on lines, all": {&envelopes{}, "{\n\"value\":\"a\"}\n", 0},
		"template": {template, "a b", 0}, "template, in the key": {template, "a", 0}, // it does not know
	} {
		test.source = plain(test.source)
		_, err := readAll(test.source, io.MultiReader(strings.NewReader(test.text), iotest.ErrReader(errStopped)))
		if !errors.Is(err, errStopped) {
			t.Errorf("%s: %v", name, err)
		}
		if got := test.source.(partial).unfinished(); got != test.held {
			t.Errorf("%s: %d bytes are said to be unfinished, not %d", name, got, test.held)
		}
	}
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, cli.ErrOutputClosed }

func TestClosedTeeIsNotDone(t *testing.T) {
	s := newSetup(false, false)
	s.pump.tee = closedWriter{}
	err := s.deliver(t.Context(), "a\nb\n")
	if code := cli.ExitCode(err, nil); code == cli.ExitDone {
		t.Errorf("exit code %d: %v", code, err)
	}
}

func TestRate(t *testing.T) {
	for text, want := range map[string]string{"1000/s": "1000 10 false", "10MB/s": "1e+07 100000 true", "0.5/s": "0.5 1 false", "2KiB/s": "2048 20 true", "100msg/s": "100 1 false"} {
		p, err := parseRate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprint(float64(p.limiter.Limit()), " ", p.limiter.Burst(), " ", p.bytes); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"0", "100", "2KiB", "-1/s", "fast", "/s", "1/h"} {
		if _, err := parseRate(text); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("%s: %v, want a usage error", text, err)
		}
	}
}

func TestFlagMistakes(t *testing.T) {
	folder := t.TempDir()
	file := folder + "/in"
	if err := os.WriteFile(file, []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args string
		code int
		want string
	}{
		{"", 2, "TOPIC is missing"},
		{"a/b/c", 2, `topic "a/b/c": invalid topic name: '/' is not allowed`},
		{"t -f jsn", 2, `format "jsn" is not one of lines, json, raw, length, did you mean json?`},
		{"t -f %q", 2, `template "%q": `},
		{"t -f raw -d x", 2, "-d and -K need lines"},
		{"t --each", 2, "--each needs a FILE"},
		{"t --each -f json " + file, 2, "--each takes files as they are"},
		{"t -f json --null", 2, "--null does not go with -f json"},
		{"t -p -2", 2, "partition -2"},
		{"t -p 1 --repartition", 2, "exclude each other"},
		{"t --tee --report", 2, "use one"},
		{"t --partitions 3", 2, "--partitions needs --create"},
		{"t --create --partitions 0", 2, "a topic has 1 to 1000000"},
		{"t --batch 1GB", 2, "--batch 1GB: use 1B to 16.1MiB"},
		{"t -H x", 2, `header "x" is not NAME=VALUE`},
		{"t -d \\q", 2, `unknown escape \q`},
		{"t --delimiter=", 2, "-d is empty"},
		{"t --acks stord", 2, `ack level "stord" is not one of stored, replicated, default, did you mean stored?`},
		{"t --compress lz5", 2, "did you mean lz4?"},
		{"t --rate x", 2, `--rate "x" is not a rate; write for instance 50000msg/s or 20MB/s`},
		{"t " + file + ".none", 4, "cannot read " + file + ".none: no such file or directory"},
		{"t --key-delimiter=", 2, "-K is empty"},
		{"t -p 1 --spread", 2, "-p and --spread exclude each other"},
		{"t --repartition", 2, "--repartition needs -f json or a template"},
		{"t " + folder, 2, "it is a folder"},
	}
	for _, test := range tests {
		var out, errOut bytes.Buffer
		e := &cli.Env{Name: "smq-pub", Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut, Getenv: func(string) string { return "" }}
		code := e.Run(t.Context(), New, strings.Fields(test.args))
		if code != test.code || !strings.Contains(errOut.String(), test.want) || out.Len() > 0 || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d, stdout %q\ngot  %swant %s", test.args, code, test.code, out.String(), errOut.String(), test.want)
		}
	}
}

func TestFailedToMustNotBeTheInput(t *testing.T) {
	path := t.TempDir() + "/in"
	if err := os.WriteFile(path, []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inputs, err := findInputs(&cli.Env{}, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&options{failedTo: path}).checkFailures(inputs); cli.ExitCode(err, nil) != cli.ExitUsage {
		t.Errorf("got %v", err)
	}
	if err := (&options{failedTo: path}).checkFailures(nil); cli.ExitCode(err, nil) != cli.ExitRefused {
		t.Errorf("no input, but not empty: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "x\n" {
		t.Errorf("the input was touched: %q, %v", b, err)
	}
}

func TestJoinedInputsAreOne(t *testing.T) {
	s := newSetup(false, false)
	s.pump.source = plain(&whole{})
	one := func(text string) input {
		return input{name: text, open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	}
	err := deliver(t.Context(), s.env, s.pump, joined([]input{one("a"), one(""), one("b")}), false)
	if err != nil || s.fake.values() != "ab" {
		t.Errorf("published %s: %v", s.fake.values(), err)
	}
}

func TestVerdict(t *testing.T) {
	signal := &cli.SignalError{Signal: syscall.SIGTERM}
	tests := []struct {
		name                            string
		t                               totals
		signal, input, failure, closing error
		want                            int
	}{
		{"all acked", totals{sent: 2, acked: 2}, nil, nil, nil, nil, 0},
		{"nothing to send", totals{}, nil, nil, nil, nil, 0},
		{"signal", totals{sent: 2, acked: 2}, signal, nil, nil, nil, 143},
		{"signal with losses", totals{sent: 2, acked: 1}, signal, nil, nil, nil, 143},
		{"some failed", totals{sent: 2, acked: 1, failed: 1}, nil, nil, smq.ErrTimeout, nil, 3},
		{"all failed", totals{sent: 2, failed: 2}, nil, nil, smq.ErrTimeout, nil, 5},
		{"closing failed", totals{sent: 2}, nil, nil, nil, context.DeadlineExceeded, 5},
		{"input broke at once", totals{}, nil, errors.New("x"), nil, nil, 1},
		{"input broke later", totals{sent: 1, acked: 1}, nil, errors.New("x"), nil, nil, 3},
	}
	for _, test := range tests {
		err := verdict(test.t, test.signal, test.input, test.failure, test.closing)
		if code := cli.ExitCode(err, nil); code != test.want {
			t.Errorf("%s: exit code %d, want %d (%v)", test.name, code, test.want, err)
		}
	}
}
