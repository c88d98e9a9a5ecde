package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// successorWait is how long a feed waits for the successor of a segment of this
// broker's own before it sends its partitions to look for themselves.
const successorWait = 3 * time.Second

// feed serves those partitions of a session that are read from one segment.
type feed struct {
	s    *session
	at   place
	wake chan struct{} // holds a token when added or removed has grown

	added, removed []*sub // guarded by session.mu

	// Only the feed's goroutine touches these.
	cursor *seglog.Cursor
	subs   map[smq.Partition]*sub
	untold map[smq.Partition]*sub // those that have not caught up yet
}

func newFeed(s *session, at place) *feed {
	return &feed{
		s: s, at: at, wake: make(chan struct{}, 1), cursor: seglog.NewCursor(at.src),
		subs: make(map[smq.Partition]*sub), untold: make(map[smq.Partition]*sub),
	}
}

func (f *feed) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run serves until nothing is left to be served.
func (f *feed) run(ctx context.Context) {
	for ctx.Err() == nil && f.sync() {
		changed := f.at.src.Changed()
		d, err := f.deliver(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			f.fail(ctx, err)
		case d.AtEnd:
			f.moveOn(ctx)
		case d.AtTail:
			f.wait(ctx, changed)
		}
	}
}

// sync takes in what was added and removed. It reports false when the feed has
// nothing to serve, and is no longer known to the session.
func (f *feed) sync() bool {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, n := range f.removed {
		if f.subs[n.partition] == n {
			f.drop(n)
		}
	}
	for _, n := range f.added {
		if f.s.subs[n.partition] != n {
			continue // stopped since
		}
		f.cursor.Add(n.partition, n.offset)
		f.subs[n.partition] = n
		if !n.told {
			f.untold[n.partition] = n
		}
	}
	f.added, f.removed = nil, nil
	if len(f.subs) > 0 {
		return true
	}
	delete(f.s.feeds, f.at.id)
	return false
}

// drop serves the sub no more.
func (f *feed) drop(n *sub) {
	f.cursor.Remove(n.partition)
	delete(f.subs, n.partition)
	delete(f.untold, n.partition)
}

// deliver sends the next batches, and who has caught up with them.
func (f *feed) deliver(ctx context.Context) (seglog.Delivery, error) {
	select {
	case f.s.ahead <- struct{}{}:
	case <-ctx.Done():
		return seglog.Delivery{}, ctx.Err()
	}
	d, err := f.cursor.Next(ctx, frameBytes)
	if err != nil || len(d.Batches) == 0 {
		<-f.s.ahead
	}
	if err != nil {
		return d, err
	}
	if len(d.Batches) > 0 {
		if err := f.s.put(ctx, pack(d.Batches)); err != nil {
			<-f.s.ahead
			return d, err
		}
	}
	if d.AtTail {
		err = f.tell(ctx)
	}
	return d, err
}

// pack makes a frame of batches.
func pack(batches []seglog.Delivered) frame {
	values := make([]smqpb.DeliverBatch, len(batches))
	out := frame{
		head:    &smqpb.DeliverHead{Batches: make([]*smqpb.DeliverBatch, len(batches))},
		payload: make([][]byte, len(batches)),
	}
	for i, b := range batches {
		values[i].Partition, values[i].Size = b.Partition, uint32(len(b.Bytes))
		out.head.Batches[i] = &values[i]
		out.payload[i] = b.Bytes
	}
	return out
}

// tell says of those that have not been told yet that they have caught up.
func (f *feed) tell(ctx context.Context) error {
	for len(f.untold) > 0 {
		head := &smqpb.DeliverHead{}
		for p, n := range f.untold {
			offset, _ := f.cursor.Position(p)
			head.CaughtUp = append(head.CaughtUp, p)
			head.CaughtUpOffsets = append(head.CaughtUpOffsets, offset)
			n.told = true
			delete(f.untold, p)
			if len(head.CaughtUp) == maxNews {
				break
			}
		}
		if err := f.s.put(ctx, frame{head: head}); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for more to serve.
func (f *feed) wait(ctx context.Context, changed <-chan struct{}) {
	var stopped <-chan struct{}
	if f.at.own != nil {
		stopped = f.at.own.log.Done()
	}
	select {
	case <-changed:
	case <-f.wake:
		return
	case <-stopped:
	case <-ctx.Done():
		return
	}
	if f.at.own == nil {
		return
	}
	select {
	case <-stopped:
		if _, sealed := f.at.own.log.Sealed(); !sealed {
			// It ends here for us, and not for those who read the store.
			f.release(ctx, &elsewhere{f.at.id, fmt.Errorf("segment %d: %w", f.at.id, smq.ErrNotOwner)})
		}
	default:
	}
}

// take ends the serving of all and returns them, each with the offset to go on
// from.
func (f *feed) take() []*sub { return f.taken(slices.Collect(maps.Values(f.subs))) }

// taken ends the serving of some.
func (f *feed) taken(some []*sub) []*sub {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, n := range some {
		n.offset, _ = f.cursor.Position(n.partition)
		f.drop(n)
		n.feed = nil
	}
	return some
}

// fail tells those whom the error concerns.
func (f *feed) fail(ctx context.Context, err error) {
	var damage *seglog.DamageError
	if !errors.As(err, &damage) {
		f.release(ctx, err)
		return
	}
	if n := f.subs[damage.Partition]; n != nil {
		f.tellEnds(ctx, f.taken([]*sub{n}), err)
	}
}

// release sends all to look elsewhere, or tells them what is wrong.
func (f *feed) release(ctx context.Context, err error) { f.tellEnds(ctx, f.take(), err) }

// tellEnds tells subs, which are not served any more, why.
func (f *feed) tellEnds(ctx context.Context, subs []*sub, err error) {
	var ends []*smqpb.PartitionEnd
	for _, n := range subs {
		if end := f.s.end(n, err); end != nil {
			ends = append(ends, end)
		}
	}
	for len(ends) > 0 {
		some := ends[:min(len(ends), maxNews)]
		ends = ends[len(some):]
		if f.s.put(ctx, frame{head: &smqpb.DeliverHead{Ends: some}}) != nil {
			return
		}
	}
}

// moveOn passes all to the feeds of the next segments.
func (f *feed) moveOn(ctx context.Context) {
	if f.at.own != nil {
		timer := time.NewTimer(successorWait)
		defer timer.Stop()
		select {
		case <-f.at.own.gone:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	f.s.place(ctx, f.take(), f.at.id)
}
