//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestDrain ends the broker that owns the topic in good order, then each of
// them in turn, under load. Nobody sees an error.
func TestDrain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 3)
	c.createTopic("t")
	pub := c.publish("pub", "t", keyed, "-K", ":")
	live := c.subscribe("sub", "t")
	pub.awaitMore(window)

	owner, id := c.ownerOf("t")
	owner.stop()
	c.otherOwnerOf("t", id)
	pub.awaitMore(2 * window)
	owner.start()
	for _, b := range c.brokers {
		b.stop()
		pub.awaitMore(window)
		b.start()
		pub.awaitMore(window)
	}
	n := pub.finish(scaled(t, 10_000))
	live.finish(n)
	live.checkAcks(pub.places())
	if text := c.log("sub").String(); text != "" {
		t.Errorf("the subscriber says %q", text)
	}
	if text := c.log("pub").String(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "smq-pub: sent ") {
		t.Errorf("the publisher says %q", text)
	}
	c.verify("t", n)
}

// TestDrainTheOnlyBroker ends the only broker there is in good order, under
// load: nobody can take its segments. Whoever publishes or subscribes waits for
// the next broker, which has everything.
func TestDrainTheOnlyBroker(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 1)
	c.createTopic("t")
	pub := c.publish("pub", "t", plain)
	live := c.subscribe("sub", "t")
	pub.awaitMore(window)
	c.brokers[0].stop()
	before := pub.acked()

	next := c.newBroker("broker-2")
	c.brokers = append(c.brokers, next)
	next.start()
	pub.awaitAcks(before + 2*window)
	n := pub.finish(scaled(t, 10_000))
	live.finish(n)
	live.checkAcks(pub.places())
	c.readAll("read", "t", n)
	c.verify("t", n)
}

// TestDrainAtOnce ends a broker by two signals: the second one does not wait.
func TestDrainAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 2)
	c.createTopic("t")
	pub := c.publish("pub", "t", plain)
	pub.awaitMore(window)
	owner, _ := c.ownerOf("t")
	owner.signal(syscall.SIGTERM)
	_ = owner.cmd.Process.Signal(syscall.SIGTERM) // it fails when the broker has been faster
	if code := owner.exit(); code != 143 && code != 0 {
		t.Errorf("the broker ended with exit code %d", code)
	}
	pub.awaitMore(2 * window)
	n := pub.finish(0)
	c.readAll("read", "t", n).checkAcks(pub.places())
	c.verify("t", n)
}

// TestDrainFromAfar has an administrator drain the broker that owns the topic,
// under load. The broker ends by itself, and another one can be started in its place
// as soon as the command has come back.
func TestDrainFromAfar(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 2)
	c.createTopic("t")
	pub := c.publish("pub", "t", keyed, "-K", ":")
	live := c.subscribe("sub", "t")
	pub.awaitMore(window)
	owner, _ := c.ownerOf("t")
	c.mustAdmin("broker", "drain", owner.addrs.GRPC, "--wait")
	c.replace(owner, "next")
	if code := owner.exit(); code != 0 {
		t.Errorf("the broker ended with exit code %d", code)
	}
	pub.awaitMore(2 * window)
	n := pub.finish(0)
	live.finish(n)
	live.checkAcks(pub.places())
	if text := c.log("sub").String(); text != "" {
		t.Errorf("the subscriber says %q", text)
	}
	c.verify("t", n)
}

// replace starts a broker at the addresses of one that has left.
func (c *cluster) replace(left *daemon, name string) {
	c.t.Helper()
	next := c.newBroker(name)
	next.addrs = left.addrs
	next.start()
}

// TestDrainOfTheLeaderFromAfar drains the leading broker while somebody watches
// what it does, who is let go before it ends.
func TestDrainOfTheLeaderFromAfar(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 2)
	c.createTopic("t")
	leader := c.leader()
	events := c.start("events", "smq-admin", stdio{out: c.log("events")}, "events", "-f", "--since", "1h", "--master", c.masterList())
	await(t, "events are watched", func() error {
		if text := c.log("events").String(); !strings.Contains(text, "create") {
			return fmt.Errorf("it says %q", text)
		}
		return nil
	})
	c.mustAdmin("broker", "drain", leader.addrs.GRPC, "--wait")
	c.replace(leader, "next")
	if code := leader.exit(); code != 0 {
		t.Errorf("the broker ended with exit code %d", code)
	}
	events.kill()
}
