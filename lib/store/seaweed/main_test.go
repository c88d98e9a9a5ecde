//go:build weed

package seaweed

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// shared is the server of all tests that do it no harm.
var shared struct {
	once   sync.Once
	server *weedtest.Server
	err    error
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "smq-weed")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sharedDir = dir
	code := m.Run()
	if shared.server != nil {
		shared.server.Kill()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

var sharedDir string

// sharedServer starts the shared server for the first test that wants it.
func sharedServer(t testing.TB) *weedtest.Server {
	t.Helper()
	shared.once.Do(func() {
		shared.server, shared.err = weedtest.Launch(context.Background(), sharedDir)
	})
	if shared.err != nil {
		t.Fatalf("start SeaweedFS: %v", shared.err)
	}
	return shared.server
}

var folders atomic.Int64

// freshFolder is the path of a store that no other test uses.
func freshFolder() string { return fmt.Sprintf("/smq/%d", folders.Add(1)) }

// openAt opens the store in a folder of a server.
func openAt(t testing.TB, server *weedtest.Server, folderAndParameters string, opts ...Option) *Store {
	t.Helper()
	s, err := openURL(t, "seaweedfs://"+server.Filer()+folderAndParameters, opts...)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func openURL(t testing.TB, rawURL string, opts ...Option) (*Store, error) {
	t.Helper()
	return openURLContext(t.Context(), t, rawURL, opts...)
}

func openURLContext(ctx context.Context, t testing.TB, rawURL string, opts ...Option) (*Store, error) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, u, slog.New(slog.NewTextHandler(t.Output(), nil)), opts...)
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// randomBytes makes n bytes that nothing compresses.
func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	rand.NewChaCha8(key).Read(b)
	return b
}
