package broker_test

import (
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// The masters lose sight of an owner, which is well and has nothing to do; its
// segment moves. Subscribers who wait there must hear of it.
func TestP4ReadersOfAnIdleOwnerMoveOn(t *testing.T) {
	b := newBed(t, "a", "b")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	w.send(200)
	w.flush()
	r.check(w) // it is at the end
	for range 3 {
		owner := b.owner(0)
		b.master.breakOff(b.broker(owner).ID())
		for b.owner(0) == owner {
			err := b.master.await(within(t), func(s *smqpb.ClusterInfo) bool { return len(s.GetBrokers()) == 2 })
			if err != nil {
				t.Fatal(err)
			}
		}
		w.pub = b.write(c, 4).pub // it never heard of the old owner
		w.send(200)
		w.flush()
		r.check(w)
	}
}

// The same while the owner stays out of touch with the masters.
func TestP4ReadersOfAnOwnerOutOfTouchMoveOn(t *testing.T) {
	b := newBed(t, "a", "b")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	w.send(200)
	w.flush()
	r.check(w)
	owner := b.owner(0)
	defer b.master.pause(owner)()
	b.master.breakOff(b.broker(owner).ID())
	for b.owner(0) == owner {
	}
	w.pub = b.write(c, 4).pub
	w.send(200)
	w.flush()
	r.check(w)
}
