//go:build weed

package seaweed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

const (
	clients    = 16
	raceRounds = 100
)

// openMany opens one store as many processes would, each with connections of
// its own.
func openMany(t *testing.T) []*Store {
	folder := freshFolder()
	all := make([]*Store, clients)
	for i := range all {
		all[i] = openAt(t, sharedServer(t), folder)
	}
	return all
}

// race has each client do f at once, and wants one to succeed.
func race(t *testing.T, lost error, f func(i int) error) (winner int) {
	t.Helper()
	won := winners(t, lost, f)
	if len(won) != 1 {
		t.Fatalf("the winners are %v, want one", won)
	}
	return won[0]
}

// winners has each client do f at once and returns who succeeded. Failures must
// be the given one.
func winners(t *testing.T, lost error, f func(i int) error) (won []int) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, clients)
	start := make(chan struct{})
	for i := range clients {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if err == nil {
			won = append(won, i)
		} else if !errors.Is(err, lost) {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	return won
}

// TestCreateRace has 16 clients create one name, over and over, with content
// that is inline, or made of pieces, or refers to what was uploaded.
func TestCreateRace(t *testing.T) {
	all := openMany(t)
	for round := range raceRounds {
		path := fmt.Sprintf("/race/%d", round)
		content := func(i int) []byte { return randomBytes(uint64(round*clients+i), []int{100, inlineLimit + 1}[i%2]) }
		winner := race(t, smq.ErrExists, func(i int) error {
			if i%4 != 3 {
				return all[i].Create(t.Context(), path, store.Bytes(content(i)))
			}
			ref, err := all[i].Upload(t.Context(), content(i))
			if err != nil {
				return err
			}
			return all[i].Create(t.Context(), path, store.Refs(ref))
		})
		holds(t, all[round%clients], path, string(content(winner)))
	}
}

// TestReplaceRace has 16 clients replace one version, half of them by the same
// bytes as the others: a condition that compares content only, or nothing,
// would let several win.
func TestReplaceRace(t *testing.T) {
	all := openMany(t)
	version := store.Version("")
	for round := range raceRounds {
		content := func(i int) string { return fmt.Sprintf("round %d, client %d", round, i/2) }
		versions := make([]store.Version, clients)
		winner := race(t, smq.ErrConflict, func(i int) (err error) {
			versions[i], err = all[i].Replace(t.Context(), "/f", []byte(content(i)), version)
			return err
		})
		version = versions[winner]
		holds(t, all[round%clients], "/f", content(winner))
	}
}

// TestReplaceOfOthers replaces a file that came into the folder by the filer's
// HTTP, and so has no version but its MD5.
func TestReplaceOfOthers(t *testing.T) {
	server, folder := sharedServer(t), freshFolder()
	s := openAt(t, server, folder)
	postFile(t, server.HTTP(folder+"/f"), []byte("theirs"))
	data, version, err := s.Read(t.Context(), "/f")
	if err != nil || string(data) != "theirs" {
		t.Fatalf("Read = %q, %v", data, err)
	}
	postFile(t, server.HTTP(folder+"/f"), []byte("theirs, later"))
	_, err = s.Replace(t.Context(), "/f", []byte("ours"), version)
	wantError(t, err, smq.ErrConflict)
	_, version, err = s.Read(t.Context(), "/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replace(t.Context(), "/f", []byte("ours"), version); err != nil {
		t.Fatal(err)
	}
	holds(t, s, "/f", "ours")
	if err := s.Create(context.Background(), "/f", nil); !errors.Is(err, smq.ErrExists) {
		t.Errorf("Create over it: %v", err)
	}
}
