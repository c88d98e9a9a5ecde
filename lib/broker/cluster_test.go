package broker_test

import (
	"context"
	"testing"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestPublishAndSubscribe(t *testing.T) {
	b := newBed(t, "a")
	c := b.connect(8)
	r, w := b.read(c), b.write(c, 8)
	w.send(1000)
	w.flush()
	r.check(w)
	w.send(1000)
	r.check(w)
	w.flush()
	late := b.read(c)
	late.check(w)
	if v := b.verify(); v.Messages != 2000 {
		t.Fatalf("%+v", v)
	}
}

// Small segments roll all the time, under a reader at the tail; a later reader
// finds its way through all of them.
func TestRolls(t *testing.T) {
	b := newBed(t)
	b.limits = seglog.Limits{MaxChunks: 3}
	b.start("a")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	for range 60 {
		w.send(50)
		w.flush()
	}
	r.check(w)
	b.read(c).check(w)
	v := b.verify()
	if v.Segments < 10 || v.Messages != 3000 {
		t.Fatalf("%+v", v)
	}
}

func TestP1P3P7KilledOwner(t *testing.T) {
	b := newBed(t, "a", "b", "c")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	for range 4 {
		w.send(500)
		w.flush()
		w.send(500) // some of these are under way when it dies
		owner := b.owner(0)
		b.kill(owner)
		w.flush()
		r.check(w)
		b.start(owner[:1])
	}
	b.read(c).check(w)
	if v := b.verify(); v.Messages != uint64(w.n) {
		t.Fatalf("%d written: %+v", w.n, v)
	}
}

func TestDrain(t *testing.T) {
	b := newBed(t, "a", "b")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	for range 4 {
		w.send(500)
		owner := b.owner(0)
		w.send(500)
		br := b.broker(owner)
		if err := br.Drain(within(t)); err != nil {
			t.Fatal(err)
		}
		<-br.Drained()
		b.kill(owner)
		w.flush()
		r.check(w)
		b.start(owner[:1])
	}
	if v := b.verify(); v.Messages != uint64(w.n) {
		t.Fatalf("%d written: %+v", w.n, v)
	}
}

// The last broker leaves its segments sealed; the next one takes over.
func TestDrainOfTheLastBroker(t *testing.T) {
	b := newBed(t, "a")
	c := b.connect(4)
	w := b.write(c, 4)
	w.send(500)
	w.flush()
	if err := b.broker("a:7310").Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	b.kill("a:7310")
	if v := b.verify(); v.Messages != 500 {
		t.Fatalf("%+v", v)
	}
	b.start("b")
	w.send(500)
	w.flush()
	b.read(c).check(w)
}

func TestDrainFromAfar(t *testing.T) {
	b := newBed(t, "a", "b")
	c := b.connect(4)
	w := b.write(c, 4)
	w.send(500)
	w.flush()
	owner := b.owner(0)
	br := b.broker(owner)
	err := b.cluster().Leader(within(t), func(ctx context.Context, l smqpb.LeaderClient) error {
		_, err := l.DrainBroker(ctx, &smqpb.DrainBrokerRequest{Broker: string(br.ID())})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	<-br.Drained()
	w.send(500)
	w.flush()
	b.read(c).check(w)
}

// A broker whose lease has run out starts over with a fresh id, and its
// segments are somebody's again.
func TestP5ExpiredLease(t *testing.T) {
	b := newBed(t, "a", "b")
	c := b.connect(4)
	r, w := b.read(c), b.write(c, 4)
	for range 4 {
		w.send(500)
		owner := b.broker(b.owner(0))
		old := owner.ID()
		w.send(500)
		b.master.expire(old)
		w.flush()
		r.check(w)
		err := b.master.await(within(t), func(s *smqpb.ClusterInfo) bool { return len(s.GetBrokers()) == 2 })
		if err != nil || owner.ID() == old {
			t.Fatalf("the broker is not back: %v", err)
		}
	}
	if v := b.verify(); v.Messages != uint64(w.n) {
		t.Fatalf("%d written: %+v", w.n, v)
	}
}

func TestDeleteAndRecreate(t *testing.T) {
	b := newBed(t, "a", "b")
	c := b.connect(4)
	w := b.write(c, 4)
	w.send(500)
	w.flush()
	if err := c.DeleteTopic(within(t), topicT); err != nil {
		t.Fatal(err)
	}
	c2 := b.connect(2)
	w2 := b.write(c2, 2)
	w2.send(100)
	w2.flush()
	b.read(c2).check(w2)
	if v := b.verify(); v.Messages != 100 || v.Config.Partitions != 2 {
		t.Fatalf("%+v", v)
	}
}
