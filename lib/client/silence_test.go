package client

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// hearing collects what is logged.
type hearing struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (h *hearing) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(b)
}

// lines are those heard so far.
func (h *hearing) lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Split(strings.TrimSuffix(h.log.String(), "\n"), "\n")
}

// silent reports whether nothing has been heard.
func (h *hearing) silent() bool { return h.lines()[0] == "" }

// listen hears what a client's publishers and subscribers log from now on.
func (c *Client) listen() *hearing {
	var h hearing
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "topic" {
			return slog.Attr{}
		}
		return a
	}
	c.logger = slog.New(slog.NewTextHandler(&h, &slog.HandlerOptions{ReplaceAttr: drop}))
	return &h
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
		if !log.silent() {
			t.Errorf("heard at once: %q", log.lines())
		}
		pass(88 * time.Second)
		f.mu.Lock()
		full = false
		f.mu.Unlock()
		mustClose(t, p)
		got := log.lines()
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
		if !log.silent() {
			t.Errorf("heard %q", log.lines())
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
		got := log.lines()
		if len(got) != 2 || !strings.HasPrefix(got[0], `level=WARN msg="no messages for 3s, trying again" error=`) ||
			got[1] != `level=INFO msg="messages come again"` {
			t.Errorf("heard %q", got)
		}
	})
}
