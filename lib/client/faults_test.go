package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// onArrival makes the i-th batch to arrive, from 0, meet with a verdict. The
// cluster's lock is held when it is asked.
func onArrival(f func(i int) verdict) func(*fakeBroker, *smqpb.PublishBatch) verdict {
	i := -1
	return func(*fakeBroker, *smqpb.PublishBatch) verdict {
		i++
		return f(i)
	}
}

// Whatever goes wrong with some batches, every message is acked once, at the
// offset where it is.
func TestFaultsThatAreOvercome(t *testing.T) {
	fail := func(v verdict, at ...int) func(*fakeBroker, *smqpb.PublishBatch) verdict {
		return onArrival(func(i int) verdict {
			if slices.Contains(at, i) {
				return v
			}
			return verdict{}
		})
	}
	for name, script := range map[string]func(*fakeBroker, *smqpb.PublishBatch) verdict{
		"first sealed":                 fail(verdict{refuse: smq.ErrSegmentSealed}, 0),
		"sealed in the middle":         fail(verdict{refuse: smq.ErrSegmentSealed}, 2, 3, 4),
		"not the owner":                fail(verdict{refuse: smq.ErrNotOwner}, 1),
		"draining":                     fail(verdict{refuse: smq.ErrDraining}, 1, 2),
		"segment not found":            fail(verdict{refuse: smq.ErrNotFound}, 0),
		"overloaded":                   fail(verdict{refuse: smq.ErrOverloaded}, 0, 1, 2, 3, 4, 5),
		"unavailable":                  fail(verdict{refuse: smq.ErrUnavailable}, 3),
		"stored and said to be failed": fail(verdict{then: smq.ErrTimeout}, 1, 4),
		"no space for a while":         fail(verdict{refuse: smq.ErrNoSpace}, 0, 2, 9),
		"stream breaks before":         fail(verdict{dropBefore: true}, 0, 3, 7),
		"stream breaks after":          fail(verdict{dropAfter: true}, 0, 3, 7),
		"answered twice":               fail(verdict{twice: true}, 0, 1, 2, 3, 4, 5, 6),
		"an unknown error":             fail(verdict{refuse: errors.New("of the future")}, 2),
		"a late replicated ack":        fail(verdict{level: smqpb.AckLevel_REPLICATED, delay: 1001 * time.Millisecond}, 2),
		"a late stored ack":            fail(verdict{delay: 5 * time.Second}, 2),
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
				f.verdict = script
				r := newTold()
				p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take})
				publish(t, p, 0, 0, 200)
				mustClose(t, p)
				wantValues(t, f, 0, numbers(0, 200))
				r.wantAcked(t, 0, 0, 200, 0)
			})
		})
	}
}

// A replicated ack that comes too late is not believed, a stored one is.
func TestLateAcks(t *testing.T) {
	for _, late := range []bool{false, true} {
		withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
			delay := time.Second
			if late {
				delay++
			}
			arrivals := 0
			f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict {
				arrivals++
				if arrivals == 1 {
					return verdict{level: smqpb.AckLevel_REPLICATED, delay: delay}
				}
				return verdict{level: smqpb.AckLevel_STORED}
			}
			r := newTold()
			p := newPublisher(t, c, PublisherOptions{Results: r.take, Linger: NoLinger, Acks: AckReplicated})
			publish(t, p, 0, 0, 1)
			mustClose(t, p)
			want := AckReplicated
			if late {
				want = AckStored
			}
			if got, _ := r.get(0); got.err != nil || got.level != want || got.offset != 0 {
				t.Errorf("late: %v: told %+v", late, got)
			}
			wantValues(t, f, 0, numbers(0, 1))
		})
	}
}

// Who asked for stored acks is not told of others.
func TestWeakerAckThanAskedFor(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.verdict = onArrival(func(i int) verdict {
			if i < 3 {
				return verdict{level: smqpb.AckLevel_REPLICATED}
			}
			return verdict{}
		})
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take, Acks: AckStored})
		publish(t, p, 0, 0, 1)
		mustClose(t, p)
		r.wantAcked(t, 0, 0, 1, 0)
	})
}

