package broker

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// newTestLink is a link with nothing on it, of a broker whose lease is valid until
// the clock is moved by two seconds.
func newTestLink() (*link, *time.Duration) {
	m, now := newTestMember()
	m.lease()
	m.b.log = slog.New(slog.DiscardHandler)
	return &link{ls: newLinks(m.b, m.id), wake: make(chan struct{}, 1), logs: make(map[*seglog.Log]*outgoing)}, now
}

// addTest adds a segment and counts how often it is given up.
func (k *link) addTest() (o *outgoing, lost *int) {
	lost = new(int)
	o = &outgoing{topic: new(topic), log: new(seglog.Log), lost: func() { *lost++ }}
	k.add(o)
	return o, lost
}

// A segment that comes while the follower is out of reach waits for it as long as
// any other.
func TestANewSegmentWaitsForItsFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, now := newTestLink()
		down := time.Now()
		_, old := k.addTest()
		time.Sleep(linkLost)
		_, fresh := k.addTest()
		k.loseAll(down)
		if *old == 0 || *fresh > 0 {
			t.Errorf("given up after %v: %d, at once: %d", linkLost, *old, *fresh)
		}
		*now = 2 * time.Second // the owner is cut off, and leaves everything as it is
		time.Sleep(linkLost)
		if k.loseAll(down); *fresh > 0 {
			t.Error("given up without a lease")
		}
		k.ls.b.member.lease()
		if k.loseAll(down); *fresh > 0 {
			t.Error("given up as soon as there is a lease again")
		}
		time.Sleep(linkLost)
		if k.loseAll(down); *fresh == 0 {
			t.Error("not given up")
		}
	})
}

// Under no lease nobody is asked to follow; under one a follower that has none is
// asked again for a while. One that refuses for another reason is given up.
func TestAFollowerThatIsUnavailableIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, now := newTestLink()
		*now = 2 * time.Second
		o, lost := k.addTest()
		if k.checkAnswers(); !o.waiting {
			t.Error("asked without a lease")
		}
		k.ls.b.member.lease()
		if k.checkAnswers(); o.waiting {
			t.Error("not asked under a lease")
		}
		k.refused(o, smq.ErrUnavailable)
		if !o.waiting || *lost > 0 {
			t.Errorf("refused once: waits %v, given up %d", o.waiting, *lost)
		}
		if k.checkAnswers(); o.waiting {
			t.Error("not asked again")
		}
		time.Sleep(refusedFor)
		if k.refused(o, smq.ErrUnavailable); *lost != 1 {
			t.Error("asked for ever")
		}
		o, lost = k.addTest()
		if k.refused(o, smq.ErrSegmentSealed); *lost != 1 {
			t.Error("sealed, and not given up")
		}
	})
}
