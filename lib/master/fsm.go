package master

import (
	"io"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/seaweedmq/smq/lib/registry"
)

// fsm is the registry as raft drives it.
type fsm struct {
	hub  *hub
	self raft.ServerID

	mu    sync.Mutex
	state *registry.State
	voted bool // this member has had a vote
}

func newFSM(h *hub, self string) *fsm {
	return &fsm{hub: h, self: raft.ServerID(self), state: registry.New()}
}

// view calls f with the state, which f must not keep.
func (f *fsm) view(look func(*registry.State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	look(f.state)
}

// Apply implements raft.FSM. It returns a registry.Result.
func (f *fsm) Apply(l *raft.Log) any {
	c, err := registry.DecodeCommand(l.Data)
	if err != nil {
		return registry.Result{Err: err}
	}
	f.mu.Lock()
	r := f.state.Apply(c)
	f.mu.Unlock()
	if r.Changed {
		f.hub.announce(true)
	}
	return r
}

// StoreConfiguration implements raft.ConfigurationStore: the group has these
// members now.
func (f *fsm) StoreConfiguration(_ uint64, c raft.Configuration) {
	f.mu.Lock()
	f.voted = f.voted || slices.ContainsFunc(c.Servers, func(s raft.Server) bool { return s.ID == f.self && s.Suffrage == raft.Voter })
	f.mu.Unlock()
	f.hub.announce(true)
}

// hasVoted reports whether this member has had a vote since it was started.
func (f *fsm) hasVoted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.voted
}

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := f.state.Snapshot()
	return snapshot(b), err
}

// Restore implements raft.FSM.
func (f *fsm) Restore(r io.ReadCloser) error {
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	state, err := registry.Restore(b)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.state = state
	f.mu.Unlock()
	f.hub.announce(true)
	return nil
}

// snapshot is an encoded registry.
type snapshot []byte

// Persist implements raft.FSMSnapshot.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(s); err != nil {
		_ = sink.Cancel() // the write's error says more
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s snapshot) Release() {}