func TestSegmentsMoveUnderLoad(t *testing.T) {
	for name, move := range map[string]func(f *fakeCluster){
		"roll":           func(f *fakeCluster) { f.seal(0) },
		"split":          func(f *fakeCluster) { f.replace(0, 8, 0, 3, 5) },
		"split and seal": func(f *fakeCluster) { f.replace(0, 8, 0, 3, 5); f.seal(4) },
		"merge":          func(f *fakeCluster) { f.replace(0, 8, 0, 4); f.replace(0, 8, 0) },
		"owner killed":   func(f *fakeCluster) { f.startAll(); f.ownerOf(0).kill() },
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, 3, 8, func(t *testing.T, f *fakeCluster, c *Client) {
				r := newTold()
				p := newPublisher(t, c, PublisherOptions{BatchMessages: 5, Results: r.take})
				for round := range 4 {
					for i := round * 400; i < (round+1)*400; i++ {
						publish(t, p, int32(i%8), i, i+1)
					}
					move(f)
				}
				mustClose(t, p)
				for part := range int32(8) {
					var want []string
					for i := int(part); i < 1600; i += 8 {
						want = append(want, fmt.Sprint(i))
						if got, _ := r.get(uint64(i)); got.err != nil || got.offset != int64(i/8) {
							t.Fatalf("message %d: %+v", i, got)
						}
					}
					wantValues(t, f, part, want)
				}
			})
		})
	}
}

// All brokers are gone for a while, then another comes.
func TestAllBrokersGoneForAWhile(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take})
		publish(t, p, 0, 0, 50)
		for _, b := range f.brokers {
			b.kill()
		}
		publish(t, p, 0, 50, 100)
		pass(90 * time.Second)
		f.brokers[1].start()
		mustClose(t, p)
		wantValues(t, f, 0, numbers(0, 100))
		r.wantAcked(t, 0, 0, 100, 0)
	})
}

// Without masters and without a leader the traffic goes on, streams that break
// included; only new owners cannot be found.
func TestTrafficGoesOnWithoutMasters(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take})
		publish(t, p, 0, 0, 50)
		mustFlush(t, p)
		f.master.Stop()
		f.mu.Lock()
		f.noLeader = true
		f.verdict = onArrival(func(i int) verdict { return verdict{dropAfter: i == 2} })
		f.mu.Unlock()
		begun := time.Now()
		publish(t, p, 0, 50, 100)
		mustFlush(t, p)
		if waited := time.Since(begun); waited > time.Second {
			t.Errorf("a broken stream waited %v for the leader", waited)
		}
		f.seal(0)
		publish(t, p, 0, 100, 110)
		pass(time.Minute)
		if _, ok := r.get(100); ok {
			t.Error("a message was acked by a sealed segment")
		}
		f.startMaster()
		f.mu.Lock()
		f.noLeader = false
		f.mu.Unlock()
		mustClose(t, p)
		r.wantAcked(t, 0, 0, 110, 0)
		wantValues(t, f, 0, numbers(0, 110))
	})
}

func TestLeaderChanges(t *testing.T) {
	withCluster(t, 3, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take})
		for i := range 6 {
			f.mu.Lock()
			f.leader = i
			f.mu.Unlock()
			f.seal(0)
			publish(t, p, 0, i*10, i*10+10)
			mustFlush(t, p)
		}
		mustClose(t, p)
		r.wantAcked(t, 0, 0, 60, 0)
	})
}

// A silent broker is given up after three seconds, not at the delivery timeout.
func TestBrokerFallsSilent(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take})
		publish(t, p, 0, 0, 10)
		mustFlush(t, p)
		owner := f.ownerOf(0)
		f.silence(owner)
		begun := time.Now()
		publish(t, p, 0, 10, 20)
		mustFlush(t, p)
		if waited := time.Since(begun); waited < time.Second || waited > 15*time.Second {
			t.Errorf("it took %v", waited)
		}
		mustClose(t, p)
		r.wantAcked(t, 0, 0, 20, 0)
		wantValues(t, f, 0, numbers(0, 20))
	})
}

// A broker that refuses everything is asked again ever less often.
func TestBackoff(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		arrivals := 0
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict {
			arrivals++
			return verdict{refuse: smq.ErrOverloaded}
		}
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take})
		publish(t, p, 0, 0, 1)
		synctest.Wait()
		pass(time.Minute)
		f.mu.Lock()
		if arrivals < 60 || arrivals > 150 {
			t.Errorf("%d attempts in a minute", arrivals)
		}
		f.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		r.wantFailed(t, 0, 1, ErrNotStored)
	})
}
