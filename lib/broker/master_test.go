package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/master"
)

// The same under a real master: brokers come, lead, die and drain.
func TestWithAMaster(t *testing.T) {
	m, err := master.Start(master.Config{Advertise: masterAddress, StoreURL: "mem:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	b := newBedOf(t, m, "a", "b", "c")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	for i := range 4 {
		w.send(500)
		owner := b.owner(0)
		w.send(500)
		if i%2 == 0 {
			b.kill(owner)
		} else {
			if err := b.broker(owner).Drain(within(t)); err != nil {
				t.Fatal(err)
			}
			b.kill(owner)
		}
		w.flush()
		r.check(w)
		b.start(owner[:1])
	}
	b.kill(b.lookupLeader())
	w.send(500)
	w.flush()
	r.check(w)
	if v := b.verify(); v.Messages != uint64(w.n) {
		t.Fatalf("%d written: %+v", w.n, v)
	}
}
