package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// newTestLink is a link with nothing on it, of a broker whose lease is valid until
// the clock is moved by two seconds.
func newTestLink() (*link, *time.Duration) {
	m, now := newTestMember()
	m.lease()
	m.b.log = slog.New(slog.DiscardHandler)
	return newLink(newLinks(m.b, m.id), "f:7310"), now
}

// addTest adds a segment and counts how often it is given up.
func (k *link) addTest() (o *outgoing, lost *int) {
	lost = new(int)
	o = &outgoing{topic: new(topic), log: new(seglog.Log), key: segmentKey{"t", smq.SegmentID(len(k.logs) + 1)}, lost: func(bool) { *lost++ }}
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
// asked again for a while, and one that has no memory as long as that is so. One that
// refuses for another reason is given up.
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
		k.refused(o, smq.ErrOverloaded)
		time.Sleep(refusedFor)
		if k.refused(o, smq.ErrOverloaded); !o.waiting || *lost > 0 {
			t.Errorf("it has no memory for long: waits %v, given up %d", o.waiting, *lost)
		}
		o, lost = k.addTest()
		if k.refused(o, smq.ErrSegmentSealed); *lost != 1 {
			t.Error("sealed, and not given up")
		}
	})
}

// An ack finds its log by the segment's name as long as the log is on the link,
// and none that came for another one.
func TestAcksFindTheirLogs(t *testing.T) {
	k, _ := newTestLink()
	a, _ := k.addTest()
	b, _ := k.addTest()
	ack := func(o *outgoing, held uint64) *smqpb.ReplicaAck {
		return &smqpb.ReplicaAck{TopicId: string(o.key.topic), Segment: uint64(o.key.id), Held: held}
	}
	if k.find(ack(a, 3)) != a || a.held != 3 || b.held != 0 {
		t.Errorf("an ack of 3 for the first: it holds %d, the second %d", a.held, b.held)
	}
	other := ack(b, 7)
	other.TopicId = "another"
	if o := k.find(other); o != nil {
		t.Errorf("an ack of another topic is taken for segment %d", o.key.id)
	}
	k.remove(a.log)
	if k.find(ack(a, 4)) != nil || k.find(ack(b, 5)) != b {
		t.Error("a log that was taken off is found, or the one that is left is not")
	}
	if k.finish(b.log); k.find(ack(b, 6)) != b {
		t.Error("a log that is to be let go is not found before the follower is told")
	}
	if k.loseAll(time.Now().Add(-linkLost)); len(k.logs)+len(k.byKey) > 0 {
		t.Errorf("%d and %d logs are left", len(k.logs), len(k.byKey))
	}
}

// A log is known to the links that carry it, and to no others, until it has
// stopped.
func TestALogIsMarkedOnItsOwnLinks(t *testing.T) {
	k, _ := newTestLink()
	other := newLink(k.ls, "g:7310")
	o, _ := k.addTest()
	k.ls.byAddr = map[string]*link{k.addr: k, other.addr: other}
	k.ls.byLog[o.log] = []*link{k}
	k.dirty, o.dirty = nil, false
	if k.ls.notify(o.log); len(k.dirty) != 1 || len(other.dirty) != 0 {
		t.Errorf("%d and %d logs to look at", len(k.dirty), len(other.dirty))
	}
	if k.ls.detach(o.log); len(k.logs) != 0 || len(k.ls.byLog) != 0 {
		t.Errorf("%d logs are left on the link, %d are known", len(k.logs), len(k.ls.byLog))
	}
}

// A link ends some time after the last segment has left it, also one to an address
// where nobody is any more.
func TestAnIdleLinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newTestLink()
		conns := rpc.NewConns(rpc.DialOptions{Dialer: func(context.Context, string) (net.Conn, error) { return nil, net.ErrClosed }})
		defer conns.Close()
		k.ls.b.cfg.Cluster = rpc.NewCluster(nil, conns, nil)
		k.ls.byAddr[k.addr] = k
		o, _ := k.addTest()
		ended := make(chan struct{})
		go func() {
			k.run(t.Context())
			close(ended)
		}()
		time.Sleep(linkIdle)
		begin := time.Now()
		k.remove(o.log)
		<-ended
		if took := time.Since(begin); took < linkIdle || len(k.ls.byAddr) > 0 {
			t.Errorf("after %v, and %d links are left", took, len(k.ls.byAddr))
		}
	})
}

// A link that carries nothing for a moment goes on.
func TestALinkIsKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newTestLink()
		time.Sleep(linkIdle)
		o, _ := k.addTest()
		if k.ls.drop(k) {
			t.Error("given up with a segment on it")
		}
		k.remove(o.log)
		if k.ls.drop(k) {
			t.Error("given up at once")
		}
		if time.Sleep(linkIdle); !k.ls.drop(k) {
			t.Error("kept")
		}
	})
}

// deaf is a follower whose process takes connections and streams, and nothing that is
// sent on them.
type deaf struct{ rpc.DataServer }

func (deaf) Replicate(s rpc.ReplicateStream) error {
	<-s.Context().Done()
	return nil
}

// A follower that takes in no more than the network between holds is given up as soon
// as one that does not answer, and so is the stream to it, for the sake of segments to
// come.
func TestAFollowerThatTakesNothingIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := rpc.NewServer(rpc.ServerOptions{StreamWindow: 64 << 10})
		rpc.RegisterData(server, deaf{})
		l := bufconn.Listen(64 << 10)
		go server.Serve(l)
		defer server.Stop()
		k, _ := newTestLink()
		conns := rpc.NewConns(rpc.DialOptions{Dialer: func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }})
		defer conns.Close()
		k.ls.b.cfg.Cluster = rpc.NewCluster(nil, conns, nil)

		shared := seglog.NewShared(seglog.SharedOptions{})
		id := seglog.Ident{Topic: smq.Topic{Namespace: "default", Name: "t"}, TopicID: "0000000000000001", Segment: 1, Range: smq.Range{Hi: 1}}
		log, err := seglog.Open(t.Context(), seglog.Config{Store: mem.New(), Ident: id, Shared: shared, Replication: seglog.Replication{
			Followers: []smq.BrokerID{"f"}, Leased: func() bool { return true },
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for range 100 {
			b := loadBatch(t, 1000)
			if err := shared.Reserve(t.Context(), int64(len(b))); err != nil {
				t.Fatal(err)
			}
			log.Append([]seglog.Batch{{Bytes: b, Level: seglog.Replicated}}, dropped{})
		}
		lost := make(chan time.Time, 10)
		k.add(&outgoing{topic: &topic{}, log: log, key: segmentKey{id.TopicID, id.Segment}, lost: func(bool) { lost <- time.Now() }})
		begin := time.Now()
		_, err = k.stream(t.Context())
		if took := time.Since(begin); err == nil || took > linkLost+2*linkBeat {
			t.Errorf("the stream ends after %v: %v", took, err)
		}
		if len(lost) == 0 {
			t.Error("the segment is left to it")
		}
	})
}

// BenchmarkLinkAck takes in acks in turn for all the segments of a link: one
// takes the same time however many there are.
func BenchmarkLinkAck(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("segments=%d", n), func(b *testing.B) {
			k, _ := newTestLink()
			acks := make([]*smqpb.ReplicaAck, n)
			for i := range acks {
				o, _ := k.addTest()
				acks[i] = &smqpb.ReplicaAck{TopicId: string(o.key.topic), Segment: uint64(o.key.id), Held: 1}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if k.find(acks[i%n]) == nil {
					b.Fatal("an ack finds no log")
				}
			}
		})
	}
}
