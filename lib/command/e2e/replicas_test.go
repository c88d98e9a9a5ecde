//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// replicated is the live segment of a topic's first partitions, with those who
// hold what is not stored yet.
type replicated struct {
	Owner        string
	OwnerAddress string `json:"owner_address"`
	Followers    []struct{ Broker, Address string }
}

// replicasOf waits until the topic's first segment has so many replicas, and
// returns the daemons, its owner first.
func (c *cluster) replicasOf(topic string, n int) []*daemon {
	c.t.Helper()
	var all []*daemon
	await(c.t, fmt.Sprintf("topic %s has %d replicas", topic, n), func() error {
		var described struct{ Segments []replicated }
		if err := c.ask(&described, "topic", "describe", topic); err != nil {
			return err
		}
		s := described.Segments[0]
		if s.Owner == "" || len(s.Followers) != n-1 {
			return fmt.Errorf("its owner is %q, its followers %v", s.Owner, s.Followers)
		}
		all = []*daemon{c.at(s.OwnerAddress)}
		for _, f := range s.Followers {
			all = append(all, c.at(f.Address))
		}
		return nil
	})
	return all
}

// TestP1AllButOneReplicaDie kills all brokers that hold what is not stored yet,
// at once, but for one, under load: whichever is left has everything that was
// acked.
func TestP1AllButOneReplicaDie(t *testing.T) {
	for i, survivor := range []string{"owner", "first follower", "second follower"} {
		t.Run("only the "+survivor+" lives", func(t *testing.T) {
			t.Parallel()
			testOneReplicaLeft(t, i)
		})
	}
}

func testOneReplicaLeft(t *testing.T, survivor int) {
	c := newCluster(t, newStore(t), 3)
	for _, topic := range []string{"ends", "goes-on"} {
		c.createTopic(topic, "--replicas", "3")
	}
	ends := c.publish("pub-ends", "ends", keyed, "-K", ":", "--acks", "replicated", "--delivery-timeout", "1s")
	lives := c.publish("pub-lives", "goes-on", keyed, "-K", ":")
	live := c.subscribe("sub", "goes-on")
	ends.awaitMore(scaled(t, 10_000))
	lives.awaitMore(scaled(t, 10_000))
	replicas := c.replicasOf("goes-on", 3)

	ends.kill() // what it was told holds, and nobody sends it again
	for i, b := range replicas {
		if i != survivor {
			_ = b.cmd.Process.Kill() // all at once; waited for below
		}
	}
	for i, b := range replicas {
		if i != survivor {
			b.kill()
		}
	}
	<-ends.read
	lives.awaitMore(2 * window)
	n := lives.finish(0)
	live.finish(n)
	live.checkAcks(lives.places())
	c.verify("goes-on", n)
	stored := c.readStored("read", "ends", ends)
	c.verify("ends", stored)
	c.wantNoUncleanSeal(replicas[survivor])
	if ends.ackedAs("replicated") == 0 || lives.ackedAs("replicated") == 0 {
		t.Error("no ack is replicated")
	}
	t.Logf("%d and %d messages, %d and %d replicated acks", n, stored, lives.ackedAs("replicated"), ends.ackedAs("replicated"))
}

// wantNoUncleanSeal asks the leader whether it has given up on what replicas
// held.
func (c *cluster) wantNoUncleanSeal(leader *daemon) {
	c.t.Helper()
	metrics, err := fetch(c.t, "http://"+leader.addrs.HTTP+"/metrics")
	if err != nil {
		c.t.Error(err)
	} else if !strings.Contains(metrics, "\nsmq_leader_unclean_seals_total 0\n") {
		c.t.Error("a segment was given up")
	}
}
