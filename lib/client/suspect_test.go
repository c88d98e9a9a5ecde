package client

import (
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// quietBy is when a silence has been noticed at the latest, noticed by which
// somebody who was told of it has acted.
const (
	quietBy = 1500 * time.Millisecond
	soon    = 10 * time.Millisecond
)

// withQuietOwner runs a test against two brokers: the first owns all partitions,
// the second leads. Lookups are counted from when the test calls quiet, which
// cuts the owner off.
func withQuietOwner(t *testing.T, partitions int32, test func(t *testing.T, f *fakeCluster, c *Client, quiet func())) {
	t.Helper()
	withCluster(t, 2, partitions, func(t *testing.T, f *fakeCluster, c *Client) {
		f.leader = 1
		f.mu.Lock()
		f.repair()
		f.mu.Unlock()
		if f.ownerOf(0) != f.brokers[0] {
			t.Fatal("the second broker is the owner")
		}
		test(t, f, c, func() {
			f.mu.Lock()
			f.lookups = nil
			f.mu.Unlock()
			f.silence(f.brokers[0])
		})
	})
}

// asked is the lookups since they are counted.
func (c *fakeCluster) asked() []*smqpb.LookupRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lookups)
}

// wantOneQuestion checks that the layout was asked for once, to wait for a newer one.
func wantOneQuestion(t *testing.T, f *fakeCluster) {
	t.Helper()
	if got := f.asked(); len(got) != 1 || got[0].NewerThan == 0 || got[0].StaleSegment != 0 {
		t.Errorf("asked %v", got)
	}
}

// wantTook checks when something has happened.
func wantTook(t *testing.T, begun time.Time, from, to time.Duration) {
	t.Helper()
	if took := time.Since(begun); took < from || took > to {
		t.Errorf("it took %v, want %v to %v", took, from, to)
	}
}

// failovers are times after which the owner that is quiet has a successor: before
// that is asked for, and after.
var failovers = []time.Duration{1200 * time.Millisecond, 2500 * time.Millisecond}

// A publisher does not wait for the end of the connection to an owner that is
// quiet, and asks once whether it has a successor.
func TestPublisherLeavesAQuietOwner(t *testing.T) {
	for _, after := range failovers {
		withQuietOwner(t, 1, func(t *testing.T, f *fakeCluster, c *Client, quiet func()) {
			r := newTold()
			p := newPublisher(t, c, PublisherOptions{Results: r.take, BatchMessages: 10})
			publish(t, p, 0, 0, 10)
			mustFlush(t, p)
			quiet()
			begun := time.Now()
			time.AfterFunc(after, func() { f.replace(0, 1, 0) })
			publish(t, p, 0, 10, 200)
			mustFlush(t, p)
			wantTook(t, begun, after, max(after, quietBy)+soon)
			pass(time.Minute)
			publish(t, p, 0, 200, 210)
			mustClose(t, p)
			wantOneQuestion(t, f)
			wantValues(t, f, 0, numbers(0, 210))
			r.wantAcked(t, 0, 0, 210, 0)
		})
	}
}

