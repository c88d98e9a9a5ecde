package master

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/seaweedmq/smq/lib/smq"
)

// raftParts is what a raft node is made of, and what must be closed after it.
type raftParts struct {
	logs      raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	transport raft.Transport
	closers   []io.Closer // in order of opening
	term      *termStore  // around stable, once raft is started
}

func (p *raftParts) close() error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c.Close())
	}
	p.closers = nil
	return errors.Join(errs...)
}

// openRaft starts the raft node of a completed configuration. A node without
// any state bootstraps the group, unless it is to join one: all members do it
// with the same list, so it does not matter which of them is first.
// smq.ErrCorrupt when the state that it has cannot be read. failed is told when raft
// cannot go on.
func openRaft(c Config, f raft.FSM, failed func(error)) (r *raft.Raft, p *raftParts, err error) {
	// Raft and its database take what they find in the files as it is. Damage
	// shows as a panic, or as a fault where a file that is mapped into memory
	// ends early. What is open then stays so: in which state, nobody knows.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch v := recover(); {
		case v == nil:
		case p.term != nil && p.term.err != nil:
			err = p.term.err
		default:
			err = fmt.Errorf("%w data directory %s (%v): no message is in it; start with an empty one", smq.ErrCorrupt, c.DataDir, v)
		}
	}()
	p = &raftParts{}
	if r, err = startRaft(c, f, p, failed, raftLogger(c.Logger)); err != nil {
		return nil, nil, errors.Join(err, p.close())
	}
	return r, p, nil
}

func startRaft(c Config, f raft.FSM, p *raftParts, failed func(error), logger hclog.Logger) (*raft.Raft, error) {
	if err := p.openStores(c.DataDir, logger); err != nil {
		return nil, err
	}
	p.openTransport(c, logger)
	has, err := raft.HasExistingState(p.logs, p.stable, p.snapshots)
	if err != nil {
		return nil, fmt.Errorf("read the raft state in %s: %w", c.DataDir, err)
	}
	conf := raftConfig(c, logger)
	if !has && !c.Join {
		if err := raft.BootstrapCluster(conf, p.logs, p.stable, p.snapshots, p.transport, membership(c)); err != nil {
			return nil, fmt.Errorf("found the raft group: %w", err)
		}
	}
	if has && len(c.Peers) == 1 {
		if err := p.open(c, logger); err != nil {
			return nil, fmt.Errorf("make the master that ran by itself a group: %w", err)
		}
	}
	p.term = &termStore{StableStore: p.stable, dir: c.DataDir, failed: failed}
	r, err := raft.NewRaft(conf, f, p.logs, p.term, p.snapshots, p.transport)
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	if err := checkMembership(c, r); err != nil {
		return nil, errors.Join(err, r.Shutdown().Error())
	}
	return r, nil
}

func raftConfig(c Config, logger hclog.Logger) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(c.id())
	conf.Logger = logger
	conf.HeartbeatTimeout = c.ElectionTimeout
	conf.ElectionTimeout = c.ElectionTimeout
	conf.LeaderLeaseTimeout = c.ElectionTimeout
	conf.CommitTimeout = c.ElectionTimeout / 10
	conf.NoLegacyTelemetry = true
	return conf
}

func membership(c Config) raft.Configuration {
	if c.solo() {
		return raft.Configuration{Servers: []raft.Server{{ID: soloID, Address: soloID}}}
	}
	var conf raft.Configuration
	for _, p := range slices.Sorted(slices.Values(c.Peers)) {
		conf.Servers = append(conf.Servers, raft.Server{ID: raft.ServerID(p), Address: raft.ServerAddress(p)})
	}
	return conf
}

// open makes the state of a master by itself that of a group of one, which
// others can be added to.
func (p *raftParts) open(c Config, logger hclog.Logger) error {
	old, err := raft.GetConfiguration(raftConfig(c, logger), newFSM(newHub(), c.id()), p.logs, p.stable, p.snapshots, p.transport)
	if err != nil || len(old.Servers) != 1 || old.Servers[0].ID != soloID {
		return err
	}
	return raft.RecoverCluster(raftConfig(c, logger), newFSM(newHub(), c.id()), p.logs, p.stable, p.snapshots, p.transport, membership(c))
}

// checkMembership refuses data of another group, with which this master would
// wait for ever.
func checkMembership(c Config, r *raft.Raft) error {
	f := r.GetConfiguration()
	if err := f.Error(); err != nil {
		return fmt.Errorf("read the raft group's members: %w", err)
	}
	var members []string
	for _, s := range f.Configuration().Servers {
		if string(s.ID) == c.id() {
			return nil
		}
		members = append(members, string(s.ID))
	}
	if c.Join {
		return nil // it has not been added yet, or not again
	}
	return fmt.Errorf("%w data directory %s: it belongs to a group of masters %v, to which %q does not belong", smq.ErrInvalid, c.DataDir, members, c.id())
}

func (p *raftParts) openStores(dir string, logger hclog.Logger) error {
	if dir == "" {
		store := raft.NewInmemStore()
		p.logs, p.stable, p.snapshots = store, store, raft.NewInmemSnapshotStore()
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock the data directory %s: %w", dir, err)
	}
	if !locked {
		return fmt.Errorf("%w: the data directory %s is in use by another master", smq.ErrConflict, dir)
	}
	p.closers = append(p.closers, lock)
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path:        filepath.Join(dir, "raft.db"),
		BoltOptions: &bbolt.Options{Timeout: time.Second},
	})
	if err != nil {
		return fmt.Errorf("open raft's log in %s: %w", dir, err)
	}
	p.closers = append(p.closers, bolt)
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, 2, logger)
	if err != nil {
		return fmt.Errorf("open raft's snapshots in %s: %w", dir, err)
	}
	p.logs, p.stable, p.snapshots = bolt, bolt, snapshots
	return nil
}

// openTransport connects the members. Nobody ever dials a master by itself.
func (p *raftParts) openTransport(c Config, logger hclog.Logger) {
	if c.solo() {
		_, p.transport = raft.NewInmemTransport(soloID)
		return
	}
	t := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  newStreamLayer(c),
		MaxPool: 3,
		Timeout: c.transportTimeout(),
		Logger:  logger,
	})
	p.transport = t
	p.closers = append(p.closers, t)
}

// translate turns raft's errors into those of lib/smq.
func translate(what string, err error) error {
	kind := smq.ErrUnavailable
	if errors.Is(err, raft.ErrNotLeader) {
		kind = smq.ErrNotLeader
	}
	return fmt.Errorf("%s: %w: %w", what, kind, err)
}
