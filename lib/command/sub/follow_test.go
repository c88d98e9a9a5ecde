package sub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/render"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// list is the messages of a fetch.
type list struct {
	records []record.Record
	err     error
}

func (l *list) Next() (record.Record, bool) {
	if len(l.records) == 0 {
		return record.Record{}, false
	}
	r := l.records[0]
	l.records = l.records[1:]
	return r, true
}

func (l *list) Err() error { return l.err }

// run of messages of one partition, from one offset up to another, whose
// values tell where they are.
func messagesOf(partition int32, from, end int64) fetch {
	l := &list{}
	for o := from; o < end; o++ {
		l.records = append(l.records, record.Record{Offset: o, Value: fmt.Append(nil, partition, "/", o)})
	}
	return fetch{partition: partition, next: end, messages: l}
}

func caughtUp(partition int32, at int64) fetch {
	return fetch{partition: partition, next: at, caughtUp: true, messages: &list{}}
}

// fakeSubscriber gives fetches, then what comes through more, then waits.
type fakeSubscriber struct {
	fetches []fetch
	more    chan fetch
	err     error // at the end of fetches
	stopped []int32
}

func (s *fakeSubscriber) poll(ctx context.Context) (fetch, error) {
	if len(s.fetches) > 0 {
		f := s.fetches[0]
		s.fetches = s.fetches[1:]
		return f, nil
	}
	if s.err != nil {
		return fetch{}, s.err
	}
	select {
	case f := <-s.more:
		return f, nil
	case <-ctx.Done():
		return fetch{}, ctx.Err()
	}
}

func (s *fakeSubscriber) stop(partition int32) { s.stopped = append(s.stopped, partition) }

// stdout collects what is written.
type stdout struct {
	mu    sync.Mutex
	bytes bytes.Buffer
	err   error
}

func (w *stdout) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	return w.bytes.Write(p)
}

func (w *stdout) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes.String()
}

func newFollower(t *testing.T, s subscriber, w *stdout, p plan) *follower {
	t.Helper()
	render, err := render.New("value", []byte(" "))
	if err != nil {
		t.Fatal(err)
	}
	return &follower{topic: smq.Topic{Namespace: "default", Name: "t"}, plan: p, from: s, finder: fakeFinder{}, render: render,
		out: newOutput(w, func(error) {})}
}

