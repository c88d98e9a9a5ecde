package master

import (
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// ids returns a function that lists the given brokers.
func ids(list ...smq.BrokerID) func() []smq.BrokerID {
	return func() []smq.BrokerID { return list }
}

func TestLateGrantOvertakesAnUnsentOne(t *testing.T) {
	l := newLeases(3 * time.Second)
	l.sync(ids("a"), 0)
	s := l.open("a", 0)
	l.renew("a", s, 1, time.Second)
	l.renew("a", s, 2, time.Second)
	if got := <-s.granted; got != 2 || len(s.granted) != 0 {
		t.Errorf("granted %d", got)
	}
}

func TestEndedLeaseIsNeverRenewed(t *testing.T) {
	l := newLeases(3 * time.Second)
	l.sync(ids("a"), 0)
	s := l.open("a", 0)
	if l.expire(3*time.Second - 1) {
		t.Error("it ended early")
	}
	if !l.expire(3 * time.Second) {
		t.Error("it did not end")
	}
	l.renew("a", s, 1, 3*time.Second)
	l.makeUp(3*time.Second, 3*time.Second)
	if len(s.granted) != 0 || l.open("a", 3*time.Second) != nil {
		t.Error("it was renewed")
	}
	select {
	case <-s.refused:
	default:
		t.Error("the stream was not told")
	}
	if got := l.expired(); len(got) != 1 || got[0] != "a" {
		t.Errorf("expired are %v", got)
	}
	l.sync(ids(), 4*time.Second)
	if got := l.expired(); len(got) != 0 {
		t.Errorf("expired are still %v", got)
	}
}

func TestStreamOfARemovedBrokerIsTold(t *testing.T) {
	l := newLeases(3 * time.Second)
	s := l.open("a", 0)
	l.sync(ids("b"), time.Second)
	select {
	case <-s.refused:
	default:
		t.Error("the stream was not told")
	}
	if l.close("a", s, time.Second) {
		t.Error("its end makes it silent")
	}
}

func TestPausesAreMadeUpFor(t *testing.T) {
	const lease = 3 * time.Second
	for pause, left := range map[time.Duration]time.Duration{
		time.Second:      lease - time.Second, // as much as before it
		lease:            lease,
		10 * time.Second: lease,
	} {
		l := newLeases(lease)
		l.sync(ids("a"), 0)
		s := l.open("a", 0)
		l.renew("a", s, 1, time.Second)
		before := 2 * time.Second
		now := before + pause
		l.makeUp(pause, now)
		l.renew("a", s, 2, before) // it was about to be, when the pause came
		if l.expire(now+left-1) || !l.expire(now+left) {
			t.Errorf("after a pause of %v the lease does not last %v", pause, left)
		}
	}
}

// A new reign does not miss anybody before others have found the way to it, nor
// those who have just registered.
func TestBrokersAreMissedWhenOthersHaveCome(t *testing.T) {
	l := newLeases(3 * time.Second)
	all := ids("a", "b", "c", "d")
	missed := func(now time.Duration) (missing string) {
		l.sync(all, now)
		for _, id := range all() {
			if l.presence(id, now).missing {
				missing += string(id)
			}
		}
		return missing
	}
	const late = 2 * time.Second
	for now := time.Duration(0); now <= late; now += tick {
		if got := missed(now); got != "" {
			t.Fatalf("missed %q after %v though nobody has come", got, now)
		}
	}
	l.open("a", late)
	missed(late)
	if got := missed(late + missedAfter); got != "" {
		t.Errorf("missed %q when only one has come", got)
	}
	l.open("b", late+missedAfter)
	then := late + missedAfter
	missed(then)
	all = ids("a", "b", "c", "d", "new")
	missed(then + tick)
	l.makeUp(time.Second, then+time.Second)
	then += time.Second
	if got := missed(then + missedAfter - 1); got != "" {
		t.Errorf("missed %q early", got)
	}
	if got := missed(then + missedAfter); got != "cd" {
		t.Errorf("missed %q", got)
	}
	l.open("c", then+missedAfter)
	if got := missed(then + missedAfter + tick); got != "dnew" {
		t.Errorf("missed %q later", got)
	}
}
