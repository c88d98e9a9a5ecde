package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestBufferIsBounded(t *testing.T) {
	withCluster(t, 1, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		var mu sync.Mutex
		stuck := true
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict {
			mu.Lock()
			defer mu.Unlock()
			if stuck {
				return verdict{refuse: smq.ErrOverloaded}
			}
			return verdict{}
		}
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Buffer: 100_000, BatchBytes: 10_000, Linger: time.Hour, DeliveryTimeout: Forever, Results: r.take})
		value := make([]byte, 1000)
		n := 0
		for ; ; n++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := p.Publish(ctx, &Message{Value: value, Token: uint64(n)})
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n < 80 || n > 100 {
			t.Errorf("a buffer of 100 kB took %d messages of 1 kB", n)
		}
		blocked := make(chan error)
		go func() { blocked <- p.Publish(t.Context(), &Message{Value: value, Token: uint64(n)}) }()
		synctest.Wait()
		mu.Lock()
		stuck = false
		mu.Unlock()
		if err := <-blocked; err != nil {
			t.Error(err)
		}
		mustClose(t, p)
		r.wantAcked(t, 0, 0, n+1, 0)
		if p.used != 0 {
			t.Errorf("%d bytes are still counted", p.used)
		}
	})
}

func TestFlush(t *testing.T) {
	withCluster(t, 1, 8, func(t *testing.T, f *fakeCluster, c *Client) {
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Linger: time.Hour, Results: r.take})
		mustFlush(t, p)
		for i := range 8 {
			publish(t, p, int32(i), i, i+1)
		}
		mustFlush(t, p)
		if n := r.count(); n != 8 {
			t.Errorf("told of %d messages when flushed", n)
		}
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict { return verdict{refuse: smq.ErrUnavailable} }
		publish(t, p, 0, 8, 9)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: %v", err)
		}
		// Close gives up when its context ends, and tells of everything.
		if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		r.wantFailed(t, 8, 9, ErrUnknown)
		mustClose(t, p)
		if err := p.Publish(t.Context(), &Message{}); !errors.Is(err, ErrClosed) {
			t.Errorf("publish after close: %v", err)
		}
	})
}

// Without Results, Flush and Close tell of failures.
func TestFlushTellsOfFailuresNobodyElseHears(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict { return verdict{refuse: smq.ErrInvalid} }
		p := newPublisher(t, c, PublisherOptions{})
		publish(t, p, 0, 0, 1)
		if err := p.Flush(t.Context()); !errors.Is(err, ErrNotStored) || !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("flush: %v", err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("close tells again: %v", err)
		}
	})
}

func TestClosingTheClientEndsItsUsers(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict { return verdict{appendOnly: true} }
		r := newTold()
		p := newPublisher(t, c, PublisherOptions{Results: r.take, BatchMessages: 1})
		publish(t, p, 0, 0, 10)
		synctest.Wait()
		s, err := c.NewSubscriber(t.Context(), fakeTopic, SubscriberOptions{})
		if err != nil {
			t.Fatal(err)
		}
		polled := make(chan error)
		go func() {
			for {
				if _, err := s.Poll(context.Background()); err != nil {
					polled <- err
					return
				}
			}
		}()
		synctest.Wait()
		c.Close()
		if err := <-polled; !errors.Is(err, ErrClosed) {
			t.Errorf("poll: %v", err)
		}
		r.wantFailed(t, 0, 5, ErrUnknown)
		r.wantFailed(t, 5, 10, ErrNotStored)
		if _, err := c.NewPublisher(t.Context(), fakeTopic, PublisherOptions{}); err == nil {
			t.Error("a closed client makes publishers")
		}
		mustClose(t, p)
	})
}
