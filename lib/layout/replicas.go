package layout

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// Replenish returns the decisions that give segments the followers that they
// lack: those whose owner and followers are fewer than the wanted replicas
// though enough brokers take segments. Each is replaced by one of the same range
// and owner.
func Replenish(l Layout, replicas, brokers int) []Decision {
	var out []Decision
	want := min(replicas, brokers)
	for _, s := range l.Segments {
		have := 1 + len(s.Followers)
		if !s.Assigned() || have >= want {
			continue
		}
		out = append(out, Decision{
			Cause: Move, Segments: []Segment{s}, Ranges: []smq.Range{s.Range}, Owners: []smq.BrokerID{s.Owner.Broker},
			Reason: fmt.Sprintf("it had %d of %s, and brokers are there for %d", have, smq.Count(replicas, "replica"), want),
		})
	}
	return out
}