func TestSubscriberLeavesAQuietOwner(t *testing.T) {
	for _, after := range failovers {
		withQuietOwner(t, 2, func(t *testing.T, f *fakeCluster, c *Client, quiet func()) {
			f.fill(0, 0, 10, 5)
			s := newSubscriber(t, c, SubscriberOptions{Start: Earliest(), Partitions: []int32{0}})
			defer s.Close()
			untilCaughtUp(t, s)
			quiet()
			begun := time.Now()
			time.AfterFunc(after, func() {
				f.replace(0, 2, 0)
				f.fill(0, 10, 20, 5)
			})
			if got := collectFrom(t, s, 10); !slices.Equal(got[0], numbers(10, 20)) {
				t.Errorf("got %v", got)
			}
			wantTook(t, begun, after, max(after, quietBy)+soon)
			wantOneQuestion(t, f)
			pass(time.Minute)
			f.fill(0, 20, 30, 5)
			if got := collectFrom(t, s, 10); !slices.Equal(got[0], numbers(20, 30)) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A subscriber that hears of a successor stays with the owner, who may have more of
// what comes before; when that turns out to be quiet it leaves.
func TestSubscriberKnowsTheSuccessorOfAQuietOwner(t *testing.T) {
	withQuietOwner(t, 2, func(t *testing.T, f *fakeCluster, c *Client, quiet func()) {
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest()})
		defer s.Close()
		for range 2 {
			untilCaughtUp(t, s)
		}
		quiet()
		f.replace(0, 2, 0, 1)
		f.mu.Lock()
		layout := f.layout
		f.mu.Unlock()
		s.mu.Lock()
		s.router.apply(layout) // as if something else had led to it
		s.mu.Unlock()
		begun := time.Now()
		f.fill(0, 0, 10, 5)
		if got := collectFrom(t, s, 10); !slices.Equal(got[0], numbers(0, 10)) {
			t.Errorf("got %v", got)
		}
		wantTook(t, begun, time.Second, quietBy+soon)
	})
}

// Whatever a silent broker owns is asked for once, and a few times more, ever less
// often, if its segments get their successors one by one.
func TestAQuietOwnerOfManySegments(t *testing.T) {
	const partitions = 64
	for _, test := range []struct{ versions, questions int }{{1, 1}, {8, 5}} {
		withQuietOwner(t, partitions, func(t *testing.T, f *fakeCluster, c *Client, quiet func()) {
			var at []int32
			for p := range int32(partitions) {
				at = append(at, p)
			}
			f.replace(0, partitions, at...)
			p := newPublisher(t, c, PublisherOptions{BatchMessages: 1})
			send := func() {
				for part := range int32(partitions) {
					publish(t, p, part, 0, 3)
				}
			}
			send()
			mustFlush(t, p)
			quiet()
			send()
			for i := range test.versions {
				lo, hi := partitions*i/test.versions, partitions*(i+1)/test.versions
				time.AfterFunc(time.Duration(1600+100*i)*time.Millisecond, func() { f.replace(int32(lo), int32(hi), int32(lo)) })
			}
			begun := time.Now()
			mustFlush(t, p)
			last := time.Duration(1600+100*(test.versions-1)) * time.Millisecond
			wantTook(t, begun, last, last+100*time.Millisecond+soon)
			pass(time.Minute)
			if got := len(f.asked()); got != test.questions {
				t.Errorf("%d versions, %d questions", test.versions, got)
			}
			mustClose(t, p)
		})
	}
}

// Two owners that fall silent together are asked for together. One that does so
// later is asked for as long as the first.
func TestTwoQuietOwners(t *testing.T) {
	for _, test := range []struct {
		later, after time.Duration
	}{{0, 1600 * time.Millisecond}, {time.Second, 3800 * time.Millisecond}} {
		withCluster(t, 3, 2, func(t *testing.T, f *fakeCluster, c *Client) {
			f.leader = 2
			for f.replace(0, 2, 0, 1); f.ownerOf(0) != f.brokers[0]; {
				f.replace(0, 2, 0, 1)
			}
			p := newPublisher(t, c, PublisherOptions{Linger: NoLinger})
			publish(t, p, 0, 0, 1)
			publish(t, p, 1, 0, 1)
			mustFlush(t, p)
			f.mu.Lock()
			f.lookups, f.asItIs = nil, true
			f.mu.Unlock()
			begun := time.Now()
			f.silence(f.brokers[0])
			pass(test.later)
			publish(t, p, 1, 1, 2)
			pass(time.Millisecond) // it is acked
			f.silence(f.brokers[1])
			publish(t, p, 0, 1, 2)
			publish(t, p, 1, 2, 3)
			time.AfterFunc(test.after-time.Since(begun), func() { f.replace(0, 2, 0) })
			mustFlush(t, p)
			wantTook(t, begun, test.after, test.after+soon)
			if test.later == 0 {
				wantOneQuestion(t, f)
			}
			mustClose(t, p)
		})
	}
}

// An owner whose answers are slow is not quiet, nor is one that has nothing to
// say. Nobody asks because of it.
func TestSlowOwnersAreNotSuspected(t *testing.T) {
	withQuietOwner(t, 1, func(t *testing.T, f *fakeCluster, c *Client, _ func()) {
		s := newSubscriber(t, c, SubscriberOptions{Start: Earliest()})
		defer s.Close()
		untilCaughtUp(t, s)
		f.mu.Lock()
		f.lookups = nil
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict { return verdict{delay: 20 * time.Second} }
		f.mu.Unlock()
		p := newPublisher(t, c, PublisherOptions{Linger: NoLinger})
		publish(t, p, 0, 0, 3)
		pass(5 * time.Minute)
		if got := f.asked(); len(got) != 1 { // the publisher's first
			t.Errorf("asked %v", got)
		}
		mustClose(t, p)
	})
}

// An owner that was paused and has no successor goes on where it was; every
// message is told of once.
func TestPausedOwnerGoesOn(t *testing.T) {
	for name, slowLookup := range map[string]time.Duration{"the leader is quick": 0, "the leader is slow": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			withQuietOwner(t, 1, func(t *testing.T, f *fakeCluster, c *Client, _ func()) {
				r := newTold()
				p := newPublisher(t, c, PublisherOptions{Results: r.take, BatchMessages: 10})
				s := newSubscriber(t, c, SubscriberOptions{Start: Earliest()})
				defer s.Close()
				publish(t, p, 0, 0, 10)
				mustFlush(t, p)
				collectFrom(t, s, 10)
				f.mu.Lock()
				f.lookups, f.slowLookup = nil, slowLookup
				f.mu.Unlock()
				f.pause(f.brokers[0])
				publish(t, p, 0, 10, 200)
				pass(2500 * time.Millisecond)
				f.resume(f.brokers[0])
				begun := time.Now()
				mustFlush(t, p)
				if got := collectFrom(t, s, 190); !slices.Equal(got[0], numbers(10, 200)) {
					t.Errorf("got %v", got[0])
				}
				wantTook(t, begun, 0, soon)
				pass(time.Minute)
				if got := f.asked(); len(got) != 2 { // the publisher's and the subscriber's
					t.Errorf("asked %v", got)
				}
				mustClose(t, p)
				wantValues(t, f, 0, numbers(0, 200))
				r.wantAcked(t, 0, 0, 200, 0)
			})
		})
	}
}

