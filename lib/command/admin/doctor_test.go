package admin

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// healthy is a cluster of three masters and two brokers that lacks nothing.
func healthy() examination {
	return examination{
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
		{"no majority", func(x *examination) { x.info.LeadingMaster = "" }, "bad masters: no master leads: less than a majority of them is there"},
		{"one master", func(x *examination) { x.masters = map[string]error{"m2:1": nil} }, "note masters: there is one master, at m2:1"},
		{"no majority that knows the brokers", func(x *examination) { x.info.LeadingMaster, x.info.Brokers = "", nil },
			"bad masters: no master leads: less than a majority of them is there\nnote brokers: without a leading master nobody knows which brokers are there"},
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
			"bad brokers: broker aa at b1:1 is not ready: store: gone\nnote brokers: there is one broker"},
		{"a broker drains", func(x *examination) { x.info.Brokers[1].Draining = true },
			"note brokers: broker bb at b2:1 is draining\nnote brokers: there is one broker"},
		{"memory is short", func(x *examination) { x.info.Brokers[0].Load.MemoryUsed = 95 }, "note memory: broker aa at b1:1 uses 95 B of 100 B"},
		{"two versions", func(x *examination) { x.info.Brokers[1].Version = "v2" }, "note versions: brokers of several versions: v1, v2"},
		{"a topic is damaged", func(x *examination) {
			x.damaged = map[string]string{"t": "/topics/default/t/topic.json: it is corrupt"}
		},
			"bad topics: topic t cannot be read: /topics/default/t/topic.json: it is corrupt"},
		{"nobody leads", func(x *examination) { x.info.Leader = nil }, "bad leader: no broker leads, so topics cannot be made and segments not moved"},
		{"the leader fails", func(x *examination) { x.leader = gone }, "bad leader: the leading broker, aa at b1:1, cannot list the topics: gone"},
		{"the leader is deposed", func(x *examination) { x.leader = &rpc.NotLeaderError{} },
			"bad leader: broker aa at b1:1 leads by the masters' word, and refuses to: another leader writes to the store dir:///store"},
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

func TestJudgeAdvises(t *testing.T) {
	x := healthy()
	x.info.Brokers = nil
	for _, f := range judge(x) {
		if f.Status == bad && f.Advice == "" {
			t.Errorf("%s: no advice", f.Detail)
		}
	}
}
