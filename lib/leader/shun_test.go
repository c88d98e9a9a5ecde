package leader

import (
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

func TestShunned(t *testing.T) {
	s, now := make(shunned), time.Unix(1000, 0)
	lost := func() time.Duration {
		s.add("a", now)
		s.add("a", now.Add(time.Millisecond)) // for another segment
		for d := time.Duration(0); ; d += time.Second {
			if !s.has("a", now.Add(d)) {
				now = now.Add(d)
				return d
			}
		}
	}
	for _, want := range []time.Duration{2, 4, 8, 16, 30, 30} {
		if got := lost(); got != want*time.Second {
			t.Errorf("shunned for %v, want %v s", got, want)
		}
	}
	now = now.Add(shunMost)
	if got := lost(); got != shunFirst {
		t.Errorf("shunned for %v after a long time", got)
	}
	if s.has("b", now) {
		t.Error("another one is shunned")
	}
	now = now.Add(2 * shunMost)
	if s.add("b", now); len(s) != 1 {
		t.Errorf("%d are remembered", len(s))
	}
}

// Whether a topic is known is asked under the leader's lock, under which loads
// are asked too.
func TestUnknownTopicsAreAskedForWithoutALock(t *testing.T) {
	ls := newLoads()
	topic := smq.Topic{Namespace: "default", Name: "t"}
	ls.traffic("id", topic, time.Now())
	asked := false
	ls.unknown(time.Now(), func(smq.Topic, smq.TopicID) bool {
		asked = ls.mu.TryLock()
		if asked {
			ls.mu.Unlock()
		}
		return false
	})
	if !asked {
		t.Error("the lock is held while the leader is asked")
	}
}
