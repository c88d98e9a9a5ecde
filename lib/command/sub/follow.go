package sub

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/render"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// subscriber is the part of client.Subscriber that is used here.
type subscriber interface {
	poll(ctx context.Context) (fetch, error)
	stop(partition int32)
}

// fetch is client.Fetch.
type fetch struct {
	partition int32
	next      int64 // one past the last message
	caughtUp  bool  // there are no messages, and for the moment no more
	messages  messages
}

type messages interface {
	Next() (record.Record, bool)
	Err() error
}

// subscription is the subscriber that there is outside of tests.
type subscription struct{ *client.Subscriber }

func (s subscription) poll(ctx context.Context) (fetch, error) {
	f, err := s.Poll(ctx)
	if err != nil {
		return fetch{}, err
	}
	return fetch{partition: f.Partition, next: f.NextOffset, caughtUp: f.CaughtUp, messages: f}, nil
}

func (s subscription) stop(partition int32) { s.Stop(partition) }

// errEnough ends everything when -n messages were rendered.
var errEnough = errors.New("enough messages")

// budget is how many messages may still be rendered, over all followers.
type budget struct{ left atomic.Int64 }

// take takes one message of the budget; false when it is used up.
func (b *budget) take() bool {
	if b == nil {
		return true
	}
	return b.left.Add(-1) >= 0
}

// spent reports whether the budget is used up.
func (b *budget) spent() bool { return b != nil && b.left.Load() <= 0 }

// follower reads one topic by its plan.
type follower struct {
	topic  smq.Topic
	name   string // of the topic, as it is shown
	plan   plan
	from   subscriber
	finder finder
	render render.Func
	out    *output
	budget *budget // nil: no limit

	positions map[int32]int64 // how far partitions have come
	open      map[int32]bool  // with ends: the partitions that have not reached theirs
}

// run renders messages until all ends are reached (nil), the budget is used up
// (errEnough), or something fails.
func (f *follower) run(ctx context.Context) error {
	if f.plan.endsAt.IsZero() {
		return f.follow(ctx)
	}
	early, cancel := context.WithDeadlineCause(ctx, f.plan.endsAt, errTimeCame)
	defer cancel()
	if err := f.follow(early); !errors.Is(err, errTimeCame) {
		return err
	}
	if err := f.plan.setEnds(ctx, f.finder, f.topic, place{kind: placeTime, time: f.plan.endsAt}); err != nil {
		return err
	}
	return f.follow(ctx)
}

// errTimeCame says that the time which --until names is no longer in the future.
var errTimeCame = errors.New("the time has come")

func (f *follower) follow(ctx context.Context) error {
	if f.begin(); f.plan.ends != nil && len(f.open) == 0 {
		return nil
	}
	for {
		got, err := f.from.poll(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return f.failed(err)
		}
		if got.caughtUp {
			// Nobody knows when more comes, so what there is goes out now.
			if err := f.out.Flush(); err != nil {
				return err
			}
		} else if err := f.show(got); err != nil {
			return err
		}
		if f.reached(got) {
			return nil
		}
	}
}

// failed says which topic cannot be read on, and what tells more of damage. The
// error itself says which partition, and from where.
func (f *follower) failed(err error) error {
	if errors.Is(err, smq.ErrCorrupt) {
		return fmt.Errorf("topic %s: %w; smq-admin log verify %[1]s shows all that is damaged", f.topic, err)
	}
	if errors.Is(err, smq.ErrNotFound) {
		return fmt.Errorf("topic %s: %w any more: it was deleted", f.topic, smq.ErrNotFound)
	}
	return fmt.Errorf("topic %s: %w", f.topic, err)
}

// begin notes which partitions have an end to reach.
func (f *follower) begin() {
	if f.positions == nil {
		f.positions = make(map[int32]int64)
	}
	f.open = make(map[int32]bool, len(f.plan.ends))
	for p, end := range f.plan.ends {
		if end > f.positions[p] {
			f.open[p] = true
		}
	}
}

// show renders the messages of a fetch that are to be shown.
func (f *follower) show(got fetch) error {
	end := f.plan.end(got.partition)
	for more := true; more; {
		f.out.render(func(dst []byte) []byte {
			for !full(dst) {
				var r record.Record
				if r, more = got.messages.Next(); !more {
					break
				}
				if r.Offset < f.plan.first || r.Offset >= end {
					continue
				}
				if !f.budget.take() {
					more = false
					break
				}
				dst = f.render(dst, f.name, got.partition, &r)
			}
			return dst
		})
		if f.out.broken() {
			return f.out.Flush()
		}
	}
	switch {
	case got.messages.Err() != nil:
		return f.failed(got.messages.Err())
	case f.budget.spent():
		return errEnough
	}
	return nil
}

// reached notes how far a partition has come, and reports whether all ends are
// reached.
func (f *follower) reached(got fetch) bool {
	f.positions[got.partition] = got.next
	if f.plan.ends == nil || got.next < f.plan.end(got.partition) {
		return false
	}
	if f.open[got.partition] {
		delete(f.open, got.partition)
		f.from.stop(got.partition)
	}
	return len(f.open) == 0
}

// grace is how long the end of the command waits for somebody to read what was
// rendered.
const grace = 2 * time.Second
