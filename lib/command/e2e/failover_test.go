//go:build unix

package e2e

import (
	"fmt"
	"strconv"
	"testing"
)

// Lines that a publisher is fed: n by itself, and n with one of some keys.
func plain(n int) string { return strconv.Itoa(n) }
func keyed(n int) string { return fmt.Sprintf("key-%d:%d", n%500, n) }

// TestKills kills the brokers that own what is being published, the one that
// leads, and the master, and starts each again. Nothing is lost, nothing is
// there twice, and everything is in order.
func TestKills(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 3)
	c.createTopic("plain")
	c.createTopic("keyed")
	line := c.publish("pub-plain", "plain", plain)
	keys := c.publish("pub-keyed", "keyed", keyed, "-K", ":")
	live := c.subscribe("sub-plain", "plain")
	liveKeys := c.subscribe("sub-keyed", "keyed")
	goOn := func() {
		t.Helper()
		line.awaitMore(2 * window)
		keys.awaitMore(2 * window)
	}
	goOn()
	for _, topic := range []string{"plain", "keyed", "plain", "keyed"} {
		owner, id := c.ownerOf(topic)
		owner.restart()
		c.otherOwnerOf(topic, id)
		goOn()
	}
	c.leader().restart()
	goOn()
	c.masters[0].restart()
	goOn()
	n, k := line.finish(scaled(t, 50_000)), keys.finish(scaled(t, 50_000))
	live.finish(n)
	live.checkAcks(line.places())
	liveKeys.finish(k)
	liveKeys.checkAcks(keys.places())
	c.readAll("read-plain", "plain", n)
	c.readAll("read-keyed", "keyed", k)
	c.verify("plain", n)
	c.verify("keyed", k)
	t.Logf("%d and %d messages", n, k)
}
