//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// joinMaster starts a master that waits to join the others, and adds it.
func (c *cluster) joinMaster(name string) *daemon {
	c.t.Helper()
	free := freeAddresses(c.t, 3)
	m := c.newMaster(name, "--join", "--raft", free[0])
	m.addrs.GRPC, m.addrs.HTTP = free[1], free[2]
	m.begin()
	await(c.t, name+" is added", func() error {
		if got := c.admin("master", "add", m.addrs.GRPC); got.code != 0 {
			return fmt.Errorf("%v", got) // it does not listen yet
		}
		return nil
	})
	m.awaitReady()
	c.masters = append(c.masters, m)
	return m
}

// leaveMaster removes a master, which may be dead, from the group.
func (c *cluster) leaveMaster(m *daemon, flags ...string) {
	c.t.Helper()
	c.mustAdmin(append([]string{"master", "remove", m.addrs.GRPC}, flags...)...)
	c.masters = slices.DeleteFunc(c.masters, func(d *daemon) bool { return d == m })
	c.wantVoters()
}

// wantVoters checks that exactly the cluster's masters have votes.
func (c *cluster) wantVoters() {
	c.t.Helper()
	var want []string
	for _, m := range c.masters {
		want = append(want, m.addrs.GRPC)
	}
	slices.Sort(want)
	await(c.t, "the masters are "+fmt.Sprint(want), func() error {
		var status struct {
			Masters []struct {
				Address string
				Voter   bool
			}
		}
		if err := c.ask(&status, "master", "status"); err != nil {
			return err
		}
		var got []string
		for _, m := range status.Masters {
			if m.Voter {
				got = append(got, m.Address)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// TestMastersComeAndGo lets three masters become five, lose one that is removed
// then, and lose the others that the brokers were started with one after the
// other, by removal and by death. What goes on goes on, all the time.
func TestMastersComeAndGo(t *testing.T) {
	t.Parallel()
	c := newClusterOfMasters(t, newStore(t), 2)
	first := slices.Clone(c.masters)
	c.createTopic("t")
	pub := c.publish("pub", "t", keyed, "-K", ":")
	live := c.subscribe("sub", "t")
	pub.awaitMore(window)

	c.joinMaster("master-4")
	last := c.joinMaster("master-5")
	c.wantVoters()
	c.mustAdmin("master", "add", last.addrs.GRPC) // it is repeated, and does nothing

	// Two of five may be lost, the leading one and, once that is removed, another.
	lost := c.leadingMaster(nil)
	lost.kill()
	c.createTopic("four")
	c.leaveMaster(lost)
	first = slices.DeleteFunc(first, func(d *daemon) bool { return d == lost })
	first[0].kill()
	c.createTopic("three-of-four")
	c.leaveMaster(first[0])
	pub.awaitMore(window)

	// Of three none is removed by mistake. The one that goes ends by itself, and
	// does not come back.
	wantFailure(t, c.admin("master", "remove", first[1].addrs.GRPC), 6, first[1].addrs.GRPC, "--force")
	c.leaveMaster(first[1], "--force")
	if code := first[1].exit(); code != 6 {
		t.Errorf("the removed master has ended with exit code %d", code)
	}
	lost.begin()
	if code := lost.exit(); code != 6 {
		t.Errorf("the master that was removed while it was dead has ended with exit code %d", code)
	}

	c.joinMaster("master-6")
	last.restart()
	for _, b := range c.brokers {
		c.awaitMember(b, "")
	}
	c.createTopic("after")
	c.say("after", 1)
	pub.awaitMore(window)
	n := pub.finish(scaled(t, 10_000))
	live.finish(n)
	live.checkAcks(pub.places())
	c.verify("t", n)
}
