package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// doctorNow is when the examinations of these tests were made.
var doctorNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthy is a cluster of three masters and two brokers that lacks nothing.
func healthy() examination {
	return examination{
		now:     doctorNow,
		masters: map[string]error{"m1:1": nil, "m2:1": nil, "m3:1": nil},
		brokers: map[string]error{"b1:1": nil, "b2:1": nil},
		ready:   map[string]error{"b1:1": nil},
		info: &smqpb.ClusterInfo{
			Store: "dir:///store", LeadingMaster: "m2:1",
			Leader: &smqpb.LeaderInfo{Broker: "aa", Address: "b1:1", Term: 3},
			Brokers: []*smqpb.BrokerInfo{
				{Id: "aa", Address: "b1:1", Version: "v1", Load: &smqpb.Load{MemoryUsed: 1, MemoryLimit: 100}},
				{Id: "bb", Address: "b2:1", Version: "v1"},
			},
		},
	}
}

// table is the findings that are not ok, a line each.
func table(found []finding) string {
	var lines []string
	for _, f := range found {
		if f.Status != ok {
			lines = append(lines, f.Status+" "+f.Check+": "+f.Detail)
		}
	}
	return strings.Join(lines, "\n")
}

func TestJudgeHealthy(t *testing.T) {
	found := judge(healthy())
	if got := table(found); got != "" || len(found) != 4 {
		t.Errorf("%d findings, not ok:\n%s", len(found), got)
	}
}

