package leader

import (
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// How long a broker follows nothing after another one that lives has lost it:
// at first, and at most when that happens again and again.
const (
	shunFirst = 2 * time.Second
	shunMost  = 30 * time.Second
)

// shunned are the brokers that others cannot reach, though the masters can: one
// that is paused, has no lease, or is cut off from the others. As followers they
// would only be lost again.
type shunned map[smq.BrokerID]shun

type shun struct {
	until time.Time
	wait  time.Duration // how long it was
}

// add takes in that a broker was lost. That it was lost for many segments at
// once counts once.
func (s shunned) add(id smq.BrokerID, now time.Time) {
	e := s[id]
	if now.Before(e.until) {
		return
	}
	wait := shunFirst
	if now.Sub(e.until) < shunMost {
		wait = min(max(2*e.wait, shunFirst), shunMost)
	}
	for other, o := range s {
		if now.Sub(o.until) >= shunMost {
			delete(s, other) // it would begin anew
		}
	}
	s[id] = shun{now.Add(wait), wait}
}

// has reports whether the broker is to follow nothing at present.
func (s shunned) has(id smq.BrokerID, now time.Time) bool { return now.Before(s[id].until) }
