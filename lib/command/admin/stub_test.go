package admin

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// stub is a cluster of one process on a loopback port, whose answers tests set.
// It has one topic, orders.
type stub struct {
	smqpb.UnimplementedMasterServer
	smqpb.UnimplementedLeaderServer
	smqpb.UnimplementedBrokerServer
	addr string

	mu         sync.Mutex // guards what follows
	config     *smqpb.TopicConfig
	layout     *smqpb.Layout
	versions   []*smqpb.Layout
	topics     []*smqpb.TopicSummary   // as they are listed; nil: the call is not known
	spoiled    []*smqpb.DamagedVersion // in the place of versions
	refuse     error                   // of changes
	masterless bool                    // no master leads
	created    *smqpb.CreateTopicRequest
	altered    []*smqpb.AlterTopicRequest
	split      []*smqpb.SplitSegmentRequest
	merged     []*smqpb.MergeSegmentsRequest
	asked      []int32               // partitions whose ends were asked for
	watched    []*smqpb.WatchRequest // watches so far
	others     []*smqpb.BrokerInfo   // besides itself
	// watch answers the n-th watch, from 0; nil: the call is not known.
	watch func(n int, send func(*smqpb.WatchUpdate)) error
}

const stubTopicID = "0123456789abcdef0123456789abcdef"

func startStub(t *testing.T) *stub {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stub{
		addr:   l.Addr().String(),
		config: &smqpb.TopicConfig{Topic: "orders", TopicId: stubTopicID, Partitions: 64, Key: "key", CreatedMs: 1_700_000_000_000},
	}
	s.layout = &smqpb.Layout{Version: 4, Cause: "assign", NextSegment: 7, Segments: []*smqpb.Segment{
		{Id: 5, Lo: 0, Hi: 32, Owner: "aa", OwnerAddress: s.addr},
		{Id: 6, Lo: 32, Hi: 64, Owner: "aa", OwnerAddress: s.addr},
	}}
	server := rpc.NewServer(rpc.ServerOptions{})
	smqpb.RegisterMasterServer(server, s)
	smqpb.RegisterLeaderServer(server, s)
	smqpb.RegisterBrokerServer(server, s)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return s
}

// run runs smq-admin against the stub.
func (s *stub) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = s.runIn(t.Context(), &cli.Env{Stdout: &out, Stderr: &errs}, args...)
	return out.String(), errs.String(), code
}

// runIn runs smq-admin against the stub in ctx, with the streams of e.
func (s *stub) runIn(ctx context.Context, e *cli.Env, args ...string) int {
	e.Name, e.Stdin = "smq-admin", strings.NewReader("")
	e.Getenv = func(name string) string {
		return map[string]string{"SMQ_MASTER": s.addr, "XDG_CONFIG_HOME": "/nonexistent"}[name]
	}
	return e.Run(ctx, New, args)
}

func (s *stub) Cluster(context.Context, *smqpb.ClusterRequest) (*smqpb.ClusterInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := &smqpb.ClusterInfo{
		LeadingMaster: s.addr, Leader: &smqpb.LeaderInfo{Broker: "aa", Address: s.addr},
		Brokers: append([]*smqpb.BrokerInfo{{Id: "aa", Address: s.addr}}, s.others...),
	}
	if s.masterless {
		info.LeadingMaster = ""
	}
	return info, nil
}

// DrainBroker answers that everything has been handed over.
func (s *stub) DrainBroker(context.Context, *smqpb.DrainBrokerRequest) (*smqpb.DrainBrokerResponse, error) {
	return &smqpb.DrainBrokerResponse{Done: true}, nil
}

// known refuses other topics than the one there is.
func (s *stub) known(topic string) error {
	if topic != s.config.Topic {
		return fmt.Errorf("topic %s: %w", topic, smq.ErrNotFound)
	}
	return nil
}

func (s *stub) DescribeTopic(_ context.Context, req *smqpb.DescribeTopicRequest) (*smqpb.DescribeTopicResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &smqpb.DescribeTopicResponse{Config: proto.CloneOf(s.config), Layout: proto.CloneOf(s.layout)}, s.known(req.Topic)
}

func (s *stub) Lookup(_ context.Context, req *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &smqpb.LookupResponse{Config: proto.CloneOf(s.config), Layout: proto.CloneOf(s.layout)}, s.known(req.Topic)
}

