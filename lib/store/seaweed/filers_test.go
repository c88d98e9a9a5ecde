//go:build weed

package seaweed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// twoRelays is a Store whose URL names two filers that have one store: the
// same filer, by two ways.
func twoRelays(t *testing.T, first, second *relay) *Store {
	t.Helper()
	relays := map[string]*relay{"127.0.0.2:18888": first, "127.0.0.3:18888": second}
	s, err := openURL(t, "seaweedfs://127.0.0.2,127.0.0.3"+freshFolder(), WithDialOptions(
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return relays[addr].dial(ctx) }),
	))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTurnToNextFiler loses one filer after the other.
func TestTurnToNextFiler(t *testing.T) {
	server := sharedServer(t)
	first, second := newRelay(t, server), newRelay(t, server)
	s := twoRelays(t, first, second)
	for i, lost := range []*relay{first, second, first} {
		lost.refusing.Store(1 << 30)
		lost.hangUp()
		noticedLoss(t, s)
		path := []string{"/a", "/b", "/c"}[i]
		if err := s.Create(t.Context(), path, store.Bytes([]byte(path))); err != nil {
			t.Fatalf("with filer %d lost: %v", i%2+1, err)
		}
		holds(t, s, path, path)
		lost.refusing.Store(0)
	}
}

// noticedLoss waits until the filer in use is known to be lost.
func noticedLoss(t *testing.T, s *Store) {
	current := s.filers.current()
	until(t, "the filer's loss is noticed", func() bool { return current.conn.GetState().String() != "READY" })
}

// TestOneFilerAtOpen opens a store while one of its filers is away; the other
// takes its place, whatever their order.
func TestOneFilerAtOpen(t *testing.T) {
	server := sharedServer(t)
	first, second := newRelay(t, server), newRelay(t, server)
	first.refusing.Store(1 << 30)
	s := twoRelays(t, first, second)
	if err := s.Create(t.Context(), "/f", nil); err != nil {
		t.Fatal(err)
	}
}

// TestFilersWithOwnStores names two filers of a cluster that do not share a
// store: each would compare with what it has itself.
func TestFilersWithOwnStores(t *testing.T) {
	server := weedtest.Start(t)
	s := openAt(t, server, "/smq")
	if missing := check(t, s); strings.Contains(missing, "does not share") {
		t.Errorf("Check with one filer: %s", missing)
	}
	other := server.AddFiler(t)
	_, err := openURL(t, "seaweedfs://"+server.Filer()+","+other+"/smq")
	wantError(t, err, smq.ErrInvalid)
	if err == nil || !strings.Contains(err.Error(), "does not share the store") {
		t.Errorf("Open: %v", err)
	}
	// The other is found also when it is not named.
	until(t, "the filers know of one another", func() bool { return strings.Contains(check(t, s), other) })
	if missing := check(t, s); !strings.Contains(missing, "does not share the store") {
		t.Errorf("Check with two filers: %s", missing)
	}
}

// TestOwnerDecides creates the same names by way of two filers: the one that
// owns the name decides for both. For some seconds after a filer has come, each
// may take itself for the owner, as the package comment says; so the test asks
// for a long row of rounds without a second winner, not for that from the
// beginning. (Here each filer has a store of its own, which Open refuses when one
// URL names both.)
func TestOwnerDecides(t *testing.T) {
	server := weedtest.Start(t)
	other := server.AddFiler(t)
	folder := freshFolder()
	stores := []*Store{openAt(t, server, folder), openOther(t, other+folder)}
	for _, s := range stores {
		until(t, "the filers know of one another", func() bool { return strings.Contains(check(t, s), "does not share") })
	}
	inARow := 0
	for round := 0; inARow < raceRounds; round++ {
		if round == 20*raceRounds {
			t.Fatalf("in %d rounds there are not %d in a row with one winner", round, raceRounds)
		}
		path := fmt.Sprintf("/race/%d", round)
		won := winners(t, smq.ErrExists, func(i int) error {
			return stores[i%2].Create(t.Context(), path, store.Bytes(fmt.Appendf(nil, "client %d", i)))
		})
		if inARow++; len(won) != 1 {
			inARow = 0
			continue
		}
		for _, s := range stores {
			until(t, "the winner's file is known to both filers", func() bool { return s.has(t, path) })
			holds(t, s, path, fmt.Sprintf("client %d", won[0]))
		}
	}
}

func openOther(t *testing.T, filerAndFolder string) *Store {
	t.Helper()
	s, err := openURL(t, "seaweedfs://"+filerAndFolder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, s *Store) string {
	t.Helper()
	missing, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(missing, "\n")
}

// TestCheckRules configures the filer as Check asks for, and then harmfully.
func TestCheckRules(t *testing.T) {
	server, folder := sharedServer(t), freshFolder()
	plain, syncing := openAt(t, server, folder), openAt(t, server, folder+"?fsync=true")
	never := openAt(t, server, folder+"?fsync=false")
	const entries, pieces = "does not sync its entries", "do not sync pieces"
	expect(t, plain, []string{entries, pieces, "one volume server only"}, nil)
	expect(t, syncing, []string{entries}, []string{pieces})

	configure(t, server, "fs.configure -locationPrefix="+folder+"/ -fsync -apply")
	until(t, "the rule is known", func() bool { return !strings.Contains(check(t, plain), entries) })
	expect(t, plain, nil, []string{entries, pieces})
	expect(t, syncing, nil, []string{entries, pieces})
	expect(t, never, []string{pieces}, []string{entries})
	if err := plain.Create(t.Context(), "/d/f", store.Bytes(randomBytes(1, 100_000))); err != nil {
		t.Errorf("Create with the rule: %v", err)
	}

	configure(t, server, "fs.configure -locationPrefix="+folder+"/d -ttl=1h -apply")
	expect(t, plain, []string{"removes files after 1h"}, nil)
	configure(t, server, "fs.configure -locationPrefix="+folder+"/d -delete -apply")
	configure(t, server, "fs.configure -locationPrefix="+folder+"/ -readOnly -apply")
	until(t, "the rule is known", func() bool { return strings.Contains(check(t, plain), "read-only") })
	err := plain.Create(t.Context(), "/d/g", nil)
	if err == nil || errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("Create in a read-only folder: %v, want a sure failure", err)
	}
}

func expect(t *testing.T, s *Store, want, not []string) {
	t.Helper()
	got := check(t, s)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: Check lacks %q: %s", s, w, got)
		}
	}
	for _, n := range not {
		if strings.Contains(got, n) {
			t.Errorf("%s: Check says %q: %s", s, n, got)
		}
	}
}

func configure(t *testing.T, server *weedtest.Server, command string) {
	t.Helper()
	if _, err := server.Shell(t.Context(), command); err != nil {
		t.Fatal(err)
	}
}

// TestNoFiler opens a store that is not there.
func TestNoFiler(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := openURLContext(ctx, t, "seaweedfs://127.0.0.1:1/smq")
	wantError(t, err, context.Canceled)
}

// TestWatchBreaks loses the connection of a watch.
func TestWatchBreaks(t *testing.T) {
	r, behind, direct := pair(t)
	seen, ended := make(chan string, 10), make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		ended <- behind.Watch(t.Context(), "/d", func() { close(ready) }, func(path string) { seen <- path })
	}()
	<-ready
	if err := direct.Create(t.Context(), "/d/new", nil); err != nil {
		t.Fatal(err)
	}
	for <-seen != "/d/new" {
	}
	r.hangUp()
	wantError(t, <-ended, smq.ErrUnavailable)
}
