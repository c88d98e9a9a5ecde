package master

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// A member that has heard of no leading master for quietLooks times lookEvery
// asks the others whether it is a member still.
const (
	lookEvery  = 500 * time.Millisecond
	quietLooks = 4
)

// mind stops this master when the group goes on without it. Raft does not tell a
// member that it is removed, neither one that lives, which may get the entry that
// says so and never that it is committed, nor one that is away at the time. One
// that never had a vote goes on waiting for it.
func (m *Master) mind() {
	suffrage, voted := m.members()[m.config.id()]
	voted = voted && suffrage == raft.Voter
	for quiet := 0; ; {
		select {
		case <-time.After(lookEvery):
		case <-m.stopping:
			return
		}
		voted = voted || m.fsm.hasVoted()
		if _, leader := m.raft.LeaderWithID(); leader != "" || !voted {
			quiet = 0
			continue
		}
		if quiet++; quiet < quietLooks {
			continue
		}
		quiet = 0
		if m.removed() {
			m.stop(fmt.Errorf("%w: this master was removed from its group; %s is of no use any more", smq.ErrConflict, m.config.DataDir))
			return
		}
	}
}

// removed asks the other masters whether one of them leads a group without this
// one.
func (m *Master) removed() bool {
	known, err := m.logged()
	if err != nil {
		m.logger.Warn("cannot tell who the other masters are", "error", err)
		return false
	}
	for _, o := range known.Masters() {
		if o.ID != m.config.id() && o.Address != "" && o.Address != m.config.Advertise && m.leadsWithoutUs(o.Address, known.Cluster()) {
			return true
		}
	}
	return false
}

// logged is the registry with all that this member's log has, committed or not.
// After a restart nothing is known to be committed before a leading master says
// so, which is what one that is removed waits for in vain.
func (m *Master) logged() (*registry.State, error) {
	applied := m.raft.AppliedIndex() // before the state is looked at, which has at least that much
	var b []byte
	var err error
	m.fsm.view(func(s *registry.State) { b, err = s.Snapshot() })
	if err != nil {
		return nil, err
	}
	state, err := registry.Restore(b)
	if err != nil {
		return nil, err
	}
	first, err := m.parts.logs.FirstIndex()
	if err != nil {
		return nil, err
	}
	for i := max(first, applied+1); i <= m.raft.LastIndex(); i++ {
		var l raft.Log
		if err := m.parts.logs.GetLog(i, &l); err != nil {
			return nil, err
		}
		if c, err := registry.DecodeCommand(l.Data); err == nil && l.Type == raft.LogCommand {
			state.Apply(c)
		}
	}
	return state, nil
}

// leadsWithoutUs asks whether the master at the address leads the cluster, and
// this one is no member. One that leads no more, and does not know it yet, may
// know less than this master does, and does not count.
func (m *Master) leadsWithoutUs(address string, cluster smq.ClusterID) bool {
	ctx, cancel := m.background(askTimeout)
	defer cancel()
	info, err := m.ask(ctx, address)
	return err == nil && info.GetLeadingMaster() == address && info.GetClusterId() == string(cluster) &&
		info.GetRaftIndex() >= m.raft.AppliedIndex() &&
		!slices.ContainsFunc(info.GetMasters(), func(i *smqpb.MasterInfo) bool { return i.GetId() == m.config.id() })
}
