package client

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestDeliveryTimeout(t *testing.T) {
	withCluster(t, 1, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		f.verdict = func(_ *fakeBroker, b *smqpb.PublishBatch) verdict {
			return verdict{appendOnly: b.Partition == 0}
		}
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, DeliveryTimeout: 10 * time.Second, Results: r.take})
		publish(t, p, 0, 0, 70) // five batches are sent, two wait
		publish(t, p, 0, 70, 75)
		publish(t, p, 1, 100, 110)
		begun := time.Now()
		mustFlush(t, p)
		if waited := time.Since(begun); waited != 10*time.Second {
			t.Errorf("given up after %v", waited)
		}
		r.wantFailed(t, 0, 50, ErrUnknown)
		r.wantFailed(t, 50, 75, ErrNotStored)
		r.wantAcked(t, 1, 100, 110, 0)
		if got, _ := r.get(0); !errors.Is(got.err, smq.ErrTimeout) {
			t.Errorf("cause: %v", got.err)
		}
		// What comes later starts anew, in a higher epoch.
		f.mu.Lock()
		f.verdict = nil
		f.mu.Unlock()
		publish(t, p, 0, 200, 220)
		mustClose(t, p)
		wantValues(t, f, 0, append(numbers(0, 50), numbers(200, 220)...))
		r.wantAcked(t, 0, 200, 220, 50)
		for i, b := range f.logs[0].batches {
			h, _ := record.ParseHeader(b)
			if want := int16(i / 5); h.ProducerEpoch != want {
				t.Errorf("batch %d has epoch %d", i, h.ProducerEpoch)
			}
		}
	})
}

// With no broker to send to nothing is in doubt, however long it takes.
func TestDeliveryTimeoutWithoutBrokers(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{DeliveryTimeout: time.Minute, Results: r.take})
		f.brokers[0].kill()
		synctest.Wait() // for the client to notice
		publish(t, p, 0, 0, 10)
		mustFlush(t, p)
		r.wantFailed(t, 0, 10, ErrNotStored)
		publish(t, p, 0, 10, 20)
		pass(30 * time.Second)
		f.brokers[0].start()
		mustClose(t, p)
		r.wantAcked(t, 0, 10, 20, 0)
		if h, _ := record.ParseHeader(f.logs[0].batches[0]); h.ProducerEpoch != 0 {
			t.Errorf("the epoch rose to %d though nothing was sent in the first", h.ProducerEpoch)
		}
	})
}

// A batch that is refused for good takes what follows with it, not what is
// before it.
func TestRefusedForGood(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.verdict = onArrival(func(i int) verdict {
			switch i {
			case 0:
				return verdict{delay: time.Second}
			case 2:
				return verdict{refuse: smq.ErrCorrupt}
			}
			return verdict{}
		})
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take})
		publish(t, p, 0, 0, 50)
		pass(3 * time.Second)
		publish(t, p, 0, 50, 60)
		mustClose(t, p)
		r.wantAcked(t, 0, 0, 20, 0)
		r.wantFailed(t, 20, 50, ErrUnknown)
		r.wantAcked(t, 0, 50, 60, 20)
		wantValues(t, f, 0, append(numbers(0, 20), numbers(50, 60)...))
	})
}

func TestProducerStateExpires(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take})
		publish(t, p, 0, 0, 50)
		mustFlush(t, p)
		f.mu.Lock()
		clear(f.logs[0].producers)
		f.mu.Unlock()
		publish(t, p, 0, 50, 150)
		mustClose(t, p)
		wantValues(t, f, 0, numbers(0, 150))
		r.wantAcked(t, 0, 0, 150, 0)
	})
}

// When the state is lost and an attempt's fate is not known either, nothing can
// be sent again without risking a duplicate.
func TestProducerStateLostWithAnswersOutstanding(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take, DeliveryTimeout: 20 * time.Second})
		publish(t, p, 0, 0, 20)
		mustFlush(t, p)
		f.mu.Lock()
		f.verdict = onArrival(func(i int) verdict {
			if i > 0 {
				clear(f.logs[0].producers)
			}
			return verdict{dropAfter: i == 0}
		})
		f.mu.Unlock()
		publish(t, p, 0, 20, 40)
		mustFlush(t, p)
		r.wantFailed(t, 20, 30, ErrUnknown)
		wantValues(t, f, 0, numbers(0, 30))
		f.mu.Lock()
		f.verdict = nil
		f.mu.Unlock()
		publish(t, p, 0, 40, 50)
		mustClose(t, p)
		r.wantAcked(t, 0, 40, 50, 30)
	})
}

