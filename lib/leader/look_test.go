package leader

import (
	"fmt"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// BenchmarkLook is one look at 10,000 topics whose loads are known and quiet.
func BenchmarkLook(b *testing.B) {
	brokers := []layout.Broker{{ID: "a", Address: "a:7310"}, {ID: "b", Address: "b:7310"}}
	l := Start(Config{Store: mem.New(), Self: "a", Term: 1, Brokers: brokers})
	defer l.Stop()
	now := time.Now()
	for i := range 10_000 {
		c := catalog.Config{Topic: smq.Topic{Namespace: "ns", Name: fmt.Sprint(i)}, ID: smq.TopicID(fmt.Sprint(i)), Partitions: 64, Replicas: 1}
		first, _ := layout.New(c.Partitions, layout.Stamp{})
		lay, err := first.Next(layout.Replace(layout.Assign, []layout.Sealed{layout.EmptyOf(first.Segments[0])}, []layout.Member{brokers[i%2].Member()}), layout.Stamp{})
		if err != nil {
			b.Fatal(err)
		}
		tr := l.loads.traffic(c.ID, c.Topic, now)
		tr.tell(brokers[i%2].ID, layout.SegmentLoad{Segment: 2, Load: layout.Load{Messages: 1, Bytes: 1000}}, true, now)
		l.topics[c.Topic] = newTopic(c, lay, tr)
	}
	for _, broker := range brokers {
		l.loads.reporter(broker.ID)
	}
	s := &scaling{slots: make(chan struct{}, maxPlanned)}
	b.ReportAllocs()
	for b.Loop() {
		l.scale(s, now)
	}
}