// An owner that is heard again is not watched for ever, however much the layout
// changes.
func TestSuspicionsEnd(t *testing.T) {
	withQuietOwner(t, 2, func(t *testing.T, f *fakeCluster, c *Client, _ func()) {
		s := newSubscriber(t, c, SubscriberOptions{Partitions: []int32{0}})
		defer s.Close()
		f.replace(1, 2, 1) // splits the segment
		for f.replace(0, 1, 0); f.ownerOf(0) != f.brokers[0]; {
			f.replace(0, 1, 0)
		}
		untilCaughtUp(t, s)
		f.mu.Lock()
		f.lookups = nil
		f.mu.Unlock()
		f.pause(f.brokers[0])
		for i := range 600 {
			if i == 20 {
				f.resume(f.brokers[0])
			}
			f.replace(1, 2, 1)
			pass(100 * time.Millisecond)
		}
		if got := len(f.asked()); got < 3 || got > 8 {
			t.Errorf("asked %d times", got)
		}
	})
}

// When the silent owner leads too, the masters name the next leader, who is asked
// for the layout.
func TestQuietOwnerLeads(t *testing.T) {
	withQuietOwner(t, 1, func(t *testing.T, f *fakeCluster, c *Client, quiet func()) {
		f.mu.Lock()
		f.leader = 0
		f.mu.Unlock()
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take, BatchMessages: 10})
		publish(t, p, 0, 0, 10)
		mustFlush(t, p)
		quiet()
		begun := time.Now()
		time.AfterFunc(1200*time.Millisecond, func() { f.replace(0, 1, 0) })
		publish(t, p, 0, 10, 200)
		mustFlush(t, p)
		// The masters are asked half a second after the leader.
		wantTook(t, begun, quietBy-250*time.Millisecond, quietBy+500*time.Millisecond+soon)
		mustClose(t, p)
		wantValues(t, f, 0, numbers(0, 200))
		r.wantAcked(t, 0, 0, 200, 0)
	})
}

