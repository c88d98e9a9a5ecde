package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// town is a network of named nodes in memory, each a master and a broker of
// the test's making.
type town struct {
	t     *testing.T
	conns *Conns

	mu    sync.Mutex
	nodes map[string]*node
}

// node answers as its fields say; nil functions answer "unavailable".
type node struct {
	smqpb.UnimplementedMasterServer
	smqpb.UnimplementedLeaderServer
	net      *pipeNet
	asked    int // calls so far, of either kind; guarded by town.mu
	town     *town
	noBroker bool // it is a master only
	info     func() (*smqpb.ClusterInfo, error)
	lookup   func() error
}

// inTown runs test in a synctest bubble.
func inTown(t *testing.T, test func(t *testing.T, w *town)) {
	synctest.Test(t, func(t *testing.T) {
		w := &town{t: t, nodes: make(map[string]*node)}
		w.conns = NewConns(DialOptions{Dialer: w.dial})
		test(t, w)
		w.conns.Close()
	})
}

func (w *town) dial(ctx context.Context, addr string) (net.Conn, error) {
	w.mu.Lock()
	n := w.nodes[addr]
	w.mu.Unlock()
	if n == nil {
		return nil, errors.New("connection refused")
	}
	return n.net.dial(ctx, addr)
}

func (w *town) start(addr string, n *node) *node {
	n.net, n.town = newPipeNet(), w
	s := NewServer(ServerOptions{})
	smqpb.RegisterMasterServer(s, n)
	if !n.noBroker {
		smqpb.RegisterLeaderServer(s, n)
	}
	go s.Serve(n.net)
	w.t.Cleanup(s.Stop)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[addr] = n
	return n
}

func (n *node) count() {
	n.town.mu.Lock()
	defer n.town.mu.Unlock()
	n.asked++
}

func (n *node) calls() int {
	n.town.mu.Lock()
	defer n.town.mu.Unlock()
	return n.asked
}

func (n *node) Cluster(context.Context, *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	n.count()
	if n.info == nil {
		return nil, smq.ErrUnavailable
	}
	return n.info()
}

func (n *node) Lookup(context.Context, *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	n.count()
	if n.lookup == nil {
		return nil, smq.ErrUnavailable
	}
	return &smqpb.LookupResponse{}, n.lookup()
}

// says answers with a fixed state: who leads the masters, who the brokers.
func says(leading, broker string, masters ...string) func() (*smqpb.ClusterInfo, error) {
	info := &smqpb.ClusterInfo{LeadingMaster: leading, Leader: &smqpb.LeaderInfo{Address: broker}}
	for _, m := range masters {
		info.Masters = append(info.Masters, &smqpb.MasterInfo{Address: m})
	}
	return func() (*smqpb.ClusterInfo, error) { return info, nil }
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func lookup(ctx context.Context, l smqpb.LeaderClient) error {
	_, err := l.Lookup(ctx, &smqpb.LookupRequest{})
	return err
}

func TestInfoPrefersTheLeadingMaster(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		follower := w.start("m2:1", &node{info: says("m3:1", "old:1")})
		w.start("m3:1", &node{info: says("m3:1", "new:1")})
		c := NewCluster([]string{"m1:1", "m2:1"}, w.conns, nil)
		for range 3 {
			info, err := c.Info(t.Context())
			if err != nil || info.GetLeader().GetAddress() != "new:1" {
				t.Fatalf("got %v, %v", info, err)
			}
		}
		if n := follower.calls(); n != 1 {
			t.Errorf("the follower was asked %d times", n)
		}
	})
}

func TestInfoTakesAFollowersWordWhenTheLeadingMasterIsAway(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.start("m2:1", &node{info: says("m1:1", "b:1")})
		info, err := NewCluster([]string{"m1:1", "m2:1"}, w.conns, nil).Info(t.Context())
		if err != nil || info.GetLeader().GetAddress() != "b:1" {
			t.Errorf("got %v, %v", info, err)
		}
	})
}

func TestInfoOutlivesTheMasterItWasToldOf(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		first := w.start("m1:1", &node{info: says("m1:1", "b:1", "m1:1", "m2:1")})
		c := NewCluster([]string{"m1:1"}, w.conns, nil)
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.net.Close()
		close(first.net.silent)
		w.start("m2:1", &node{info: says("m2:1", "b2:1")})
		info, err := c.Info(t.Context())
		if err != nil || info.GetLeader().GetAddress() != "b2:1" {
			t.Errorf("got %v, %v", info, err)
		}
	})
}

