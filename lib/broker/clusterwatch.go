package broker

import (
	"context"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// watchAgain is the wait before a broken watch on the masters is made again.
const watchAgain = 200 * time.Millisecond

// watch hears of a new leader and of brokers' ends as soon as the leading master
// does, until ctx ends. Grants tell the same, but only with the next heartbeat.
func (m *member) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := m.watchOnce(ctx); ctx.Err() == nil {
			m.b.log.Debug("the watch on the masters broke", "err", err)
		}
		m.observe(nil)
		if background.Wait(ctx, watchAgain) != nil {
			return
		}
	}
}

func (m *member) watchOnce(ctx context.Context) error {
	master, _, err := m.b.cfg.Cluster.Master(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := master.WatchCluster(ctx, &smqpb.ClusterRequest{})
	if err != nil {
		return err
	}
	for {
		info, err := stream.Recv()
		if err != nil {
			return err
		}
		m.observe(info)
	}
}

// observe takes in the cluster's state; nil when it is not heard any more.
func (m *member) observe(info *smqpb.ClusterInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watching = info != nil
	if info == nil {
		return
	}
	m.follow(info.GetLeader())
	m.brokers = candidates(info.GetBrokers())
	m.tell()
}
