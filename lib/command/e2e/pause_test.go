//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestPausedOwner pauses the broker that owns two topics, one that is published
// to and one that is quiet, until others own them, and then lets it go on. It
// stores nothing more and acks nothing that is not in the log. Whoever used it
// goes on with its successor, also when it was paused with it and so has seen
// nothing of that.
func TestPausedOwner(t *testing.T) {
	for _, leads := range []bool{false, true} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("leads=%t,together=%t", leads, together), func(t *testing.T) {
				t.Parallel()
				testPausedOwner(t, leads, together)
			})
		}
	}
}

func testPausedOwner(t *testing.T, leads, together bool) {
	c := newCluster(t, newStore(t), 2)
	busy, quiet, owner := twoTopicsOf(c, leads)
	pub := c.publishFrom(2, "pub-busy", busy, keyed, "-K", ":")
	subs := []*subscriber{c.subscribe("sub-busy", busy), c.subscribe("sub-quiet", quiet)}
	pub.awaitMore(window)
	subs[0].awaitMessages(window)
	subs[1].awaitMessages(1)

	paused := []*process{owner.process}
	if together {
		paused = append(paused, pub.process, subs[0].process, subs[1].process)
	}
	_, id := c.ownerOf(busy)
	for _, p := range paused {
		p.pause()
	}
	c.otherOwnerOf(busy, id)
	c.otherOwnerOf(quiet, id)
	if !together {
		pub.awaitMore(2 * window)
	}
	for _, p := range paused {
		p.resume()
	}
	c.awaitMember(owner, id)
	pub.awaitMore(2 * window)
	c.say(quiet, 2)
	subs[1].finish(2)
	n := pub.finish(scaled(t, 10_000))
	subs[0].finish(n)
	subs[0].checkAcks(pub.places())
	c.verify(busy, n)
	c.verify(quiet, 2)
}

// twoTopicsOf makes topics until two of them have the same owner, which leads or
// does not. Each has the message 1.
func twoTopicsOf(c *cluster, leads bool) (first, second string, owner *daemon) {
	c.t.Helper()
	leader := c.leader()
	var found []string
	for i := 0; len(found) < 2; i++ {
		topic := fmt.Sprintf("topic-%d", i)
		c.createTopic(topic)
		c.say(topic, 1)
		if at, _ := c.ownerOf(topic); (at == leader) == leads {
			owner, found = at, append(found, topic)
		}
	}
	return found[0], found[1], owner
}

// say publishes the message of a number to a topic, with the key "said".
func (c *cluster) say(topic string, number int) {
	c.t.Helper()
	in := strings.NewReader(fmt.Sprintf("said:%d\n", number))
	got := c.run(stdio{in: in}, "smq-pub", topic, "-K", ":", "--master", c.masterList())
	if got.code != 0 {
		c.t.Fatalf("publish message %d to %s: %v", number, topic, got)
	}
}

// awaitMember waits until the broker is a member with another id than it had.
func (c *cluster) awaitMember(d *daemon, before string) {
	c.t.Helper()
	await(c.t, d.name+" is a member again", func() error {
		var all []broker
		if err := c.ask(&all, "broker", "list"); err != nil {
			return err
		}
		for _, b := range all {
			if b.Address == d.addrs.GRPC && b.ID != before && b.State == "ok" {
				return nil
			}
		}
		return fmt.Errorf("there are %v", all)
	})
}

// TestCutOffOwner breaks the connection between the master and the broker that
// owns the topics, while both live and clients reach both. Others take over.
// The broker hears nothing of that, and what it serves stays quiet: those who
// wait there for messages must get those that its successor takes in.
func TestCutOffOwner(t *testing.T) {
	for name, breakIt := range map[string]func(*relay){"cut": (*relay).cut, "freeze": (*relay).freeze} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testCutOffOwner(t, breakIt)
		})
	}
}

func testCutOffOwner(t *testing.T, breakIt func(*relay)) {
	c := newCluster(t, newStore(t), 0)
	relay := newRelay(t, c.masters[0].addrs.GRPC)
	lonely := &daemon{r: c.rig, name: "broker-1", binary: "smq-broker", args: []string{"--master", relay.address}}
	c.brokers = append(c.brokers, lonely)
	lonely.start()
	for _, topic := range []string{"busy", "quiet"} {
		c.createTopic(topic)
		c.say(topic, 1) // so the only broker owns it
	}
	for i := range 2 {
		b := c.newBroker(fmt.Sprintf("broker-%d", i+2))
		c.brokers = append(c.brokers, b)
		b.start()
	}
	pub := c.publishFrom(2, "pub-busy", "busy", keyed, "-K", ":")
	live, tail := c.subscribe("sub-busy", "busy"), c.subscribe("sub-quiet", "quiet")
	tail.awaitMessages(1)
	pub.awaitMore(window)

	_, id := c.ownerOf("busy")
	breakIt(relay)
	c.otherOwnerOf("busy", id)
	c.otherOwnerOf("quiet", id)
	lonely.awaitNotReady()
	c.createTopic("later")
	pub.awaitMore(2 * window)
	c.say("quiet", 2)
	tail.awaitMessages(2)

	relay.mend()
	c.awaitMember(lonely, "") // under its old id, if it was back in time
	pub.awaitMore(window)
	c.say("quiet", 3)
	tail.finish(3)
	n := pub.finish(scaled(t, 10_000))
	live.finish(n)
	live.checkAcks(pub.places())
	c.verify("busy", n)
	c.verify("quiet", 3)
}