func TestInfoWaitsForAMasterAndThenNamesThoseTried(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		c := NewCluster([]string{"m1:1", "m2:1"}, w.conns, nil)
		ctx, cancel := within(5 * time.Second)
		defer cancel()
		_, err := c.Info(ctx)
		if !errors.Is(err, smq.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if text := err.Error(); !strings.Contains(text, "m1:1") || !strings.Contains(text, "m2:1") || strings.Contains(text, "\n") {
			t.Errorf("text %q", text)
		}

		time.AfterFunc(time.Minute, func() { w.start("m2:1", &node{info: says("m2:1", "b:1")}) })
		since := time.Now()
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(since); took > time.Minute+3*time.Second {
			t.Errorf("it took %v to find the master that came after a minute", took)
		}
	})
}

func TestInfoFailsAtOnceWhenNothingCanAnswer(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		for _, masters := range [][]string{nil, {"no-port"}, {"a:b:c"}} {
			if _, err := NewCluster(masters, w.conns, nil).Info(t.Context()); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("masters %q: %v", masters, err)
			}
		}
	})
}

func TestLeaderFollowsRefusals(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		master := w.start("m:1", &node{info: says("m:1", "b1:1")})
		w.start("b1:1", &node{lookup: func() error { return &NotLeaderError{Address: "b2:1"} }})
		second := w.start("b2:1", &node{lookup: func() error { return nil }})
		c := NewCluster([]string{"m:1"}, w.conns, nil)
		since := time.Now()
		for range 3 {
			if err := c.Leader(t.Context(), lookup); err != nil {
				t.Fatal(err)
			}
		}
		if second.calls() != 3 || master.calls() != 1 {
			t.Errorf("calls: %d to the leader, %d to the master", second.calls(), master.calls())
		}
		if took := time.Since(since); took != 0 {
			t.Errorf("following a refusal took %v", took)
		}
	})
}

func TestLeaderWaitsForTheNextOne(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		var mu sync.Mutex
		leads := "dead:1"
		w.start("m:1", &node{info: func() (*smqpb.ClusterInfo, error) {
			mu.Lock()
			defer mu.Unlock()
			return says("m:1", leads)()
		}})
		w.start("b2:1", &node{lookup: func() error { return nil }})
		set := func(addr string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				leads = addr
			}
		}
		time.AfterFunc(3*time.Second, set(""))
		time.AfterFunc(6*time.Second, set("b2:1"))
		since := time.Now()
		if err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(t.Context(), lookup); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(since); took > 8*time.Second {
			t.Errorf("it took %v to find the leader that came after 6 s", took)
		}
	})
}

// The masters name a new leader a moment before it knows, and meanwhile it points
// to the one that has died.
func TestLeaderIsNotSentBackToTheDead(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		leads := says("m:1", "b1:1")
		w.start("m:1", &node{info: func() (*smqpb.ClusterInfo, error) { return leads() }})
		dead := w.start("b1:1", &node{})
		dead.lookup = func() error {
			leads = says("m:1", "b2:1")
			return smq.ErrUnavailable
		}
		asked := 0
		w.start("b2:1", &node{lookup: func() error {
			if asked++; asked == 1 {
				return &NotLeaderError{Address: "b1:1"}
			}
			return nil
		}})
		if err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(t.Context(), lookup); err != nil {
			t.Fatal(err)
		}
		if n := dead.calls(); n != 1 {
			t.Errorf("the dead one was asked %d times", n)
		}
	})
}

// Whoever has waited for the masters is told why, and not that the last of many
// attempts had no time left.
func TestInfoSaysWhatWasInTheWay(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		begun := time.Now()
		w.start("m:1", &node{info: func() (*smqpb.ClusterInfo, error) {
			if time.Since(begun) > time.Second/2 {
				pass(time.Second)
			}
			return nil, fmt.Errorf("%w: it is being founded", smq.ErrUnavailable)
		}})
		ctx, cancel := within(900 * time.Millisecond)
		defer cancel()
		_, err := NewCluster([]string{"m:1"}, w.conns, nil).Info(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it is being founded") {
			t.Errorf("got %v", err)
		}
		pass(time.Second) // for the master to answer
	})
}

// The address of a leader that is gone may be another process's by now.
func TestLeaderWhoseAddressIsAnothers(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		leads := says("m:1", "m:1")
		w.start("m:1", &node{noBroker: true, info: func() (*smqpb.ClusterInfo, error) {
			now := leads
			leads = says("m:1", "b2:1")
			return now()
		}})
		w.start("b2:1", &node{lookup: func() error { return nil }})
		if err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(t.Context(), lookup); err != nil {
			t.Error(err)
		}
	})
}

