package client

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var seeds = flag.Int("seeds", 12, "runs of the property tests, with seeds from 1 on")

// chaos decides at random what goes wrong. The cluster's lock is held when it
// is asked.
type chaos struct {
	rng  *rand.Rand
	calm bool
}

func (x *chaos) verdict(*fakeBroker, *smqpb.PublishBatch) verdict {
	if x.calm {
		return verdict{}
	}
	v := verdict{level: smqpb.AckLevel(1 + x.rng.IntN(2))}
	switch x.rng.IntN(40) {
	case 0:
		v.refuse = smq.ErrSegmentSealed
	case 1:
		v.refuse = smq.ErrOverloaded
	case 2:
		v.refuse = smq.ErrNotOwner
	case 3:
		v.then = smq.ErrTimeout
	case 4:
		v.then = smq.ErrUnavailable
	case 5:
		v.dropBefore = true
	case 6:
		v.dropAfter = true
	case 7:
		v.delay = time.Duration(x.rng.IntN(3000)) * time.Millisecond
	case 8:
		v.twice = true
	}
	return v
}

func (x *chaos) feedFault(*fakeBroker, int32) (error, bool) {
	if x.calm {
		return nil, false
	}
	switch x.rng.IntN(60) {
	case 0:
		return smq.ErrSegmentSealed, false
	case 1:
		return smq.ErrUnavailable, false
	case 2:
		return nil, true
	}
	return nil, false
}

// reign disturbs the cluster every now and then until the test ends it, which
// leaves the cluster whole.
func (x *chaos) reign(f *fakeCluster, partitions int32) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	rng := rand.New(rand.NewPCG(x.rng.Uint64(), 6))
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rng.IntN(400)) * time.Millisecond):
				x.disturb(f, rng, partitions)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		f.mu.Lock()
		x.calm = true
		f.mu.Unlock()
		f.startAll()
		for _, b := range f.brokers {
			f.resume(b)
		}
	}
}

// disturb changes the layout, or a broker's life.
func (x *chaos) disturb(f *fakeCluster, rng *rand.Rand, partitions int32) {
	f.mu.Lock()
	f.leader = rng.IntN(3)
	f.mu.Unlock()
	at := rng.Int32N(partitions)
	switch rng.IntN(6) {
	case 0:
		f.seal(at)
	case 1:
		f.replace(0, partitions, 0, 1+at/2)
	case 2:
		f.replace(0, partitions, 0)
	case 3, 4:
		if b := f.brokers[rng.IntN(len(f.brokers))]; b.server != nil {
			b.kill()
		} else {
			b.start()
		}
	case 5:
		if b := f.brokers[rng.IntN(len(f.brokers))]; f.pauseOf(b.addr) != nil {
			f.resume(b)
		} else if b.server != nil {
			f.pause(b)
		}
	}
}

// P3, P7: whatever brokers, streams and the layout do, the log holds what was
// published, once and in order, and every ack tells where.
func TestPropertyPublish(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			const partitions, n = 5, 1500
			withCluster(t, 3, partitions, func(t *testing.T, f *fakeCluster, c *Client) {
				x := &chaos{rng: rand.New(rand.NewPCG(seed+1, 0))}
				f.verdict = x.verdict
				end := x.reign(f, partitions)
				r := newTold()
				own := rand.New(rand.NewPCG(seed+1, 1))
				p := newPublisher(t, c, PublisherOptions{
					Results: r.take, DeliveryTimeout: Forever, Codec: codecs[own.IntN(len(codecs))],
					BatchMessages: 1 + own.IntN(20), Buffer: 1 << 16, Linger: time.Duration(own.IntN(10)-1) * time.Millisecond,
				})
				want := make([][]string, partitions)
				for i := range n {
					part := own.Int32N(partitions)
					want[part] = append(want[part], strconv.Itoa(i))
					publish(t, p, part, i, i+1)
					if own.IntN(50) == 0 {
						pass(time.Duration(own.IntN(200)) * time.Millisecond)
					}
				}
				end()
				mustClose(t, p)
				for part := range int32(partitions) {
					wantValues(t, f, part, want[part])
					for offset, v := range want[part] {
						i, _ := strconv.ParseUint(v, 10, 64)
						if got, ok := r.get(i); !ok || got.err != nil || got.partition != part || got.offset != int64(offset) {
							t.Fatalf("message %d of partition %d: told %+v, it is at offset %d", i, part, got, offset)
						}
					}
				}
				if len(r.repeats) > 0 {
					t.Errorf("told twice of %v", r.repeats)
				}
			})
		})
	}
}

