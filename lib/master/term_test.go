//go:build unix

package master

import (
	"errors"
	"log/slog"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// fullStore is raft's stores on a disk that may be full.
type fullStore struct {
	*raft.InmemStore
	full atomic.Bool
}

func (s *fullStore) SetUint64(key []byte, n uint64) error {
	if s.full.Load() {
		return syscall.ENOSPC
	}
	return s.InmemStore.SetUint64(key, n)
}

// A master whose raft cannot save its term stops, and says why.
func TestFullDiskStopsTheMaster(t *testing.T) {
	disk := &fullStore{InmemStore: raft.NewInmemStore()}
	_, transport := raft.NewInmemTransport(soloID)
	conf := raftConfig(Config{Advertise: "m:1", ElectionTimeout: 20 * time.Millisecond}, raftLogger(slog.New(slog.DiscardHandler)))
	conf.LocalID = soloID
	group := raft.Configuration{Servers: []raft.Server{{ID: soloID, Address: soloID}}}
	if err := raft.BootstrapCluster(conf, disk, disk, raft.NewInmemSnapshotStore(), transport, group); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	stable := &termStore{StableStore: disk, dir: "data", failed: func(err error) { failed <- err }}
	disk.full.Store(true)
	start := func() (*raft.Raft, error) {
		return raft.NewRaft(conf, newFSM(newHub(), soloID), disk, stable, raft.NewInmemSnapshotStore(), transport)
	}
	func() {
		defer func() {
			if recover() == nil || !errors.Is(stable.err, syscall.ENOSPC) {
				t.Errorf("full at the start: %v", stable.err)
			}
		}()
		_, _ = start() // it panics
	}()

	disk.full.Store(false)
	stable.started = false
	r, err := start()
	if err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true) // before it is elected, for which its term rises
	if err := <-failed; !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "save raft's term in data: ") {
		t.Errorf("failed with %v", err)
	}
	if err := r.Shutdown().Error(); err != nil {
		t.Error(err)
	}
}

// limitFiles lets nobody write to files for a test, as if the disk were full.
func limitFiles(t *testing.T) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(limit syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	ossignal.Ignore(syscall.SIGXFSZ)
	t.Cleanup(func() { set(before) })
	set(syscall.Rlimit{Cur: 0, Max: before.Max})
}

// A master that cannot write at its start says so, and does not call its data damaged.
func TestFullDiskAtTheStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "raft.db"), filledData(t), 0o600); err != nil {
		t.Fatal(err)
	}
	limitFiles(t)
	m, err := Start(Config{Advertise: "m:1", DataDir: dir})
	if err == nil {
		shutDown(t, m)
	}
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}