func TestTheNextLeaderIsFoundSoon(t *testing.T) {
	for range 20 { // waits are random
		inTown(t, func(t *testing.T, w *town) {
			const named = 500 * time.Millisecond
			begun := time.Now()
			w.start("m:1", &node{info: func() (*smqpb.ClusterInfo, error) {
				if time.Since(begun) < named {
					return says("m:1", "dead:1")()
				}
				return says("m:1", "b2:1")()
			}})
			w.start("b2:1", &node{lookup: func() error { return nil }})
			if err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(t.Context(), lookup); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > named+soonBackoff {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestLeaderGivesUpWithTheContextOrForGood(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		refusal := error(smq.ErrUnavailable)
		broker := w.start("b:1", &node{lookup: func() error { return refusal }})
		w.start("m:1", &node{info: says("m:1", "b:1")})
		c := NewCluster([]string{"m:1"}, w.conns, nil)

		ctx, cancel := within(10 * time.Second)
		defer cancel()
		if err := c.Leader(ctx, lookup); !errors.Is(err, smq.ErrUnavailable) || !strings.Contains(err.Error(), "b:1") {
			t.Errorf("got %v", err)
		}
		if n := broker.calls(); n < 5 || n > 40 {
			t.Errorf("%d calls within ten seconds", n)
		}

		// Two that point to each other are not asked in a tight loop.
		refusal = &NotLeaderError{Address: "b2:1"}
		w.start("b2:1", &node{lookup: func() error { return &NotLeaderError{Address: "b:1"} }})
		ctx, cancel = within(10 * time.Second)
		defer cancel()
		before := broker.calls()
		if err := c.Leader(ctx, lookup); !errors.Is(err, smq.ErrNotLeader) {
			t.Errorf("got %v", err)
		}
		if n := broker.calls() - before; n > 40 {
			t.Errorf("%d calls within ten seconds", n)
		}

		refusal = smq.ErrNotFound
		since := time.Now()
		if err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(t.Context(), lookup); !errors.Is(err, smq.ErrNotFound) || time.Since(since) != 0 {
			t.Errorf("got %v after %v", err, time.Since(since))
		}
	})
}

// The masters that answer are those that know nothing new.
func TestLeaderFollowsWhoInsists(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.start("m:1", &node{info: says("m:1", "b1:1")})
		w.start("b1:1", &node{lookup: func() error { return &NotLeaderError{Address: "b2:1"} }})
		asked := 0
		w.start("b2:1", &node{lookup: func() error {
			if asked++; asked == 1 {
				return smq.ErrUnavailable
			}
			return nil
		}})
		ctx, cancel := within(10 * time.Second)
		defer cancel()
		if err := NewCluster([]string{"m:1"}, w.conns, nil).Leader(ctx, lookup); err != nil {
			t.Error(err)
		}
	})
}

// A leader that is paused does not say that another one has taken over; the
// masters do.
func TestLeaderThatHangsIsGivenUp(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		hung := w.start("b1:1", &node{lookup: func() error { return nil }})
		leads := says("m:1", "b1:1")
		w.start("m:1", &node{info: func() (*smqpb.ClusterInfo, error) { return leads() }})
		c := NewCluster([]string{"m:1"}, w.conns, nil)
		if err := c.Leader(t.Context(), lookup); err != nil {
			t.Fatal(err)
		}
		close(hung.net.silent)
		leads = says("m:1", "b2:1")
		asked := 0
		w.start("b2:1", &node{lookup: func() error {
			if asked++; asked == 1 {
				return &NotLeaderError{Address: "b1:1"} // it has not heard yet
			}
			return nil
		}})
		since := time.Now()
		if err := c.Leader(t.Context(), lookup); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(since); took > suspectAfter+soonBackoff {
			t.Errorf("it took %v", took)
		}
	})
}

func TestMasterFindsTheLeadingOne(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		leads := says("", "")
		w.start("m1:1", &node{info: func() (*smqpb.ClusterInfo, error) { return leads() }})
		w.start("m2:1", &node{info: says("m2:1", "")})
		c := NewCluster([]string{"m1:1"}, w.conns, nil)
		ctx, cancel := within(time.Second)
		defer cancel()
		if _, _, err := c.Master(ctx); !errors.Is(err, smq.ErrUnavailable) || err.Error() != "no master leads: less than a majority of them is there" {
			t.Errorf("without a leading master: %v", err)
		}
		leads = says("m2:1", "")
		client, addr, err := c.Master(t.Context())
		if err != nil || client == nil || addr != "m2:1" {
			t.Errorf("got %q, %v", addr, err)
		}
	})
}

func TestConnsShareAndClose(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		a, err := w.conns.Get("a:1")
		if err != nil {
			t.Fatal(err)
		}
		again, _ := w.conns.Get("a:1")
		other, _ := w.conns.Get("b:1")
		if a != again || a == other {
			t.Error("connections are not one an address")
		}
		w.conns.Close()
		if _, err := w.conns.Get("a:1"); !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("after Close: %v", err)
		}
		if a.GetState() != connectivity.Shutdown {
			t.Errorf("state %v", a.GetState())
		}
	})
}
