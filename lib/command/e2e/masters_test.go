//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newClusterOfMasters starts three masters and brokers.
func newClusterOfMasters(t *testing.T, store string, brokers int) *cluster {
	t.Helper()
	c := &cluster{rig: newRig(t), store: store}
	peers := freeAddresses(t, 3)
	for i, raft := range peers {
		m := c.newMaster(fmt.Sprintf("master-%d", i+1), "--peers", strings.Join(peers, ","), "--raft", raft)
		c.masters = append(c.masters, m)
	}
	c.startAll(c.masters)
	for i := range brokers {
		c.brokers = append(c.brokers, c.newBroker(fmt.Sprintf("broker-%d", i+1)))
	}
	c.startAll(c.brokers)
	return c
}

// startAll starts daemons at once.
func (c *cluster) startAll(daemons []*daemon) {
	c.t.Helper()
	for _, d := range daemons {
		d.begin()
	}
	for _, d := range daemons {
		d.awaitReady()
	}
}

// leadingMaster waits until one of the masters that live leads, other than the
// given one, and returns it.
func (c *cluster) leadingMaster(not *daemon) *daemon {
	c.t.Helper()
	var leading *daemon
	await(c.t, "a master leads", func() error {
		var status struct {
			LeadingMaster string `json:"leading_master"`
		}
		if err := c.ask(&status, "master", "status"); err != nil {
			return err
		}
		i := slices.IndexFunc(c.masters, func(d *daemon) bool { return d.addrs.GRPC == status.LeadingMaster })
		if i < 0 || c.masters[i] == not || c.masters[i].ended() {
			return fmt.Errorf("it is %q", status.LeadingMaster)
		}
		leading = c.masters[i]
		return nil
	})
	return leading
}

// TestMasters loses one master of three, which changes nothing for long, then
// another, after which there is no majority: nothing can be changed, and all
// that goes on goes on. In the end all are killed and started at once.
func TestMasters(t *testing.T) {
	t.Parallel()
	c := newClusterOfMasters(t, newStore(t), 2)
	c.createTopic("before")
	pub := c.publish("pub", "before", keyed, "-K", ":")
	live := c.subscribe("sub", "before")
	pub.awaitMore(window)

	first := c.leadingMaster(nil)
	first.kill()
	c.createTopic("after-one")
	c.say("after-one", 1)
	second := c.leadingMaster(first)
	pub.awaitMore(window)

	second.kill()
	for _, b := range c.brokers {
		b.awaitNotReady()
	}
	pub.awaitMore(2 * window)
	live.awaitMessages(pub.acked())
	c.say("after-one", 2)
	got := c.admin("topic", "create", "after-two", "--timeout", "3s")
	wantFailure(t, got, 5, "after-two", "masters")

	c.startAll([]*daemon{first, second})
	c.createTopic("after-all")
	c.say("after-all", 1)
	pub.awaitMore(window)

	for _, m := range c.masters {
		m.kill()
	}
	pub.awaitMore(window)
	c.startAll(c.masters)
	c.leadingMaster(nil)
	c.createTopic("after-restart")
	c.say("after-restart", 1)
	n := pub.finish(scaled(t, 10_000))
	live.finish(n)
	live.checkAcks(pub.places())
	c.readAll("read", "after-one", 2)
	c.verify("before", n)
}

// wantFailure checks that a command has ended with an exit code and one line
// that says why, in which all the words are.
func wantFailure(t *testing.T, got result, code int, words ...string) {
	t.Helper()
	if got.code != code || said(got.stderr) != 1 {
		t.Errorf("%v; exit code %d and one line are due", got, code)
	}
	for _, w := range words {
		if !strings.Contains(got.stderr, w) {
			t.Errorf("%v: %q is not in it", got, w)
		}
	}
}

// TestMasterLosesItsData wipes the data of one of three masters while it is
// down, as the loss of a disk does: it comes back, and is of use.
func TestMasterLosesItsData(t *testing.T) {
	t.Parallel()
	c := newClusterOfMasters(t, newStore(t), 1)
	c.createTopic("before")
	c.say("before", 1)
	lost := c.masters[0]
	lost.kill()
	if err := os.RemoveAll(filepath.Join(c.dir, lost.name)); err != nil {
		t.Fatal(err)
	}
	lost.start()
	// With another one gone there is no majority without it.
	c.masters[1].kill()
	c.createTopic("after")
	c.say("after", 1)
	c.say("before", 2)
	c.readAll("read", "before", 2)
}

// TestPausedMaster pauses the master for longer than brokers' leases last, and
// then lets it go on: their leases have not run out, for it was not there to
// renew them. Nothing that goes on stops.
func TestPausedMaster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 2)
	c.createTopic("t")
	pub := c.publish("pub", "t", keyed, "-K", ":")
	live := c.subscribe("sub", "t")
	pub.awaitMore(window)
	before := c.brokerIDs()
	c.masters[0].pause()
	for _, b := range c.brokers {
		b.awaitNotReady()
	}
	pub.awaitMore(2 * window)
	wantFailure(t, c.admin("topic", "create", "later", "--timeout", "2s"), 5, c.masters[0].addrs.GRPC)
	c.masters[0].resume()
	c.createTopic("later")
	for _, b := range c.brokers {
		c.awaitMember(b, "")
	}
	if now := c.brokerIDs(); !slices.Equal(now, before) {
		t.Errorf("the brokers are %v, they were %v", now, before)
	}
	pub.awaitMore(window)
	n := pub.finish(scaled(t, 10_000))
	live.finish(n)
	live.checkAcks(pub.places())
	c.verify("t", n)
}

// brokerIDs are the ids of the brokers that the masters know, in order.
func (c *cluster) brokerIDs() []string {
	c.t.Helper()
	var all []broker
	if err := c.ask(&all, "broker", "list"); err != nil {
		c.t.Fatal(err)
	}
	var ids []string
	for _, b := range all {
		ids = append(ids, b.ID)
	}
	slices.Sort(ids)
	return ids
}