// The broker holds a part of a batch, from an earlier run of the same producer:
// the batch is cut behind it.
func TestOverlapIsCutOff(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		var p *Publisher
		r := newTold()
		f.verdict = onArrival(func(i int) verdict {
			if i > 0 {
				return verdict{}
			}
			b := record.NewBuilder(record.None)
			for i := range 4 {
				b.Append(1, nil, fmt.Append(nil, i), nil)
			}
			p.mu.Lock()
			producer := p.parts.get(0).producer
			p.mu.Unlock()
			bytes, err := b.Finish(nil, producer, 0, 0)
			if err == nil {
				_, _, err = f.log(0).append(bytes, 1)
			}
			if err != nil {
				t.Error(err)
			}
			return verdict{}
		})
		p = newPublisher(t, c, PublisherOptions{BatchMessages: 10, Codec: record.LZ4, Results: r.take})
		publish(t, p, 0, 0, 30)
		mustClose(t, p)
		wantValues(t, f, 0, numbers(0, 30))
		for i := range uint64(30) {
			want := int64(i)
			if i < 4 {
				want = -1
			}
			if got, _ := r.get(i); got.err != nil || got.offset != want {
				t.Errorf("message %d: %+v", i, got)
			}
		}
	})
}

func TestTopicDeletedWhilePublishing(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take, DeliveryTimeout: Forever})
		publish(t, p, 0, 0, 10)
		mustFlush(t, p)
		if err := c.DeleteTopic(t.Context(), fakeTopic); err != nil {
			t.Fatal(err)
		}
		publish(t, p, 0, 10, 20)
		mustFlush(t, p)
		r.wantFailed(t, 10, 20, ErrNotStored)
		if got, _ := r.get(10); !errors.Is(got.err, smq.ErrNotFound) {
			t.Errorf("told %v", got.err)
		}
		if err := p.Publish(t.Context(), &Message{}); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("publish: %v", err)
		}
		mustClose(t, p)
	})
}

// The highest epoch is followed by another producer id.
func TestEpochsRunOut(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take})
		publish(t, p, 0, 0, 5)
		mustFlush(t, p)
		p.mu.Lock()
		part := p.parts.get(0)
		id := part.producer
		part.epoch, part.nextSeq = math.MaxInt16, 0
		p.mu.Unlock()
		f.mu.Lock()
		f.verdict = onArrival(func(i int) verdict {
			if i == 0 {
				return verdict{refuse: smq.ErrTooLarge}
			}
			return verdict{}
		})
		f.mu.Unlock()
		publish(t, p, 0, 5, 10)
		mustFlush(t, p)
		publish(t, p, 0, 10, 15)
		mustFlush(t, p)
		r.wantFailed(t, 5, 10, ErrNotStored)
		r.wantAcked(t, 0, 10, 15, 5)
		if part.producer == id || part.epoch != 0 {
			t.Errorf("producer id %d, before %d, epoch %d", part.producer, id, part.epoch)
		}
		mustClose(t, p)
	})
}

// truncate makes the partition what a segment's unclean seal leaves of it: the
// first n batches, and what they say of producers.
func (l *fakeLog) truncate(n int) {
	kept := l.batches[:n]
	*l = fakeLog{producers: make(map[int64]*fakeProducer)}
	for _, b := range kept {
		if _, _, err := l.append(b, 1); err != nil {
			panic(err)
		}
	}
}

// lostWithReplicas has the segment of the first batch to arrive seal with only
// some of what was acked before, while that batch is under way.
func lostWithReplicas(f *fakeCluster, kept int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	arrived := false
	f.verdict = func(_ *fakeBroker, b *smqpb.PublishBatch) verdict {
		if arrived {
			return verdict{}
		}
		arrived = true
		f.logs[0].truncate(kept)
		f.sealed[b.Segment] = true
		return verdict{dropBefore: true}
	}
}

// Acked messages are lost together with all replicas while others are under
// way, whose fate nobody tells: they are not stored, as the successor's state
// shows, and are sent in a new epoch.
func TestAckedMessagesAreLostWithAllReplicas(t *testing.T) {
	withCluster(t, 1, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take, DeliveryTimeout: Forever})
		publish(t, p, 0, 0, 30)
		mustFlush(t, p)
		lostWithReplicas(f, 2)
		publish(t, p, 0, 30, 60)
		mustClose(t, p)
		wantValues(t, f, 0, append(numbers(0, 20), numbers(30, 60)...))
		r.wantAcked(t, 0, 30, 60, 20)
	})
}

// When nothing is left of the producer's state either, what is under way may be
// stored, as far as anybody can tell. Waiting would not help.
func TestAllOfAProducerIsLostWithAllReplicas(t *testing.T) {
	withCluster(t, 1, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{BatchMessages: 10, Results: r.take, DeliveryTimeout: Forever})
		publish(t, p, 0, 0, 30)
		mustFlush(t, p)
		lostWithReplicas(f, 0)
		publish(t, p, 0, 30, 40)
		mustFlush(t, p)
		r.wantFailed(t, 30, 40, ErrUnknown)
		publish(t, p, 0, 40, 60)
		mustClose(t, p)
		wantValues(t, f, 0, numbers(40, 60))
		r.wantAcked(t, 0, 40, 60, 0)
	})
}
