package leader

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	clusterEvery   = time.Second // between two questions to the masters
	clusterTimeout = time.Second
	// clusterOld is when what the masters told is too old to be told again before
	// they have been asked.
	clusterOld = 5 * time.Second
	// clusterLost is for how long what the masters told last is told while they
	// say nothing new.
	clusterLost = 10 * time.Second
)

// clusterCache is the cluster as the masters told it last, for all watchers.
type clusterCache struct {
	mu    sync.Mutex
	asked time.Time
	heard time.Time          // when they told last
	info  *smqpb.ClusterInfo // nil: they have not told yet
}

// clusterInfo is the cluster as the masters see it, and as the leader does while
// they cannot be asked. It waits for them only when nobody has asked for a while.
func (l *Leader) clusterInfo(ctx context.Context) *smqpb.ClusterInfo {
	c := &l.cluster
	c.mu.Lock()
	due, idle := false, false
	if l.Cluster != nil {
		since := time.Since(c.asked)
		due, idle = since >= clusterEvery, since >= clusterOld
	}
	if due {
		c.asked = time.Now()
	}
	c.mu.Unlock()
	switch {
	case idle:
		l.askMasters(ctx)
	case due:
		l.tasks.Go(l.askMasters)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.info == nil:
		return l.ownView()
	case time.Since(c.heard) >= clusterLost && c.info.GetLeadingMaster() != "":
		c.info = masterless(c.info)
	}
	return c.info
}

// masterless is the cluster as it was, without what nobody knows while no master
// leads: who leads them, and what the brokers take in.
func masterless(info *smqpb.ClusterInfo) *smqpb.ClusterInfo {
	info = proto.CloneOf(info)
	info.LeadingMaster = ""
	for _, m := range info.GetMasters() {
		m.Leader = false
	}
	for _, b := range info.GetBrokers() {
		b.Load = nil
	}
	return info
}

func (l *Leader) askMasters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	info, err := l.Cluster(ctx)
	if err != nil {
		l.Logger.Debug("the masters do not tell of the cluster", "err", err)
		return
	}
	l.cluster.mu.Lock()
	defer l.cluster.mu.Unlock()
	l.cluster.info, l.cluster.heard = info, time.Now()
}

// ownView is the cluster without its masters.
func (l *Leader) ownView() *smqpb.ClusterInfo {
	info := &smqpb.ClusterInfo{Leader: &smqpb.LeaderInfo{Broker: string(l.Self), Term: l.Term}}
	for _, b := range l.view.all() {
		info.Brokers = append(info.Brokers, &smqpb.BrokerInfo{
			Id: string(b.ID), Address: b.Address, Rack: b.Rack, Draining: b.Draining, Silent: b.Dead,
			Load: &smqpb.Load{Segments: uint64(b.Segments), MessagesPerSecond: b.MessagesPerSecond, BytesPerSecond: b.BytesPerSecond},
		})
	}
	return info
}
