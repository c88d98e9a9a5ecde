package client

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/boottime"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Batches of a higher epoch wait until those of the lower one are settled: a
// broker that has seen the higher one would not take the others again.
func TestEpochsAreNotMixedInFlight(t *testing.T) {
	old := &batch{phase: encoded, producer: 1, epoch: 3}
	queued := &batch{phase: encoded, producer: 1, epoch: 4}
	open := &batch{due: true}
	part := &partition{producer: 1, epoch: 4, queue: []*batch{old, queued}, open: open, sent: 1}
	if got := part.next(); got != nil {
		t.Errorf("a queued batch of epoch %d goes while one of epoch 3 is at the broker", got.epoch)
	}
	part.queue = part.queue[:1]
	if part.next() != nil {
		t.Error("the open batch goes while one of a lower epoch is at the broker")
	}
	part.sent = 0
	if got := part.next(); got != old {
		t.Error("the older batch does not go first")
	}
	part.queue = nil
	if got := part.next(); got != open {
		t.Error("the open batch does not go")
	}
}

func TestBatchEncodedUnderOldSequences(t *testing.T) {
	builder := record.NewBuilder(record.None)
	if err := builder.Append(0, nil, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	bytes, err := builder.Finish(nil, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	b := &batch{epoch: 7, seq: 9}
	b.keep(bytes, 2, 3)
	if h, err := record.Validate(b.bytes); err != nil || h.ProducerEpoch != 7 || h.BaseSequence != 9 {
		t.Errorf("epoch %d, sequence %d, %v", h.ProducerEpoch, h.BaseSequence, err)
	}
}

func TestBatchList(t *testing.T) {
	l := batchList{kind: inLingering}
	var bs []*batch
	for i := range 5 {
		b := &batch{number: uint64(i)}
		bs = append(bs, b)
		l.push(b)
	}
	numbers := func() (n []uint64) {
		for b := l.head; b != nil; b = b.links[inLingering].next {
			n = append(n, b.number)
		}
		return n
	}
	l.remove(bs[2])
	l.remove(bs[2])
	l.remove(bs[4])
	l.remove(bs[0])
	if got := numbers(); !slices.Equal(got, []uint64{1, 3}) || l.tail != bs[3] {
		t.Errorf("left: %v", got)
	}
	l.push(bs[0])
	l.remove(bs[1])
	l.remove(bs[3])
	if got := numbers(); !slices.Equal(got, []uint64{0}) || l.tail != bs[0] {
		t.Errorf("left: %v", got)
	}
	l.remove(bs[0])
	if l.head != nil || l.tail != nil {
		t.Error("not empty")
	}
}

func TestTable(t *testing.T) {
	table := newTable[int32](1_000_000)
	for _, p := range []int32{0, 1023, 1024, 5000, 999_999} {
		table.put(p, &p)
	}
	var got []int32
	table.each(-5, 1<<31-1, func(p *int32) { got = append(got, *p) })
	if !slices.Equal(got, []int32{0, 1023, 1024, 5000, 999_999}) {
		t.Errorf("all: %v", got)
	}
	got = nil
	table.each(1, 5000, func(p *int32) { got = append(got, *p) })
	if !slices.Equal(got, []int32{1023, 1024}) || table.get(5000) == nil || table.get(5001) != nil {
		t.Errorf("some: %v", got)
	}
}

// testRouter is a router whose lookups never happen.
func testRouter() (*router, *[]*route) {
	gone := new([]*route)
	m, _ := newMetrics(nil)
	return &router{
		mu: new(sync.Mutex), topic: &smqpb.TopicConfig{}, logger: slog.New(slog.DiscardHandler), metrics: m, now: boottime.Steady(),
		spawn: func(func(context.Context)) {}, arm: func(time.Duration) {},
		resume: func(int32) {}, moved: func(rt *route) { *gone = append(*gone, rt) }, failed: func(error) {},
	}, gone
}

func TestRouterKeepsWhatStays(t *testing.T) {
	r, gone := testRouter()
	r.apply(&smqpb.Layout{Version: 3, Segments: []*smqpb.Segment{{Id: 2, Lo: 4, Hi: 8, OwnerAddress: "b"}, {Id: 1, Hi: 4, OwnerAddress: "a"}}})
	first, second := r.find(3), r.find(4)
	if first.segment != 1 || second.segment != 2 {
		t.Fatalf("found %+v and %+v", first, second)
	}
	r.apply(&smqpb.Layout{Version: 2, Segments: []*smqpb.Segment{{Id: 1, Hi: 8, OwnerAddress: "c"}}})
	r.apply(&smqpb.Layout{Version: 3, Segments: []*smqpb.Segment{{Id: 1, Hi: 8, OwnerAddress: "c"}}})
	if r.find(3) != first || len(*gone) != 0 {
		t.Error("an older layout took effect")
	}
	r.apply(&smqpb.Layout{Version: 4, Segments: []*smqpb.Segment{{Id: 1, Hi: 4, OwnerAddress: "a"}, {Id: 3, Lo: 4, Hi: 6, OwnerAddress: "b"}, {Id: 4, Lo: 6, Hi: 8}}})
	if r.find(3) != first || !slices.Equal(*gone, []*route{second}) || !second.dead {
		t.Errorf("gone: %v", *gone)
	}
	if !r.open(r.find(5)) || r.open(r.find(6)) || r.open(second) {
		t.Error("open routes that should not be, or the other way round")
	}
	// A layout with a hole is a mistake of somebody's, and no reason to fail.
	r.apply(&smqpb.Layout{Version: 5, Segments: []*smqpb.Segment{{Id: 3, Lo: 4, Hi: 6, OwnerAddress: "b"}}})
	if rt := r.find(0); r.open(rt) || rt != r.find(7) {
		t.Errorf("found %+v", rt)
	}
}

// Messages that their broker sits on are sent to the next owner as soon as the
// layout tells of it, whatever the reason that it was looked up for.
func TestUnansweredMessagesFollowTheLayout(t *testing.T) {
	withCluster(t, 2, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take})
		owner := f.ownerOf(0)
		f.mu.Lock()
		f.verdict = func(b *fakeBroker, batch *smqpb.PublishBatch) verdict {
			return verdict{appendOnly: b == owner && batch.Partition == 0}
		}
		f.mu.Unlock()
		publish(t, p, 0, 0, 10)
		pass(time.Second)
		synctest.Wait()
		f.replace(0, 2, 0)
		if f.ownerOf(0) == owner {
			f.replace(0, 2, 0)
		}
		begun := time.Now()
		publish(t, p, 1, 100, 110)
		mustFlush(t, p)
		if waited := time.Since(begun); waited > time.Second {
			t.Errorf("it took %v", waited)
		}
		r.wantAcked(t, 0, 0, 10, 0)
		r.wantAcked(t, 1, 100, 110, 0)
		mustClose(t, p)
	})
}
