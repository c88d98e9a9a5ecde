package broker

import (
	"context"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// watchAgain is the wait before a broken watch on the masters is made again.
	watchAgain = 200 * time.Millisecond
	// learnTimeout bounds a question for the masters that there are.
	learnTimeout = 5 * time.Second
)

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
	m.b.tasks.Go(func(context.Context) {
		select {
		case <-m.moved:
			cancel()
		case <-ctx.Done():
		}
	})
	stream, err := master.WatchCluster(ctx, &smqpb.ClusterRequest{})
	if err != nil {
		return err
	}
	var masters []string
	for {
		info, err := stream.Recv()
		if err != nil {
			return err
		}
		m.observe(info)
		if now := addresses(info.GetMasters()); !slices.Equal(now, masters) {
			masters = now
			m.b.tasks.Go(m.b.learnMasters)
		}
	}
}

func addresses(masters []*smqpb.MasterInfo) []string {
	var all []string
	for _, m := range masters {
		all = append(all, m.GetAddress())
	}
	return all
}

// learnMasters has the masters that there are now remembered for when the ones
// that are known are gone. It fails with the watch that asks for it, and is asked
// for again with the next one.
func (b *Broker) learnMasters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	if _, err := b.cfg.Cluster.Info(ctx); err != nil {
		b.log.Debug("cannot ask who the masters are", "err", err)
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
