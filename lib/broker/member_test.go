package broker

import (
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// newTestMember is a member with a clock that the test moves.
func newTestMember() (*member, *time.Duration) {
	now := new(time.Duration)
	b := &Broker{clock: func() time.Duration { return *now }}
	b.member = newMember(b, "00000000000000aa")
	return b.member, now
}

// A lease counts from when its heartbeat was sent, however late the grant is.
func TestP5ALeaseCountsFromItsHeartbeat(t *testing.T) {
	m, now := newTestMember()
	var sent sendTimes
	grant := func(sequence uint64) { m.take(&smqpb.Grant{Sequence: sequence, LeaseMs: 2000}, &sent) }

	if m.leased() {
		t.Fatal("leased before the first grant")
	}
	*now = 10 * time.Second
	sent.note(1, *now)
	*now = 11500 * time.Millisecond // the answer is slow
	grant(1)
	*now = 11999 * time.Millisecond
	if !m.leased() {
		t.Fatal("the lease has ended early")
	}
	*now = 12 * time.Second
	if m.leased() {
		t.Fatal("the lease counts from the grant")
	}
	sent.note(2, *now)
	*now = 15 * time.Second // the process was paused
	grant(2)
	if m.leased() {
		t.Fatal("an old answer renewed the lease")
	}
	grant(3) // of a heartbeat that was not sent
	if m.leased() {
		t.Fatal("an answer to nothing renewed the lease")
	}
	sent.note(4, *now)
	sent.note(5, *now+time.Second)
	*now += 1500 * time.Millisecond
	grant(5)
	grant(4) // overtaken
	*now = 17900 * time.Millisecond
	if !m.leased() {
		t.Fatal("the older grant shortened the lease")
	}
}

func TestHeartbeatsThatAreForgotten(t *testing.T) {
	var sent sendTimes
	for i := uint64(1); i <= 100; i++ {
		sent.note(i, time.Duration(i))
	}
	if _, ok := sent.take(1); ok {
		t.Error("heartbeat 1 of 100 is remembered")
	}
	if at, ok := sent.take(100); !ok || at != 100 {
		t.Errorf("heartbeat 100: %v, %v", at, ok)
	}
}

// What is heard at once is newer than what the next grant tells; of two leaders
// the later one leads.
func TestWhoLeads(t *testing.T) {
	m, _ := newTestMember()
	var sent sendTimes
	info := func(term uint64, brokers ...string) *smqpb.ClusterInfo {
		c := &smqpb.ClusterInfo{Leader: &smqpb.LeaderInfo{Broker: "b", Term: term}}
		for _, id := range brokers {
			c.Brokers = append(c.Brokers, &smqpb.BrokerInfo{Id: id})
		}
		return c
	}
	expect := func(term uint64, brokers int) {
		t.Helper()
		_, leader, all := m.cluster()
		if leader.GetTerm() != term || len(all) != brokers {
			t.Fatalf("term %d, %d brokers; want %d and %d", leader.GetTerm(), len(all), term, brokers)
		}
	}
	grant := func(c *smqpb.ClusterInfo) { m.take(&smqpb.Grant{Leader: c.Leader, Brokers: c.Brokers}, &sent) }
	grant(info(3, "a"))
	expect(3, 1)
	m.observe(info(5, "a", "b"))
	expect(5, 2)
	grant(info(4, "a", "b", "c"))
	expect(5, 2)
	m.observe(nil)
	grant(info(5, "a", "b", "c"))
	expect(5, 3)
}

// A broker that has lost its master joins the next one within its lease, whenever in it
// that comes to lead: waits are short while there is something to keep, and longer after.
func TestRejoinWaits(t *testing.T) {
	m, now := newTestMember()
	if m.rejoinWait() != rejoinAtMost {
		t.Errorf("a broker that was never there waits for %v", m.rejoinWait())
	}
	var sent sendTimes
	sent.note(1, *now)
	m.take(&smqpb.Grant{Sequence: 1, LeaseMs: 2000}, &sent)
	*now = 1999 * time.Millisecond
	if m.rejoinWait() != rejoinSoon {
		t.Errorf("a broker with a lease waits for %v", m.rejoinWait())
	}
	*now = 2 * time.Second
	if m.rejoinWait() != rejoinAtMost {
		t.Errorf("a broker without a lease waits for %v", m.rejoinWait())
	}
}
