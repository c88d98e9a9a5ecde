//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBlackout kills every broker and master at once while messages are
// published with stored acks, and starts them on the same store: every ack holds. One publisher
// is killed too; another lives, and goes on. The second time the masters have
// lost their own data as well.
func TestBlackout(t *testing.T) {
	for _, forget := range []bool{false, true} {
		name := "with the masters' data"
		if forget {
			name = "without the masters' data"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBlackout(t, forget)
		})
	}
}

func testBlackout(t *testing.T, forget bool) {
	c := newCluster(t, newStore(t), 2)
	c.createTopic("cut-short")
	// What replicas hold is shown to readers, and is gone after this; so somebody
	// who is to read through it needs a topic that shows what is stored.
	c.createTopic("goes-on", "--replicas", "1")
	dies := c.publish("pub-dies", "cut-short", keyed, "-K", ":", "--acks", "stored")
	lives := c.publish("pub-lives", "goes-on", keyed, "-K", ":", "--acks", "stored")
	live := c.subscribe("sub", "goes-on")
	dies.awaitMore(scaled(t, 10_000))
	lives.awaitMore(scaled(t, 10_000))

	all := append([]*daemon{}, c.masters...)
	all = append(all, c.brokers...)
	for _, d := range all {
		_ = d.cmd.Process.Kill() // all at once; waited for below
	}
	for _, d := range all {
		d.kill()
	}
	dies.kill()
	<-dies.read
	if forget {
		if err := os.RemoveAll(filepath.Join(c.dir, c.masters[0].name)); err != nil {
			t.Fatal(err)
		}
	}
	c.startAll(c.masters)
	c.startAll(c.brokers)
	lives.awaitMore(window)
	n := lives.finish(0)
	live.finish(n)
	live.checkAcks(lives.places())
	c.verify("goes-on", n)

	// What was sent and not acked may be stored too, from the first on.
	stored := c.readStored("read", "cut-short", dies)
	c.verify("cut-short", stored)
	t.Logf("%d messages were acked before the blackout, %d stored", dies.acked(), stored)
}
