package leader_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// gauge is the value of a metric.
func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// Segments that nobody can take over are counted for as long as they are there;
// and a broker that leads no more says nothing of them, nor of topics.
func TestMetricsOfTheLeader(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		registry := prometheus.NewRegistry()
		metrics := leader.NewMetrics(registry)
		b.drain("b")
		c := b.create("t", 8)
		b.publish("t", 1, "one")
		mend := b.spoil(c.Ident(2, smq.Range{Hi: 8}).ChunkPath(0))
		l := leader.Start(leader.Config{Store: b.st.Handle(), Self: id("next"), Term: b.term + 1, Brokers: b.brokers(), Peer: b.peer, Metrics: metrics})
		b.leader.Stop()
		b.leader = l
		b.at("b").draining = false
		b.kill("a")
		want := func(when string, topics, orphans float64) {
			b.t.Helper()
			<-time.After(5 * time.Second)
			if got := gauge(b.t, registry, "smq_leader_topics"); got != topics {
				b.t.Errorf("%s: %v topics", when, got)
			}
			if got := gauge(b.t, registry, "smq_leader_orphaned_segments"); got != orphans {
				b.t.Errorf("%s: %v orphans", when, got)
			}
		}
		want("a chunk is damaged", 1, 1)
		list := func() *smqpb.TopicSummary {
			b.t.Helper()
			resp, err := l.ListTopics(b.t.Context(), &smqpb.ListTopicsRequest{})
			if err != nil || len(resp.GetTopics()) != 1 {
				b.t.Fatalf("topics: %v, %v", resp, err)
			}
			return resp.GetTopics()[0]
		}
		if s := list(); s.GetOrphanedSegments() != 1 || !errors.Is(rpc.FromErrorInfo(s.GetOrphanError()), smq.ErrCorrupt) {
			b.t.Errorf("a chunk is damaged: %v", s)
		}
		mend()
		want("it is mended", 1, 0)
		if s := list(); s.GetOrphanedSegments() != 0 || s.GetOrphanError() != nil {
			b.t.Errorf("it is mended: %v", s)
		}
		l.Stop()
		want("it leads no more", 0, 0)
	})
}
