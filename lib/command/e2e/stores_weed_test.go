//go:build unix && weed

package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// shared is the SeaweedFS server of all tests that do it no harm.
var shared struct {
	once   sync.Once
	dir    string
	server *weedtest.Server
	err    error
	stores atomic.Int64
}

// newStore is the URL of an empty store for the length of a test.
func newStore(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "smq-e2e-weed"); shared.err == nil {
			shared.server, shared.err = weedtest.Launch(context.Background(), shared.dir)
		}
	})
	if shared.err != nil {
		t.Fatalf("start SeaweedFS: %v", shared.err)
	}
	return fmt.Sprintf("seaweedfs://%s/e2e/%d", shared.server.Filer(), shared.stores.Add(1))
}

// stopServers ends what newStore has started for all tests.
func stopServers() {
	if shared.server != nil {
		shared.server.Kill()
	}
	os.RemoveAll(shared.dir)
}
