//go:build unix

package e2e

import "testing"

// TestReaderOfThePast takes away, one after the other and in every way, the
// brokers from which a subscriber reads what is long stored, while it is in the
// middle of that.
func TestReaderOfThePast(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 3)
	c.createTopic("t")
	pub := c.publish("pub", "t", padded, "-K", ":")
	pub.awaitMore(window)
	for range 2 { // so that there are several segments
		owner, id := c.ownerOf("t")
		owner.restart()
		c.otherOwnerOf("t", id)
		pub.awaitMore(window)
	}
	n := pub.finish(scaled(t, 30_000)) // more than a subscriber receives ahead

	read := c.subscribe("sub", "t", "--until", "end")
	for i, takeAway := range []func(*daemon){(*daemon).restart, (*daemon).stop, func(d *daemon) { d.pause() }} {
		read.awaitMessages((i + 1) * n / 10)
		read.gate.shut()
		owner, id := c.ownerOf("t")
		takeAway(owner)
		c.otherOwnerOf("t", id)
		read.gate.open()
	}
	if code := read.exit(); code != 0 {
		t.Errorf("the subscriber ended with exit code %d", code)
	}
	read.check(n)
	read.checkAcks(pub.places())
}
