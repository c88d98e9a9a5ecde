package master

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// watchPause is the least time between two messages to one that watches: what
// changes meanwhile comes in one.
const watchPause = 20 * time.Millisecond

// Cluster implements smqpb.MasterServer. Any master answers, from what it knows.
func (m *Master) Cluster(context.Context, *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	return m.Info(), nil
}

// WatchCluster implements smqpb.MasterServer. The stream ends with
// smq.ErrNotLeader, and the new one's address, when another master leads, and
// with smq.ErrUnavailable when this one stops.
func (m *Master) WatchCluster(_ *smqpb.ClusterRequest, stream grpc.ServerStreamingServer[smqpb.ClusterInfo]) error {
	_, leader := m.raft.LeaderWithID()
	for {
		_, changed := m.hub.listen()
		if _, now := m.raft.LeaderWithID(); leader == "" {
			leader = now
		} else if now != "" && now != leader {
			return &rpc.NotLeaderError{Address: m.leadingAddress()}
		}
		if err := stream.Send(m.Info()); err != nil {
			return err
		}
		if err := wait(m, stream.Context(), changed); err != nil {
			return err
		}
		if err := wait(m, stream.Context(), time.After(watchPause)); err != nil {
			return err
		}
	}
}

// wait waits for c, and returns an error when ctx or the master ends first.
func wait[T any](m *Master, ctx context.Context, c <-chan T) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.stopping:
		return fmt.Errorf("%w: this master is stopping", smq.ErrUnavailable)
	}
}

// Info is the cluster as this master knows it. Loads, and what is silent since
// a moment ago, only the leading one knows.
func (m *Master) Info() *smqpb.ClusterInfo {
	info := &smqpb.ClusterInfo{
		LeadingMaster: m.leadingAddress(),
		RaftTerm:      m.raft.CurrentTerm(),
		RaftIndex:     m.raft.AppliedIndex(),
		Masters:       m.masters(),
		Self:          &smqpb.MasterInfo{Id: m.config.id(), Address: m.config.Advertise, HttpAddress: m.config.HTTPAddress},
	}
	m.fsm.view(func(s *registry.State) {
		info.ClusterId, info.Store, info.Leader = string(s.Cluster()), s.Store(), leaderInfo(s)
	})
	info.Brokers = m.brokerInfos()
	return info
}

func leaderInfo(s *registry.State) *smqpb.LeaderInfo {
	l := s.Leader()
	return &smqpb.LeaderInfo{Broker: string(l.Broker), Address: l.Address, Term: l.Term}
}

// brokerInfos lists the brokers in the order in which they joined.
func (m *Master) brokerInfos() []*smqpb.BrokerInfo {
	r, _ := m.leading()
	var infos []*smqpb.BrokerInfo
	for _, b := range m.brokers() {
		infos = append(infos, m.brokerInfo(r, b))
	}
	return infos
}

func (m *Master) brokerInfo(r *reign, b registry.Broker) *smqpb.BrokerInfo {
	info := &smqpb.BrokerInfo{
		Id: string(b.ID), Address: b.Address, HttpAddress: b.HTTPAddress, Rack: b.Rack, Version: b.Version,
		Draining: b.Draining, JoinedMs: b.JoinedMS, Silent: b.Silent,
	}
	if r != nil {
		p := r.leases.presence(b.ID, m.config.Clock())
		info.Load = p.load
		info.Silent = p.lost || b.Silent && !p.connected
	}
	return info
}

// masters lists the raft group's members by id, with the addresses that they
// have announced.
func (m *Master) masters() []*smqpb.MasterInfo {
	_, leader := m.raft.LeaderWithID()
	var known []registry.Master
	m.fsm.view(func(s *registry.State) { known = s.Masters() })
	var infos []*smqpb.MasterInfo
	for id, suffrage := range m.members() {
		info := &smqpb.MasterInfo{Id: id, Leader: string(leader) == id, Voter: suffrage == raft.Voter}
		if i := slices.IndexFunc(known, func(k registry.Master) bool { return k.ID == id }); i >= 0 {
			info.Address, info.HttpAddress = known[i].Address, known[i].HTTPAddress
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b *smqpb.MasterInfo) int { return strings.Compare(a.Id, b.Id) })
	return infos
}

// members are the ids of the raft group, and whether they vote.
func (m *Master) members() map[string]raft.ServerSuffrage {
	members := make(map[string]raft.ServerSuffrage)
	for _, s := range m.raft.GetConfiguration().Configuration().Servers {
		members[string(s.ID)] = s.Suffrage
	}
	return members
}