// With a short delivery timeout some messages fail. What was told of each is
// true: acked ones are where the ack says, the ones not stored are not there,
// and what is there is in order and there once.
func TestPropertyPublishWithTimeouts(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			const partitions, n = 3, 1500
			withCluster(t, 3, partitions, func(t *testing.T, f *fakeCluster, c *Client) {
				x := &chaos{rng: rand.New(rand.NewPCG(seed+1, 2))}
				f.verdict = x.verdict
				end := x.reign(f, partitions)
				r := newTold()
				own := rand.New(rand.NewPCG(seed+1, 3))
				p := newPublisher(t, c, PublisherOptions{
					Results: r.take, DeliveryTimeout: time.Duration(100+own.IntN(1000)) * time.Millisecond,
					BatchMessages: 1 + own.IntN(20), Buffer: 1 << 16,
				})
				for i := range n {
					publish(t, p, own.Int32N(partitions), i, i+1)
					if own.IntN(50) == 0 {
						pass(time.Duration(own.IntN(300)) * time.Millisecond)
					}
				}
				end()
				mustClose(t, p)
				checkTruth(t, f, r, partitions, n)
			})
		})
	}
}

func checkTruth(t *testing.T, f *fakeCluster, r *told, partitions int32, n int) {
	t.Helper()
	place := make(map[uint64]int64)
	for part := range partitions {
		last := int64(-1)
		for offset, v := range f.values(part) {
			i, _ := strconv.ParseInt(v, 10, 64)
			if i <= last {
				t.Fatalf("partition %d holds message %d behind %d", part, i, last)
			}
			last = i
			place[uint64(i)] = int64(offset)
		}
	}
	failed := 0
	for i := range uint64(n) {
		got, ok := r.get(i)
		offset, there := place[i]
		switch {
		case !ok:
			t.Fatalf("nothing was told of message %d", i)
		case got.err == nil && (!there || offset != got.offset):
			t.Fatalf("message %d: acked at %d, but it is at %d (%v)", i, got.offset, offset, there)
		case errors.Is(got.err, ErrNotStored) && there:
			t.Fatalf("message %d: said to be not stored (%v), but it is at %d", i, got.err, offset)
		case got.err != nil:
			failed++
		}
	}
	if len(r.repeats) > 0 {
		t.Errorf("told twice of %v", r.repeats)
	}
	t.Logf("%d of %d messages failed", failed, n)
}

// A subscriber gets every message once and in order, whatever brokers, streams
// and the layout do meanwhile.
func TestPropertySubscribe(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			const partitions, n = 4, 1500
			withCluster(t, 3, partitions, func(t *testing.T, f *fakeCluster, c *Client) {
				x := &chaos{rng: rand.New(rand.NewPCG(seed+1, 4))}
				f.verdict, f.feedFault = x.verdict, x.feedFault
				end := x.reign(f, partitions)
				own := rand.New(rand.NewPCG(seed+1, 5))
				p := newPublisher(t, c, PublisherOptions{DeliveryTimeout: Forever, BatchMessages: 1 + own.IntN(20), Codec: codecs[own.IntN(len(codecs))]})
				s, err := c.NewSubscriber(t.Context(), fakeTopic, SubscriberOptions{Start: Earliest(), Buffer: 2000})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				got := make(chan [][]string)
				go func() { got <- collect(t, s, partitions, n) }()
				want := make([][]string, partitions)
				for i := range n {
					part := own.Int32N(partitions)
					want[part] = append(want[part], strconv.Itoa(i))
					publish(t, p, part, i, i+1)
					if own.IntN(50) == 0 {
						pass(time.Duration(own.IntN(200)) * time.Millisecond)
					}
				}
				end()
				mustClose(t, p)
				for part, values := range <-got {
					if !slices.Equal(values, want[part]) {
						t.Errorf("partition %d gave %d messages, want %d", part, len(values), len(want[part]))
					}
				}
			})
		})
	}
}

// collect polls n messages and returns their values by partition.
func collect(t *testing.T, s *Subscriber, partitions int32, n int) [][]string {
	values := make([][]string, partitions)
	for n > 0 {
		fetch, err := s.Poll(context.Background())
		if err != nil {
			t.Error(err)
			return values
		}
		for rec, ok := fetch.Next(); ok; rec, ok = fetch.Next() {
			if rec.Offset != int64(len(values[fetch.Partition])) {
				t.Errorf("partition %d: offset %d behind %d messages", fetch.Partition, rec.Offset, len(values[fetch.Partition]))
			}
			values[fetch.Partition] = append(values[fetch.Partition], string(rec.Value))
			n--
		}
		if fetch.Err() != nil {
			t.Error(fetch.Err())
			return values
		}
	}
	return values
}
