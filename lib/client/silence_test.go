package client

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// listen makes a client's publishers and subscribers from now on log to a
// buffer. They are the only ones to write, under their locks.
func (c *Client) listen() *bytes.Buffer {
	var log bytes.Buffer
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "topic" {
			return slog.Attr{}
		}
		return a
	}
	c.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: drop}))
	return &log
}

func TestMissingAcksAreLoggedRarely(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		log := c.listen()
		full := true // guarded by the cluster's lock
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict {
			if full {
				return verdict{refuse: smq.ErrNoSpace}
			}
			return verdict{}
		}
		p := newPublisher(t, c, PublisherOptions{Linger: NoLinger, DeliveryTimeout: Forever})
		publish(t, p, 0, 0, 1)
		pass(2 * time.Second)
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("heard at once: %s", log)
		}
		pass(88 * time.Second)
		f.mu.Lock()
		full = false
		f.mu.Unlock()
		mustClose(t, p)
		got := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(got) != 3 || got[0] != `level=WARN msg="no acks for 3s, trying again" error="no space left"` ||
			got[1] != `level=WARN msg="no acks for 1m3s, trying again" error="no space left"` || got[2] != `level=INFO msg="acks come again"` {
			t.Errorf("heard %q", got)
		}
	})
}

func TestNothingIsLoggedOfAcksThatCome(t *testing.T) {
	withCluster(t, 1, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		log := c.listen()
		f.verdict = func(*fakeBroker, *smqpb.PublishBatch) verdict { return verdict{delay: 2 * time.Second} }
		p := newPublisher(t, c, PublisherOptions{Linger: 10 * time.Second})
		for i := range 20 {
			publish(t, p, 0, i, i+1)
			pass(time.Second)
		}
		mustClose(t, p)
		if log.Len() > 0 {
			t.Errorf("heard %s", log)
		}
	})
}

func TestALostBrokerIsLoggedBySubscribers(t *testing.T) {
	withCluster(t, 1, 2, func(t *testing.T, f *fakeCluster, c *Client) {
		log := c.listen()
		p := newPublisher(t, c, PublisherOptions{Linger: NoLinger})
		publish(t, p, 0, 0, 1)
		mustClose(t, p)
		s, err := c.NewSubscriber(t.Context(), fakeTopic, SubscriberOptions{Start: Earliest()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		pass(10 * time.Second)
		f.brokers[0].kill()
		pass(10 * time.Second)
		f.brokers[0].start()
		pass(10 * time.Second)
		s.Close()
		got := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(got) != 2 || !strings.HasPrefix(got[0], `level=WARN msg="no messages for 3s, trying again" error=`) ||
			got[1] != `level=INFO msg="messages come again"` {
			t.Errorf("heard %q", got)
		}
	})
}