func TestFollowUntilEnds(t *testing.T) {
	s := &fakeSubscriber{fetches: []fetch{
		messagesOf(0, 0, 2), caughtUp(2, 4), messagesOf(1, 0, 1), messagesOf(0, 2, 5), messagesOf(1, 1, 3), messagesOf(0, 5, 9),
	}}
	var w stdout
	f := newFollower(t, s, &w, plan{first: 1, ends: map[int32]int64{0: 4, 1: 3, 2: 3, 3: 0}})
	if err := errors.Join(f.run(t.Context()), f.out.Flush()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.String(), "0/1 0/2 0/3 1/1 1/2 "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if fmt.Sprint(s.stopped) != "[2 0 1]" {
		t.Errorf("stopped %v", s.stopped)
	}
}

func TestFollowCounts(t *testing.T) {
	s := &fakeSubscriber{fetches: []fetch{messagesOf(0, 0, 2), messagesOf(1, 0, 5)}}
	var w stdout
	f := newFollower(t, s, &w, plan{})
	f.budget = &budget{}
	f.budget.left.Store(3)
	if err := f.run(t.Context()); err != errEnough {
		t.Fatal(err)
	}
	if err := f.out.Flush(); err != nil || w.String() != "0/0 0/1 1/0 " {
		t.Errorf("%s, %v", w.String(), err)
	}
}

func TestFollowReportsErrors(t *testing.T) {
	corrupt := messagesOf(0, 0, 1)
	corrupt.messages.(*list).err = smq.ErrCorrupt
	for name, s := range map[string]*fakeSubscriber{
		"of a batch":        {fetches: []fetch{corrupt}},
		"of a subscription": {fetches: []fetch{messagesOf(0, 0, 1)}, err: smq.ErrCorrupt},
	} {
		var w stdout
		f := newFollower(t, s, &w, plan{})
		if err := f.run(t.Context()); !errors.Is(err, smq.ErrCorrupt) || !strings.HasPrefix(err.Error(), "topic t: ") ||
			!strings.HasSuffix(err.Error(), "; smq-admin log verify t shows all that is damaged") {
			t.Errorf("%s: %v", name, err)
		}
		if f.out.Flush(); w.String() != "0/0 " {
			t.Errorf("%s: wrote %q", name, w.String())
		}
	}
}

func TestFollowTellsOfDeletion(t *testing.T) {
	gone := fmt.Errorf("look up topic t: leading broker a:1: topic t: %w", smq.ErrNotFound)
	f := newFollower(t, &fakeSubscriber{fetches: []fetch{messagesOf(0, 0, 1)}, err: gone}, &stdout{}, plan{})
	if err := f.run(t.Context()); !errors.Is(err, smq.ErrNotFound) || err.Error() != "topic t: not found any more: it was deleted" {
		t.Errorf("got %v", err)
	}
}

func TestFollowStopsWhenOutputCloses(t *testing.T) {
	s := &fakeSubscriber{fetches: []fetch{messagesOf(0, 0, 2), caughtUp(0, 2)}}
	f := newFollower(t, s, &stdout{err: cli.ErrOutputClosed}, plan{})
	if err := f.run(t.Context()); !errors.Is(err, cli.ErrOutputClosed) {
		t.Errorf("got %v", err)
	}
}

// TestFollowUntilFutureTime: the ends are found when the time has come, and
// partitions that are there already are not waited for.
func TestFollowUntilFutureTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSubscriber{fetches: []fetch{messagesOf(0, 8, 10), caughtUp(0, 10), caughtUp(1, 6), caughtUp(2, 0)}, more: make(chan fetch)}
		var w stdout
		f := newFollower(t, s, &w, plan{endsAt: time.Now().Add(time.Hour)})
		done := make(chan error, 1)
		go func() { done <- f.run(t.Context()) }()
		time.Sleep(time.Hour + time.Second) // virtual
		select {
		case err := <-done:
			t.Fatalf("ended early: %v", err)
		default:
		}
		s.more <- messagesOf(1, 6, 8)
		if err := errors.Join(<-done, f.out.Flush()); err != nil || w.String() != "0/8 0/9 1/6 1/7 " {
			t.Errorf("%s, %v", w.String(), err)
		}
	})
}

func TestOutputFlushesWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w stdout
		o := newOutput(&w, func(error) {})
		o.render(func(dst []byte) []byte { return append(dst, "a"...) })
		if w.String() != "" {
			t.Error("written at once")
		}
		time.Sleep(idleFlush) // virtual
		synctest.Wait()
		if w.String() != "a" {
			t.Errorf("wrote %q", w.String())
		}
	})
}

func TestOutputTellsFirstErrorOnce(t *testing.T) {
	told := 0
	o := newOutput(&stdout{err: cli.ErrOutputClosed}, func(error) { told++ })
	for range 2 {
		o.render(func(dst []byte) []byte { return append(dst, make([]byte, outputBuffer)...) })
	}
	if err := o.Flush(); told != 1 || !errors.Is(err, cli.ErrOutputClosed) {
		t.Errorf("told %d times, %v", told, err)
	}
}

func TestFinish(t *testing.T) {
	failure := errors.New("x")
	for name, test := range map[string]struct {
		cause, waited, want error
	}{
		"all done":           {nil, nil, nil},
		"a failure":          {failure, failure, failure},
		"enough":             {errEnough, errEnough, nil},
		"a closed pipe":      {cli.ErrOutputClosed, context.Canceled, cli.ErrOutputClosed},
		"a failure, unasked": {nil, failure, failure},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if test.cause != nil {
			cancel(test.cause)
		}
		err := finish(ctx, newOutput(&stdout{}, func(error) {}), func() error { return test.waited })
		if !errors.Is(err, test.want) || test.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		cancel(nil)
	}
}

// TestFinishDoesNotWaitForever: a signal, while nobody reads what was rendered.
func TestFinishDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stuck := make(chan struct{})
		cancel(cli.ErrOutputClosed)
		err := finish(ctx, newOutput(&stdout{}, func(error) {}), func() error { <-stuck; return nil })
		if !errors.Is(err, cli.ErrOutputClosed) {
			t.Errorf("got %v", err)
		}
		close(stuck)
	})
}
