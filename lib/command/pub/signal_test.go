package pub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

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
