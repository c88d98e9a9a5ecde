package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// role is the broker's part in leading: it leads while the masters name it, and
// points to the leader else.
type role struct {
	b *Broker

	telling sync.Mutex // held while the leader is told who the brokers are, so that the latest is told last

	mu      sync.Mutex
	reign   *reign // nil while another one leads
	address string // of the leading broker; empty while none is known
}

// reign is one term as the leader.
type reign struct {
	Leading
	term uint64
}

// run takes the lead and gives it up as the masters say, until ctx ends.
func (r *role) run(ctx context.Context) {
	defer r.yield("")
	for {
		select {
		case <-r.b.member.changed:
		case <-ctx.Done():
			return
		}
		self, leader, brokers := r.b.member.cluster()
		switch {
		case leader.GetBroker() != string(self) || leader.GetTerm() == 0:
			r.yield(leader.GetAddress())
		case knows(brokers, self):
			r.lead(self, leader.GetTerm(), brokers)
		default:
			// What is known of the brokers is from before this one joined: to a
			// leader, those that it does not know are dead.
		}
	}
}

func knows(brokers []layout.Broker, id smq.BrokerID) bool {
	return slices.ContainsFunc(brokers, func(b layout.Broker) bool { return b.ID == id })
}

// corrected is the brokers, with what this one knows better of itself: whoever
// leads is at work, though the masters may have lost sight of it for a moment; and
// it drains from when that begins, not from when the masters have heard of it.
func (r *role) corrected(self smq.BrokerID, brokers []layout.Broker) []layout.Broker {
	brokers = slices.Clone(brokers)
	for i := range brokers {
		if brokers[i].ID == self {
			brokers[i].Dead = false
			brokers[i].Draining = brokers[i].Draining || r.b.draining.Load()
		}
	}
	return brokers
}

// drain has the leader, if this broker is it, give the broker nothing any more.
func (r *role) drain() {
	r.telling.Lock()
	defer r.telling.Unlock()
	self, _, brokers := r.b.member.cluster()
	if now := r.present(); now != nil && knows(brokers, self) {
		now.SetBrokers(r.corrected(self, brokers))
	}
}

// lead leads in the given term.
func (r *role) lead(self smq.BrokerID, term uint64, brokers []layout.Broker) {
	r.telling.Lock()
	defer r.telling.Unlock()
	brokers = r.corrected(self, brokers)
	now := r.present()
	if now != nil && now.term == term {
		now.SetBrokers(brokers)
		return
	}
	r.yield("")
	r.b.log.Info("leading the cluster", "term", term)
	leading := r.b.cfg.Lead(LeadOptions{
		Store: r.b.st, Self: self, Term: term, Brokers: brokers,
		Peer: r.b.cfg.Cluster.Broker, Masters: r.b.cfg.Cluster.Info, Logger: r.b.log,
	})
	r.b.metrics.leading.Set(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reign = &reign{Leading: leading, term: term}
	r.address = r.b.cfg.Advertise
}

// yield ends the lead, if this broker has it; another one has it at address.
func (r *role) yield(address string) {
	r.mu.Lock()
	was := r.reign
	r.reign, r.address = nil, address
	r.mu.Unlock()
	if was == nil {
		return
	}
	r.b.metrics.leading.Set(0)
	was.Stop()
	r.b.log.Info("no longer leading the cluster", "term", was.term)
}

func (r *role) present() *reign {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reign
}

// leader is who answers what only the leader may.
func (r *role) leader() (Leading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reign == nil {
		return nil, &rpc.NotLeaderError{Address: r.address}
	}
	return r.reign.Leading, nil
}

// changing is who may change which topics there are: the leader, while its lease
// is valid. Without a majority of the masters that stays as it is.
func (r *role) changing() (Leading, error) {
	l, err := r.leader()
	if err == nil && !r.b.member.leased() {
		return nil, fmt.Errorf("%w: its lease with the masters has run out; most of them have to run for topics to be created or deleted", smq.ErrUnavailable)
	}
	return l, err
}

// leaderService passes requests on to the leader, while this broker is it.
type leaderService struct {
	smqpb.UnimplementedLeaderServer
	role *role
}

func (s leaderService) CreateTopic(ctx context.Context, req *smqpb.CreateTopicRequest) (*smqpb.CreateTopicResponse, error) {
	l, err := s.role.changing()
	if err != nil {
		return nil, err
	}
	return l.CreateTopic(ctx, req)
}

func (s leaderService) DeleteTopic(ctx context.Context, req *smqpb.DeleteTopicRequest) (*smqpb.DeleteTopicResponse, error) {
	l, err := s.role.changing()
	if err != nil {
		return nil, err
	}
	return l.DeleteTopic(ctx, req)
}

func (s leaderService) ListTopics(ctx context.Context, req *smqpb.ListTopicsRequest) (*smqpb.ListTopicsResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.ListTopics(ctx, req)
}

func (s leaderService) DescribeTopic(ctx context.Context, req *smqpb.DescribeTopicRequest) (*smqpb.DescribeTopicResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.DescribeTopic(ctx, req)
}

func (s leaderService) Lookup(ctx context.Context, req *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.Lookup(ctx, req)
}

func (s leaderService) ReportSealed(ctx context.Context, req *smqpb.ReportSealedRequest) (*smqpb.ReportSealedResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.ReportSealed(ctx, req)
}

func (s leaderService) DrainBroker(ctx context.Context, req *smqpb.DrainBrokerRequest) (*smqpb.DrainBrokerResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.DrainBroker(ctx, req)
}

func (s leaderService) HandOver(ctx context.Context, req *smqpb.HandOverRequest) (*smqpb.HandOverResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.HandOver(ctx, req)
}

func (s leaderService) AlterTopic(ctx context.Context, req *smqpb.AlterTopicRequest) (*smqpb.AlterTopicResponse, error) {
	l, err := s.role.changing()
	if err != nil {
		return nil, err
	}
	return l.AlterTopic(ctx, req)
}

func (s leaderService) SplitSegment(ctx context.Context, req *smqpb.SplitSegmentRequest) (*smqpb.SplitSegmentResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.SplitSegment(ctx, req)
}

func (s leaderService) MergeSegments(ctx context.Context, req *smqpb.MergeSegmentsRequest) (*smqpb.MergeSegmentsResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.MergeSegments(ctx, req)
}

func (s leaderService) ListVersions(ctx context.Context, req *smqpb.ListVersionsRequest) (*smqpb.ListVersionsResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.ListVersions(ctx, req)
}

func (s leaderService) ReportLoads(ctx context.Context, req *smqpb.ReportLoadsRequest) (*smqpb.ReportLoadsResponse, error) {
	l, err := s.role.leader()
	if err != nil {
		return nil, err
	}
	return l.ReportLoads(ctx, req)
}

func (s leaderService) Watch(req *smqpb.WatchRequest, stream grpc.ServerStreamingServer[smqpb.WatchUpdate]) error {
	l, err := s.role.leader()
	if err != nil {
		return err
	}
	return l.Watch(req, stream)
}
