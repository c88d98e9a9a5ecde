package admin

import (
	"net"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// lingering is an address at which somebody listens for as long as nobody has
// looked; looked is closed then.
func lingering(t *testing.T) (address string, looked <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	done := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return // the test has ended
		}
		l.Close()
		conn.Close()
		close(done)
	}()
	return l.Addr().String(), done
}

// What has handed everything over still has calls to end, and listens meanwhile:
// drain --wait comes back when another broker can take its place.
func TestDrainWaitsUntilNobodyListens(t *testing.T) {
	s := startStub(t)
	grpc, grpcLooked := lingering(t)
	http, httpLooked := lingering(t)
	s.others = []*smqpb.BrokerInfo{{Id: "bb", Address: grpc, HttpAddress: http}}
	_, stderr, code := s.run(t, "broker", "drain", grpc)
	if code != 0 || !strings.Contains(stderr, "broker bb has handed over its segments") {
		t.Errorf("code %d, %s", code, stderr)
	}
	select {
	case <-grpcLooked:
		t.Error("without --wait, the end was waited for")
	default:
	}
	_, stderr, code = s.run(t, "broker", "drain", grpc, "--wait")
	if code != 0 || !strings.Contains(stderr, "broker bb has handed over its segments") {
		t.Errorf("code %d, %s", code, stderr)
	}
	for name, looked := range map[string]<-chan struct{}{"gRPC": grpcLooked, "HTTP": httpLooked} {
		select {
		case <-looked:
		default:
			t.Errorf("it still listens for %s", name)
		}
	}
}

// A broker that was started in the place of the one that has left listens there
// rightly.
func TestDrainKnowsASuccessor(t *testing.T) {
	s := startStub(t)
	s.others = []*smqpb.BrokerInfo{{Id: "bb", Address: s.addr}} // aa is there, too
	if _, stderr, code := s.run(t, "broker", "drain", "bb", "--wait"); code != 0 {
		t.Errorf("code %d, %s", code, stderr)
	}
}