func TestJudge(t *testing.T) {
	gone := errors.New("gone")
	tests := []struct {
		name   string
		change func(x *examination)
		want   string
	}{
		{"nobody answers", func(x *examination) { x.info = nil; x.masters = map[string]error{"m1:1": gone} }, "bad masters: master m1:1 does not answer: gone"},
		{"a master is down", func(x *examination) { x.masters["m1:1"] = gone }, "bad masters: master m1:1 does not answer: gone"},
		{"not a master", func(x *examination) { x.masters["m1:1"] = fmt.Errorf("ask: %w", rpc.ErrForeign) }, "bad masters: m1:1 is not an SMQ master"},
		{"one master", func(x *examination) { x.masters = map[string]error{"m2:1": nil} }, "note masters: there is one master, at m2:1"},
		{"no majority that knows the brokers", func(x *examination) { x.info.LeadingMaster, x.info.Brokers = "", nil },
			"bad masters: no master leads: less than a majority of them is there\nnote brokers: without a leading master nobody knows which brokers are there\n" +
				"note leader: broker aa at b1:1 led when last there was a majority of the masters; it answers and reads the store"},
		{"no brokers", func(x *examination) { x.info.Brokers = nil }, "bad brokers: no broker is there to take or to serve messages"},
		{"a broker is silent", func(x *examination) { x.info.Brokers[1].Silent = true },
			"bad brokers: broker bb at b2:1 is silent\nnote brokers: there is one broker"},
		{"a broker cannot be reached", func(x *examination) { x.brokers["b2:1"] = gone },
			"bad brokers: broker bb at b2:1 does not answer: gone\nnote brokers: there is one broker"},
		{"a store is full", func(x *examination) { x.writes = map[string]string{"b1:1": "no space left"} },
			"bad brokers: broker aa at b1:1 cannot write to the store: no space left\nnote brokers: there is one broker"},
		{"a store is full for all", func(x *examination) {
			x.info.Brokers, x.writes = x.info.Brokers[:1], map[string]string{"b1:1": "no space left"}
		}, "bad brokers: broker aa at b1:1 cannot write to the store: no space left"},
		{"a broker is not ready", func(x *examination) { x.ready["b1:1"] = errors.New("store: gone") },
			"bad brokers: broker aa at b1:1 is not ready: store: gone\nnote brokers: there is one broker\nbad leader: the leading broker, aa at b1:1, reads the store, but is not ready: store: gone"},
		{"a broker drains", func(x *examination) { x.info.Brokers[1].Draining = true },
			"note brokers: broker bb at b2:1 is draining\nnote brokers: there is one broker"},
		{"memory is short", func(x *examination) { x.info.Brokers[0].Load.MemoryUsed = 95 }, "note memory: broker aa at b1:1 uses 95B of 100B"},
		{"two versions", func(x *examination) { x.info.Brokers[1].Version = "v2" }, "note versions: brokers of several versions: v1, v2"},
		{"a topic is damaged", func(x *examination) {
			x.damaged = map[string]string{"t": "/topics/default/t/topic.json: it is corrupt"}
		},
			"bad topics: topic t cannot be read: /topics/default/t/topic.json: it is corrupt"},
		{"segments are stuck", func(x *examination) {
			x.topics = []*smqpb.TopicSummary{
				{Config: &smqpb.TopicConfig{Topic: "t"}, OrphanedSegments: 2, OrphanError: &smqpb.ErrorInfo{Message: "chunk 0 is corrupt"}},
				{Config: &smqpb.TopicConfig{Topic: "u"}, OrphanedSegments: 1},
			}
		},
			"bad topics: topic t: the broker of 2 segments is dead and no other can take over: chunk 0 is corrupt\n" +
				"note topics: topic u: the broker of 1 segment is dead"},
		{"nobody leads", func(x *examination) { x.info.Leader = nil }, "bad leader: no broker leads, so topics cannot be made and segments not moved"},
		{"the leader fails", func(x *examination) { x.leader = gone }, "bad leader: the leading broker, aa at b1:1, cannot list the topics: gone"},
		{"the leader is deposed", func(x *examination) { x.leader = &rpc.NotLeaderError{} },
			"bad leader: broker aa at b1:1 leads by the masters' word, and refuses to: another leader writes to the store dir:///store"},
		{"the leader hangs", func(x *examination) {
			x.leader = fmt.Errorf("silence: %w", errors.Join(rpc.ErrHangs, smq.ErrUnavailable))
		},
			"bad leader: the leading broker, aa at b1:1, does not answer: silence: the process hangs\nunavailable"},
		{"the leader is dead as a broker", func(x *examination) { x.brokers["b1:1"] = gone },
			"bad brokers: broker aa at b1:1 does not answer: gone\nnote brokers: there is one broker\nbad leader: the leading broker, aa at b1:1, does not always answer: gone"},
		{"no majority, and a broker that says ready", func(x *examination) { x.info.LeadingMaster = "" },
			"bad masters: no master leads: less than a majority of them is there\nnote leader: broker aa at b1:1 led when last there was a majority of the masters; it answers and reads the store"},
		{"replicas were lost", func(x *examination) {
			x.past = map[string]*pastSeals{"t": {seals: map[uint64]pastSeal{7: {segmentRef{Segment: 7, Hi: 4}, doctorNow.UnixMilli() - 1000}, 5: {segmentRef{Segment: 5, Lo: 4, Hi: 8}, 1000}}}}
		}, "bad history: topic t: every replica was lost of segments 7 [0,4) at 2026-03-01T11:59:59Z, 5 [4,8) at 1970-01-01T00:00:01Z, an unclean seal: messages that were acked as replicated before then, and not stored yet, may be lost"},
		{"replicas were lost long ago", func(x *examination) {
			x.past = map[string]*pastSeals{"t": {seals: map[uint64]pastSeal{5: {segmentRef{Segment: 5, Lo: 4, Hi: 8}, 1000}}}}
		}, "note history: topic t: every replica was lost of segment 5 [4,8) at 1970-01-01T00:00:01Z, an unclean seal: messages that were acked as replicated before then, and not stored yet, may be lost"},
		{"too many topics to look at", func(x *examination) { x.unread = 3 }, "note history: there was no time to look for losses in the layouts of 3 topics"},
		{"no sync", func(x *examination) { x.info.Store = "dir:///store?fsync=false" }, "note store: dir:///store?fsync=false does not sync"},
		{"the store lacks something", func(x *examination) { x.store = []string{"no copies", "no sync"} }, "note store: no copies\nnote store: no sync"},
	}
	for _, test := range tests {
		x := healthy()
		x.info = proto.CloneOf(x.info)
		test.change(&x)
		if got := table(judge(x)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

// An address that cannot be one says nothing about the cluster.
func TestDoctorRefusesAddresses(t *testing.T) {
	s := startStub(t)
	for _, address := range []string{"foo", "foo:", "foo:99999", "foo:7300x", s.addr + ",foo"} {
		stdout, stderr, code := s.run(t, "doctor", "--master", address)
		if code != cli.ExitUsage || stdout != "" || !strings.HasSuffix(stderr, ": it is not HOST:PORT\n") {
			t.Errorf("%s: code %d, %s%s", address, code, stdout, stderr)
		}
	}
	if stdout, stderr, code := s.run(t, "doctor", "--master="); code != cli.ExitUsage || stdout != "" {
		t.Errorf("empty: code %d, %s%s", code, stdout, stderr)
	}
}

func TestJudgeAdvises(t *testing.T) {
	x := healthy()
	x.info.Brokers = nil
	for _, f := range judge(x) {
		if f.Status == bad && f.Advice == "" {
			t.Errorf("%s: no advice", f.Detail)
		}
	}
}

// What a broker's silence tells decides the advice.
func TestJudgeAdvisesOnSilence(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("connection refused"), "--advertise"},
		{errors.Join(rpc.ErrHangs, smq.ErrUnavailable), "it hangs: the process is paused or overloaded"},
		{smq.ErrTimeout, "it hangs or is overloaded, or the network"},
	} {
		x := healthy()
		x.brokers["b2:1"] = test.err
		for _, f := range judge(x) {
			if f.Status == bad && (!strings.Contains(f.Advice, test.want) || strings.Contains(f.Advice, "--advertise") && errors.Is(test.err, rpc.ErrHangs)) {
				t.Errorf("%v: advice %q", test.err, f.Advice)
			}
		}
	}
}

// Brokers that are not ready because no master leads are not what is to be mended.
func TestJudgeSendsToTheMastersFirst(t *testing.T) {
	x := healthy()
	x.info.LeadingMaster, x.ready["b1:1"] = "", errors.New("the lease has run out")
	if f := x.judgeLeader(); f.Status != bad || f.Advice != "see to the masters first" {
		t.Errorf("%v", f)
	}
}

// An unclean seal is found in the newest versions, and in what the leader
// remembers beyond them; not of a topic that had the name before.
func TestDoctorFindsUncleanSeals(t *testing.T) {
	s := startStub(t)
	s.topics = []*smqpb.TopicSummary{{Config: s.config, LayoutVersion: 30}}
	now := time.Now().UnixMilli()
	s.versions = []*smqpb.Layout{
		{Version: 20, CreatedMs: 1, Sealed: []*smqpb.SealedSegment{{Id: 4, Hi: 64, Unclean: true}}}, // too long ago to be looked at
		{Version: 21, CreatedMs: now, Sealed: []*smqpb.SealedSegment{{Id: 7, Hi: 64, Unclean: true}}},
	}
	s.watch = func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(&smqpb.WatchUpdate{Reset_: true, Complete: true, Events: []*smqpb.LayoutEvent{
			{Topic: "orders", TopicId: stubTopicID, Version: 11, CreatedMs: now - 1000, Sealed: []*smqpb.SealedSegment{{Id: 5, Hi: 64, Unclean: true}, {Id: 6, Hi: 64}}},
			{Topic: "orders", TopicId: "before", Version: 12, Sealed: []*smqpb.SealedSegment{{Id: 99, Hi: 64, Unclean: true}}},
		}})
		return nil
	}
	stdout, stderr, code := s.run(t, "doctor", "-o", "plain")
	want := fmt.Sprintf("history\tbad\ttopic orders: every replica was lost of segments 7 [0,64) at %s, 5 [0,64) at %s, an unclean seal", when(now), when(now-1000))
	if code != cli.ExitUnhealthy || !strings.Contains(stdout, want) {
		t.Errorf("code %d, %s\n%s\nwant %s", code, stderr, stdout, want)
	}
	s.mu.Lock()
	s.versions = nil
	s.mu.Unlock()
	s.answerWatch(func(_ int, send func(*smqpb.WatchUpdate)) error {
		send(&smqpb.WatchUpdate{Reset_: true, Complete: true})
		return nil
	})
	if stdout, stderr, _ = s.run(t, "doctor", "-o", "plain"); !strings.Contains(stdout, "history\tok\tno unclean seal in the newest layouts of 1 topic\n") {
		t.Errorf("%s\n%s", stderr, stdout)
	}
}

// What is said of the leader is said of the broker that the row names.
func TestDoctorAsksTheLeaderItself(t *testing.T) {
	s := startStub(t)
	s.topics = []*smqpb.TopicSummary{}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	conns := rpc.NewConns(rpc.DialOptions{})
	defer conns.Close()
	x := examination{damaged: map[string]string{}, info: &smqpb.ClusterInfo{
		LeadingMaster: s.addr, Leader: &smqpb.LeaderInfo{Broker: "before", Address: gone.Addr().String()},
	}}
	x.askLeader(t.Context(), conns)
	if x.leader != nil || x.info.GetLeader().GetBroker() != "aa" {
		t.Errorf("asked %v: %v", x.info.GetLeader(), x.leader)
	}
	// A leader that does not answer, though the masters name no other one, is not
	// made up for by anybody else.
	x.info = &smqpb.ClusterInfo{LeadingMaster: gone.Addr().String(), Leader: &smqpb.LeaderInfo{Broker: "before", Address: gone.Addr().String()}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	x.askLeader(ctx, conns)
	if f := x.judgeLeader(); f.Status != bad || !strings.Contains(f.Detail, "the leading broker, before at") || !strings.Contains(f.Detail, "connection refused") {
		t.Errorf("%v", f)
	}
}
