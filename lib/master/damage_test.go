package master

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Damaged data is told by name.
func TestDamagedData(t *testing.T) {
	whole := filledData(t)
	const page = 4096
	kinds := slices.Clone(whole)
	for at := 2 * page; at < len(kinds); at += page { // those before say where the others are
		kinds[at+8] ^= 0x20
	}
	for name, damaged := range map[string][]byte{"cut short": whole[:3*page], "kinds of pages": kinds} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "raft.db"), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Start(Config{Advertise: "m:1", DataDir: dir})
		if err == nil {
			shutDown(t, m)
		}
		if !errors.Is(err, smq.ErrCorrupt) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// filledData is the database of a master that has founded a cluster.
func filledData(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	m, err := Start(Config{Advertise: "m:1", StoreURL: "dir:///tmp/smq", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	<-m.Ready()
	shutDown(t, m)
	content, err := os.ReadFile(filepath.Join(dir, "raft.db"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func shutDown(t *testing.T, m *Master) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := m.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}
