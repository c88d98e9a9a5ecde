//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// wide is a line of 2 KB with one of 500 keys.
func wide(n int) string {
	return fmt.Sprintf("key-%d-%s:%d", n%500, strings.Repeat("x", 2000), n)
}

// version is a layout version as smq-admin topic history lists it.
type version struct {
	Version uint64
	Cause   string
	Reason  string
	PauseMS int64 `json:"pause_ms"`
}

// history is the causes of a topic's layout versions, and the longest pause.
func (c *cluster) history(topic string) (causes map[string]int, longest time.Duration) {
	c.t.Helper()
	var all []version
	if err := c.ask(&all, "topic", "history", topic); err != nil {
		c.t.Fatal(err)
	}
	causes = make(map[string]int)
	for _, v := range all {
		causes[v.Cause]++
		longest = max(longest, time.Duration(v.PauseMS)*time.Millisecond)
		if (v.Cause == "split" || v.Cause == "merge") && v.Reason == "" {
			c.t.Errorf("version %d gives no reason for a %s", v.Version, v.Cause)
		}
	}
	return causes, longest
}

// awaitOwners waits until the topic's segments satisfy enough, which is told how
// many segments and owners there are.
func (c *cluster) awaitOwners(topic, what string, enough func(segments, owners int) bool) {
	c.t.Helper()
	await(c.t, topic+" is "+what, func() error {
		all, err := c.segments(topic)
		if err != nil {
			return err
		}
		owners := make(map[string]bool)
		for _, s := range all {
			owners[s.Owner] = true
		}
		if !enough(len(all), len(owners)) {
			return fmt.Errorf("it has %d segments of %d owners", len(all), len(owners))
		}
		return nil
	})
}

// TestFlood lets a flood come over a topic: it spreads over all brokers by
// itself, and folds back when the flood is over. Whoever publishes and reads
// notices nothing but pauses: all is there once, in order.
func TestFlood(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 4)
	c.createTopic("t", "--split-above", "1MB/s", "--cool-down", "2s", "--max-segments", "8")
	pub := c.publish("pub", "t", wide, "-K", ":")
	pub.setWindow(1)
	live := c.subscribe("sub", "t")
	pub.awaitMore(100)

	pub.mark()
	pub.setWindow(window)
	begun := time.Now()
	c.awaitOwners("t", "spread over all brokers", func(_, owners int) bool { return owners == 4 })
	spread := time.Since(begun)
	pub.awaitMore(scaled(t, 20_000))
	paused := pub.longestPause().length

	pub.setWindow(0)
	begun = time.Now()
	c.awaitOwners("t", "one segment again", func(segments, _ int) bool { return segments == 1 })
	folded := time.Since(begun)
	pub.setWindow(window)
	n := pub.finish(0)
	live.finish(n)
	live.checkAcks(pub.places())
	c.verify("t", n)
	causes, longest := c.history("t")
	if causes["split"] == 0 || causes["merge"] == 0 {
		t.Errorf("layout versions: %v", causes)
	}
	if text := c.log("pub").String(); strings.Count(text, "\n") != 1 {
		t.Errorf("the publisher says %q", text)
	}
	t.Logf("%d messages; spread over 4 brokers after %v, one segment again after %v; longest pause of a change %v, of the publisher %v; versions: %v", n, spread, folded, longest, paused, causes)
}

// TestLoadMovesToABrokerThatJoins loads the only broker there is with several
// topics and adds another: it becomes a follower of all, and then the owner of
// some. Nobody notices anything but pauses.
func TestLoadMovesToABrokerThatJoins(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 1)
	topics := []string{"a", "b", "c", "d"}
	var pubs []*publisher
	for _, topic := range topics {
		c.createTopic(topic)
		pubs = append(pubs, c.publish("pub-"+topic, topic, wide, "-K", ":", "--rate", "4MB/s"))
	}
	pubs[0].awaitMore(1000)
	joined := c.newBroker("broker-2")
	c.brokers = append(c.brokers, joined)
	joined.start()
	await(t, "the load is shared", func() error {
		owned := 0
		for _, topic := range topics {
			all, err := c.segments(topic)
			if err != nil {
				return err
			}
			if all[0].OwnerAddress == joined.addrs.GRPC {
				owned++
			}
		}
		if owned == 0 {
			return fmt.Errorf("the broker that joined owns nothing")
		}
		return nil
	})
	for i, topic := range topics {
		c.replicasOf(topic, 2)
		n := pubs[i].finish(0)
		if text := c.log(pubs[i].name).String(); strings.Count(text, "\n") != 1 {
			t.Errorf("%s says %q", pubs[i].name, text)
		}
		c.readAll("read-"+topic, topic, n).checkAcks(pubs[i].places())
		causes, longest := c.history(topic)
		if causes["move"] == 0 {
			t.Errorf("topic %s: layout versions %v", topic, causes)
		}
		t.Logf("topic %s: %v, the longest pause of a change %v", topic, causes, longest)
	}
}