// What an owner that has been left said before comes after all. It counts as
// ever: a stored ack holds, a replicated one only within a second of the sending,
// and what comes behind one that does not hold waits for the successor's.
func TestAcksOfAnOwnerThatWasLeft(t *testing.T) {
	const slow = 3500 * time.Millisecond // the successor's answers, one after the other
	const heard = 2 * time.Second        // when the owner is heard again
	const answered = quietBy + slow      // when the successor answers first
	for name, test := range map[string]struct {
		level       smqpb.AckLevel
		first, next time.Duration // when two messages are sent
		told        [2]time.Duration
	}{
		"stored":                        {smqpb.AckLevel_STORED, 0, 1400 * time.Millisecond, [2]time.Duration{heard, heard}},
		"replicated, late":              {smqpb.AckLevel_REPLICATED, 0, 900 * time.Millisecond, [2]time.Duration{answered, answered + slow}},
		"replicated, behind a late one": {smqpb.AckLevel_REPLICATED, 0, 1200 * time.Millisecond, [2]time.Duration{answered, answered + slow}},
		"replicated, in time":           {smqpb.AckLevel_REPLICATED, 1100 * time.Millisecond, 1200 * time.Millisecond, [2]time.Duration{heard, heard}},
	} {
		t.Run(name, func(t *testing.T) {
			withQuietOwner(t, 1, func(t *testing.T, f *fakeCluster, c *Client, _ func()) {
				owner := f.brokers[0]
				f.verdict = func(b *fakeBroker, _ *smqpb.PublishBatch) verdict {
					if b == owner {
						return verdict{level: test.level}
					}
					return verdict{delay: slow, level: smqpb.AckLevel_STORED}
				}
				var begun time.Time
				var told []time.Duration
				p := newPublisher(t, c, PublisherOptions{Linger: NoLinger, Results: func(res Results) {
					if res.Err != nil || res.BaseOffset != int64(res.Tokens[0]) || len(res.Tokens) != 1 {
						t.Errorf("told %+v", res)
					}
					told = append(told, time.Since(begun))
				}})
				publish(t, p, 0, 0, 1)
				mustFlush(t, p)
				begun, told = time.Now(), nil
				f.pause(owner)
				pass(test.first)
				publish(t, p, 0, 1, 2)
				pass(test.next - test.first)
				publish(t, p, 0, 2, 3)
				pass(quietBy - test.next)
				f.replace(0, 1, 0)
				pass(heard - quietBy)
				f.resume(owner)
				mustClose(t, p)
				if !slices.EqualFunc(told, test.told[:], func(got, want time.Duration) bool { return got >= want && got <= want+soon }) {
					t.Errorf("told after %v, want %v", told, test.told)
				}
				wantValues(t, f, 0, numbers(0, 3))
			})
		})
	}
}

// Offsets, too, are asked of the successor.
func TestOffsetsLeaveAQuietOwner(t *testing.T) {
	withQuietOwner(t, 1, func(t *testing.T, f *fakeCluster, c *Client, quiet func()) {
		f.fill(0, 0, 10, 5)
		end := func() {
			t.Helper()
			got, err := c.Offsets(t.Context(), fakeTopic, nil, smqpb.OffsetsRequest_END, time.Time{})
			if err != nil || len(got) != 1 || got[0].Offset != 10 {
				t.Errorf("got %v, %v", got, err)
			}
		}
		end()
		quiet()
		begun := time.Now()
		end()
		wantTook(t, begun, time.Second, quietBy+minBackoff+soon)
		if got := f.asked(); len(got) != 2 || got[1].NewerThan == 0 {
			t.Errorf("asked %v", got)
		}
	})
}
