package pub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

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
