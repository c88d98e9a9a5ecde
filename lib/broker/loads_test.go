package broker_test

import (
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// Every broker reports to the one that leads, which is one of them.
func TestLoadsReachTheLeader(t *testing.T) {
	b := newBed(t)
	b.loads = make(chan *smqpb.ReportLoadsRequest)
	b.start("a")
	b.start("b")
	w := b.write(b.connect(8), 8)
	reported := make(map[string]bool)
	var loads []*smqpb.SegmentLoad
	for ctx := within(t); len(reported) < 2 || len(loads) == 0; {
		w.send(100)
		select {
		case r := <-b.loads:
			if !reported[r.GetBroker()] && !r.GetFull() {
				t.Errorf("a first report that is not a full one: %v", r)
			}
			reported[r.GetBroker()] = true
			loads = append(loads, r.GetSegments()...)
		case <-ctx.Done():
			t.Fatalf("reports came of %v, and loads %v", reported, loads)
		}
	}
	w.flush()
	if l := loads[0]; l.GetTopic() != topicT.String() || l.GetHi() != 8 || l.GetMessagesPerSecond() <= 0 || len(l.GetPartitions()) == 0 {
		t.Errorf("the load is %v", l)
	}
}