func (s *stub) Offsets(_ context.Context, req *smqpb.OffsetsRequest) (*smqpb.OffsetsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req.Partitions...)
	return &smqpb.OffsetsResponse{TopicId: stubTopicID, Partitions: req.Partitions, Offsets: make([]int64, len(req.Partitions))}, nil
}

func (s *stub) CreateTopic(_ context.Context, req *smqpb.CreateTopicRequest) (*smqpb.CreateTopicResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = proto.CloneOf(req)
	return &smqpb.CreateTopicResponse{Config: &smqpb.TopicConfig{Topic: req.Topic, Partitions: req.Partitions}}, nil
}

func (s *stub) AlterTopic(_ context.Context, req *smqpb.AlterTopicRequest) (*smqpb.AlterTopicResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.altered = append(s.altered, proto.CloneOf(req))
	config := proto.CloneOf(s.config)
	config.Scaling, config.Replicas = req.Scaling, req.Replicas
	return &smqpb.AlterTopicResponse{Config: config}, s.known(req.Topic)
}

// replace puts new segments into the layout in place of those of [lo, hi).
func (s *stub) replace(lo, hi int32, cause string, at ...int32) *smqpb.Layout {
	next := &smqpb.Layout{Version: s.layout.Version + 1, Cause: cause, NextSegment: s.layout.NextSegment}
	for _, old := range s.layout.Segments {
		if old.Hi <= lo || hi <= old.Lo {
			next.Segments = append(next.Segments, old)
		}
	}
	for i, from := range at {
		to := hi
		if i+1 < len(at) {
			to = at[i+1]
		}
		next.Segments = append(next.Segments, &smqpb.Segment{Id: next.NextSegment, Lo: from, Hi: to, Owner: "aa", OwnerAddress: s.addr})
		next.NextSegment++
	}
	s.layout = next
	return proto.CloneOf(next)
}

func (s *stub) SplitSegment(_ context.Context, req *smqpb.SplitSegmentRequest) (*smqpb.SplitSegmentResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.split = append(s.split, proto.CloneOf(req))
	if s.refuse != nil {
		return nil, s.refuse
	}
	at := req.At
	if at == 0 {
		at = 16
	}
	return &smqpb.SplitSegmentResponse{Layout: s.replace(0, 32, "split", 0, at)}, nil
}

func (s *stub) MergeSegments(_ context.Context, req *smqpb.MergeSegmentsRequest) (*smqpb.MergeSegmentsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.merged = append(s.merged, proto.CloneOf(req))
	if s.refuse != nil {
		return nil, s.refuse
	}
	return &smqpb.MergeSegmentsResponse{Layout: s.replace(0, 64, "merge", 0)}, nil
}

func (s *stub) ListVersions(_ context.Context, req *smqpb.ListVersionsRequest) (*smqpb.ListVersionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &smqpb.ListVersionsResponse{Config: proto.CloneOf(s.config)}
	for _, v := range s.versions {
		if v.Version <= req.After {
			continue
		}
		resp.Versions, resp.More = []*smqpb.Layout{v}, true
		if i := slices.IndexFunc(s.spoiled, func(d *smqpb.DamagedVersion) bool { return d.Version == v.Version }); i >= 0 {
			resp.Versions, resp.Damaged = nil, s.spoiled[i:i+1]
		}
		break
	}
	return resp, s.known(req.Topic)
}

func (s *stub) ListTopics(ctx context.Context, req *smqpb.ListTopicsRequest) (*smqpb.ListTopicsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics == nil {
		return s.UnimplementedLeaderServer.ListTopics(ctx, req)
	}
	resp := &smqpb.ListTopicsResponse{}
	for _, t := range s.topics {
		if t.GetConfig().GetTopic() > req.GetAfter() {
			resp.Topics, resp.More = []*smqpb.TopicSummary{t}, true
			break
		}
	}
	return resp, nil
}

// answerWatch sets what a watcher in another process is sent.
func (s *stub) answerWatch(f func(n int, send func(*smqpb.WatchUpdate)) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = f
}

func (s *stub) Watch(req *smqpb.WatchRequest, stream smqpb.Leader_WatchServer) error {
	s.mu.Lock()
	n, watch := len(s.watched), s.watch
	s.watched = append(s.watched, proto.CloneOf(req))
	s.mu.Unlock()
	if watch == nil {
		return s.UnimplementedLeaderServer.Watch(req, stream)
	}
	return watch(n, func(u *smqpb.WatchUpdate) {
		_ = stream.Send(u) // a watcher that has left is seen by what it printed
	})
}
