package pub

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/seaweedmq/smq/lib/cli"
)

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
