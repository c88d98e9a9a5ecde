package rpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// absentee is a peer that is not there until it is started. It counts the attempts
// to reach it.
type absentee struct {
	net   *pipeNet
	there atomic.Bool
	hangs atomic.Bool // nobody even refuses
	dials atomic.Int64
}

func (a *absentee) dial(ctx context.Context, addr string) (net.Conn, error) {
	a.dials.Add(1)
	switch {
	case a.there.Load():
		return a.net.dial(ctx, addr)
	case a.hangs.Load():
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("connection refused")
}

// outOfReach runs test with a connection to a peer that many attempts have not
// reached, so that gRPC makes few by itself.
func outOfReach(t *testing.T, test func(t *testing.T, a *absentee, conn *grpc.ClientConn)) {
	synctest.Test(t, func(t *testing.T) {
		a := &absentee{net: newPipeNet()}
		s := NewServer(ServerOptions{})
		RegisterData(s, dataFuncs{publish: func(s PublishStream) error { return s.Send(&smqpb.PublishAcks{}) }})
		go s.Serve(a.net)
		conn, err := Dial("peer:1", DialOptions{Dialer: a.dial})
		if err != nil {
			t.Fatal(err)
		}
		if err := call(t, conn); !errors.Is(err, smq.ErrUnavailable) {
			t.Fatalf("a peer that is not there: %v", err)
		}
		pass(20 * time.Second)
		test(t, a, conn)
		conn.Close()
		s.Stop()
	})
}

// call opens a stream and hears from the peer.
func call(t *testing.T, conn *grpc.ClientConn) error {
	s, err := OpenPublish(t.Context(), conn)
	if err != nil {
		return err
	}
	return s.Recv(&smqpb.PublishAcks{})
}

func TestPeerThatIsBackIsReachedAtOnce(t *testing.T) {
	outOfReach(t, func(t *testing.T, a *absentee, conn *grpc.ClientConn) {
		// The next attempt of gRPC's own is most of a second away.
		for n := a.dials.Load(); a.dials.Load() == n; {
			pass(time.Millisecond)
		}
		pass(freshFor)
		a.there.Store(true)
		since := time.Now()
		if err := call(t, conn); err != nil {
			t.Errorf("a stream: %v", err)
		}
		if took := time.Since(since); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestCallsToThePeerThatIsBackSucceed(t *testing.T) {
	outOfReach(t, func(t *testing.T, a *absentee, conn *grpc.ClientConn) {
		for n := a.dials.Load(); a.dials.Load() == n; {
			pass(time.Millisecond)
		}
		pass(freshFor)
		a.there.Store(true)
		// That it does not know the method is for the peer to say.
		_, err := smqpb.NewBrokerClient(conn).ListSegments(t.Context(), &smqpb.ListSegmentsRequest{})
		if !errors.Is(err, ErrForeign) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCallsDoNotWaitForAPeerThatDoesNotAnswer(t *testing.T) {
	outOfReach(t, func(t *testing.T, a *absentee, conn *grpc.ClientConn) {
		a.hangs.Store(true)
		for range 100 {
			since := time.Now()
			if err := call(t, conn); !errors.Is(err, smq.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
			if took := time.Since(since); took > answersWithin {
				t.Fatalf("it took %v", took)
			}
			pass(10 * time.Millisecond)
		}
		if n := a.dials.Load(); n > 50 {
			t.Errorf("%d attempts", n)
		}
	})
}

func TestManyCallsMakeFewAttempts(t *testing.T) {
	outOfReach(t, func(t *testing.T, a *absentee, conn *grpc.ClientConn) {
		a.dials.Store(0)
		for range 1000 {
			if err := call(t, conn); !errors.Is(err, smq.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
			pass(time.Millisecond)
		}
		if n := a.dials.Load(); n > int64(time.Second/freshFor)+1 {
			t.Errorf("%d attempts in a second", n)
		}
	})
}
