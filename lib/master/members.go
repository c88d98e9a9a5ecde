package master

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Times of changes of the group.
const (
	// askTimeout bounds a question to another master; askTimes and askPause say
	// how often it is asked whether it follows.
	askTimeout = 2 * time.Second
	askTimes   = 3
	askPause   = 300 * time.Millisecond
	// catchUpTimeout bounds the wait for a new member to have what the registry
	// holds, which is little.
	catchUpTimeout = 5 * time.Second
)

// AddMaster implements smqpb.MasterServer. The new member gets its vote when it
// has shown that it keeps up: one that does not would make the majority larger
// and be of no use to it. smq.ErrConflict: it is no master that waits to join;
// smq.ErrTimeout: it does not answer, or does not catch up, and is no member.
func (m *Master) AddMaster(ctx context.Context, req *smqpb.AddMasterRequest) (*smqpb.AddMasterResponse, error) {
	if err := checkAddress("the master's address", req.GetAddress()); err != nil {
		return nil, err
	}
	r, err := m.changing(ctx)
	if err != nil {
		return nil, err
	}
	defer r.unlock()
	if known := m.member(req.GetAddress()); known.GetVoter() {
		return &smqpb.AddMasterResponse{Masters: m.masters()}, nil
	}
	id, err := m.candidate(ctx, req.GetAddress())
	if err == nil && !m.member(id).GetVoter() {
		err = r.admit(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("add master %s: %w", req.GetAddress(), err)
	}
	m.logger.Info("a master joined the group", "id", id, "address", req.GetAddress())
	return &smqpb.AddMasterResponse{Changed: true, Masters: m.masters()}, nil
}

// changing waits for its turn to change the group, if this master leads. Unlock
// what it returns.
func (m *Master) changing(ctx context.Context) (*reign, error) {
	if m.config.solo() {
		return nil, fmt.Errorf("%w: this master runs by itself; restart it with --peers and --raft, both its own raft address", smq.ErrConflict)
	}
	r, err := m.leading()
	if err != nil {
		return nil, err
	}
	select {
	case r.members <- struct{}{}:
		return r, nil
	case <-r.done:
		return nil, &rpc.NotLeaderError{}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unlock lets the next change of the group begin.
func (r *reign) unlock() { <-r.members }

// member is the member of the raft group with that raft or gRPC address; nil
// when there is none.
func (m *Master) member(address string) *smqpb.MasterInfo {
	all := m.masters()
	i := slices.IndexFunc(all, func(i *smqpb.MasterInfo) bool { return i.GetId() == address || i.GetAddress() == address })
	if i < 0 {
		return nil
	}
	return all[i]
}

// candidate asks the master at a gRPC address who it is, and refuses one that
// belongs somewhere else: raft would mix the two groups.
func (m *Master) candidate(ctx context.Context, address string) (id string, err error) {
	info, err := m.ask(ctx, address)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: it does not answer; start it with --join (%v)", smq.ErrTimeout, err)
	case m.member(info.GetSelf().GetId()) != nil:
		return info.GetSelf().GetId(), nil // an earlier attempt was cut short
	case info.GetSelf().GetId() == "" || info.GetSelf().GetId() == soloID:
		return "", fmt.Errorf("%w: it runs by itself; start it with --join and an empty --data", smq.ErrConflict)
	case info.GetClusterId() == "" && len(info.GetMasters()) > 0,
		info.GetClusterId() != "" && info.GetClusterId() != m.Info().GetClusterId(),
		info.GetLeadingMaster() != "" && info.GetLeadingMaster() != m.config.Advertise:
		return "", fmt.Errorf("%w: it belongs to another group of masters; start it with --join and an empty --data", smq.ErrConflict)
	}
	return info.GetSelf().GetId(), nil
}

// ask asks another master what it knows.
func (m *Master) ask(ctx context.Context, address string) (*smqpb.ClusterInfo, error) {
	conn, err := m.conns.Get(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return smqpb.NewMasterClient(conn).Cluster(ctx, &smqpb.ClusterRequest{})
}

// admit makes the master a member, waits until it has caught up, and gives it
// its vote. One that does not catch up is no member then.
func (r *reign) admit(ctx context.Context, id string) error {
	// Its addresses are forgotten, so that they are there again when it has
	// announced itself, which it does when it knows who leads.
	if err := r.setMaster(registry.Master{ID: id}); err != nil {
		return err
	}
	err := r.m.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(id), 0, applyTimeout).Error()
	if err != nil {
		return translate("tell the group", err)
	}
	if err := r.caughtUp(ctx, id); err != nil {
		return errors.Join(err, r.expel(id))
	}
	if err := r.m.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(id), 0, applyTimeout).Error(); err != nil {
		return translate("give it a vote", err)
	}
	r.m.hub.announce(true)
	return nil
}

// caughtUp waits until the master has announced itself.
func (r *reign) caughtUp(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	for {
		_, changed := r.m.hub.listen()
		if r.m.member(id).GetAddress() != "" {
			return nil
		}
		select {
		case <-changed:
		case <-r.done:
			return &rpc.NotLeaderError{}
		case <-ctx.Done():
			return fmt.Errorf("%w: it does not catch up; the masters have to reach it at its raft address %s", smq.ErrTimeout, id)
		}
	}
}

// expel takes a master out of the group.
func (r *reign) expel(id string) error {
	if err := r.m.raft.RemoveServer(raft.ServerID(id), 0, applyTimeout).Error(); err != nil {
		return translate("tell the group", err)
	}
	r.m.hub.announce(true)
	return r.setMaster(registry.Master{ID: id}) // which tells the others too
}

// RemoveMaster implements smqpb.MasterServer. smq.ErrConflict: the others would
// have no majority without it; or, unless forced, they would with no further one
// lost only, and could lose one now.
func (m *Master) RemoveMaster(ctx context.Context, req *smqpb.RemoveMasterRequest) (*smqpb.RemoveMasterResponse, error) {
	r, err := m.changing(ctx)
	if err != nil {
		return nil, err
	}
	defer r.unlock()
	target := m.member(req.GetId())
	if target == nil {
		return &smqpb.RemoveMasterResponse{Masters: m.masters()}, nil
	}
	if err = m.spare(ctx, target, req.GetForce()); err == nil {
		if target.GetId() == m.config.id() {
			return nil, m.handOver()
		}
		err = r.expel(target.GetId())
	}
	if err != nil {
		return nil, fmt.Errorf("remove master %s: %w", req.GetId(), err)
	}
	m.logger.Info("a master was removed from the group", "id", target.GetId(), "address", target.GetAddress())
	return &smqpb.RemoveMasterResponse{Changed: true, Masters: m.masters()}, nil
}

// handOver makes another master the leading one. The error says who that is, if
// it worked.
func (m *Master) handOver() error {
	if err := m.raft.LeadershipTransfer().Error(); err != nil {
		return translate("hand over the leadership of the masters", err)
	}
	return &rpc.NotLeaderError{Address: m.leadingAddress()}
}

// spare says why a member cannot be spared; nil when it can.
func (m *Master) spare(ctx context.Context, target *smqpb.MasterInfo, force bool) error {
	if !target.GetVoter() {
		return nil
	}
	voters := slices.DeleteFunc(m.masters(), func(i *smqpb.MasterInfo) bool { return !i.GetVoter() })
	at := slices.IndexFunc(voters, func(i *smqpb.MasterInfo) bool { return i.GetId() == target.GetId() })
	if len(voters) == 1 {
		return fmt.Errorf("%w: it is the only one", smq.ErrConflict)
	}
	follows := m.following(ctx, voters)
	before := group{voters: len(voters), well: count(follows)}
	after := group{voters: before.voters - 1, well: before.well}
	if follows[at] {
		after.well--
	}
	switch {
	case before.margin() < 0: // an election is under way
		return fmt.Errorf("%w: most of the masters do not follow this one", smq.ErrUnavailable)
	case after.margin() < 0:
		var away []string
		for i, v := range voters {
			if !follows[i] && i != at {
				away = append(away, v.GetId())
			}
		}
		return fmt.Errorf("%w: %d of the %s left are needed, and these do not answer: %s; start or remove them first",
			smq.ErrConflict, after.majority(), smq.Count(after.voters, "master"), strings.Join(away, ", "))
	case after.margin() == 0 && before.margin() > 0 && !force:
		return fmt.Errorf("%w: of the %d masters left none could be lost; add another one first, or use --force", smq.ErrConflict, after.voters)
	}
	return nil
}

// group is how many masters vote, and how many of them are well.
type group struct{ voters, well int }

func (g group) majority() int { return g.voters/2 + 1 }

// margin is how many masters may be lost; less than 0: too many are.
func (g group) margin() int { return g.well - g.majority() }

func count(all []bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// following asks which of the members follow this master. One that does not is
// asked again: it may learn of an election just now.
func (m *Master) following(ctx context.Context, members []*smqpb.MasterInfo) []bool {
	follows := make([]bool, len(members))
	var asked sync.WaitGroup
	for i, member := range members {
		asked.Go(func() {
			if follows[i] = member.GetId() == m.config.id(); member.GetAddress() == "" {
				return
			}
			for n := 0; !follows[i] && n < askTimes; n++ {
				if n > 0 && wait(m, ctx, time.After(askPause)) != nil {
					return
				}
				info, err := m.ask(ctx, member.GetAddress())
				follows[i] = err == nil && info.GetLeadingMaster() == m.config.Advertise && info.GetRaftTerm() == m.raft.CurrentTerm()
			}
		})
	}
	asked.Wait()
	return follows
}
