//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestRollingRestart ends every master and every broker in good order, one
// after the other, and starts each again, while a publisher sends 20,000
// messages a second. Nobody sees an error, nothing is lost or there twice.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := newClusterOfMasters(t, newStore(t), 3)
	c.createTopic("t")
	pub := c.publish("pub", "t", keyed, "-K", ":", "--rate", "20000/s")
	pub.setWindow(60_000) // the rate bounds what is under way
	live := c.subscribe("sub", "t")
	pub.awaitMore(20_000)
	pub.mark()
	for _, d := range append(append([]*daemon{}, c.masters...), c.brokers...) {
		d.stop()
		d.start()
		c.awaitAllThere()
		pub.awaitMore(20_000)
	}
	pause := pub.longestPause().length
	n := pub.finish(0)
	live.finish(n)
	live.checkAcks(pub.places())
	if text := c.log("sub").String(); text != "" {
		t.Errorf("the subscriber says %q", text)
	}
	if text := c.log("pub").String(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "smq-pub: sent ") {
		t.Errorf("the publisher says %q", text)
	}
	c.verify("t", n)
	t.Logf("%d messages; the longest pause was %v", n, pause)
}

// awaitAllThere waits until all masters and brokers are members, as somebody who
// restarts one after the other does.
func (c *cluster) awaitAllThere() {
	c.t.Helper()
	await(c.t, "everybody is there", func() error {
		var status struct{ Masters []struct{ State string } }
		if err := c.ask(&status, "master", "status"); err != nil {
			return err
		}
		var brokers []broker
		if err := c.ask(&brokers, "broker", "list"); err != nil {
			return err
		}
		there := 0
		for _, b := range brokers {
			if b.State == "ok" {
				there++
			}
		}
		if len(status.Masters) != len(c.masters) || there != len(c.brokers) {
			return fmt.Errorf("there are %d masters, %d brokers", len(status.Masters), there)
		}
		return nil
	})
}
