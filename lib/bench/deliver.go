package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/client"
)

// Source is what messages are received from; a *client.Subscriber is one.
type Source interface {
	Poll(ctx context.Context) (*client.Fetch, error)
}

// EndToEnd publishes as Publish does and receives the messages from a source,
// which must have been subscribed before. The result's messages are those
// received.
func (r *Run) EndToEnd(ctx context.Context, from Source) (Result, error) {
	r.start()
	publishing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	receiving, end := context.WithCancel(context.WithoutCancel(ctx))
	rc := &receiver{run: r, latencies: newLatencies(), tally: newTally()}
	received := make(chan error, 1)
	go func() {
		err := rc.receive(receiving, from)
		if err != nil {
			stop(err)
		}
		received <- err
	}()
	err := r.publish(publishing)
	failed := rc.settle(r.Acked(), r.options.Settle, received)
	end()
	if failed == nil {
		failed = <-received
	}
	if failed != nil {
		err = failed
	}
	return rc.result(r.result()), err
}

// receiver receives a run's messages.
type receiver struct {
	run       *Run
	latencies *latencies
	messages  int64         // that count; guarded by the lock of latencies
	last      time.Duration // when the last of them came; likewise
	tally     *tally
}

// receive receives until ctx ends.
func (rc *receiver) receive(ctx context.Context, from Source) error {
	for {
		fetch, err := from.Poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		now := rc.run.since()
		var n int64
		for rec, ok := fetch.Next(); ok; rec, ok = fetch.Next() {
			if rc.take(rec.Value, now) {
				n++
			}
		}
		if fetch.Err() != nil {
			return fmt.Errorf("receive: %w", fetch.Err())
		}
		rc.tally.add(n)
	}
}

// take takes in a message that came at a time; false when it is of another run.
func (rc *receiver) take(value []byte, now time.Duration) bool {
	at, ours := readStamp(value, rc.run.id)
	if !ours {
		return false
	}
	if at >= rc.run.options.Warmup {
		rc.latencies.mu.Lock()
		rc.latencies.add(now - at)
		rc.messages++
		rc.last = now
		rc.latencies.mu.Unlock()
	}
	return true
}

// settle waits until as many messages have come as are acked, or for so long, or
// until none will come any more because of the error that it returns.
func (rc *receiver) settle(acked int64, most time.Duration, failed <-chan error) error {
	rc.tally.expect(acked)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-rc.tally.reached:
	case <-timer.C:
	case err := <-failed:
		return err
	}
	return nil
}

// result is the run's with what was received.
func (rc *receiver) result(out Result) Result {
	rc.latencies.mu.Lock()
	out.Messages, out.Elapsed = rc.messages, max(rc.last-rc.run.options.Warmup, 0)
	rc.latencies.mu.Unlock()
	out.Bytes = out.Messages * int64(rc.run.options.Size)
	out.Delivery = summary([]*latencies{rc.latencies})
	out.Missing = rc.tally.missing()
	return out
}

// tally counts until a number is reached that becomes known late.
type tally struct {
	reached chan struct{} // closed then

	mu   sync.Mutex
	got  int64
	want int64 // negative: not known yet
	done bool
}

func newTally() *tally { return &tally{want: -1, reached: make(chan struct{})} }

func (t *tally) add(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.got += n
	t.check()
}

// expect says how many will come.
func (t *tally) expect(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.want = n
	t.check()
}

// missing is how many of those expected have not come.
func (t *tally) missing() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.want-t.got, 0)
}

func (t *tally) check() {
	if t.want >= 0 && t.got >= t.want && !t.done {
		t.done = true
		close(t.reached)
	}
}
