package admin

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// judgeTopics says which topics are damaged, and which have segments that nobody
// takes over.
func (x examination) judgeTopics() []finding {
	const check = "topics"
	var found []finding
	for _, topic := range sortedKeys(x.damaged) {
		found = append(found, finding{check, bad, "topic " + topic + " cannot be read: " + x.damaged[topic],
			"restore the file, for instance from a backup; until then nobody takes the topic's segments over when their broker goes"})
	}
	for _, t := range x.topics {
		n := t.GetOrphanedSegments()
		if n == 0 {
			continue
		}
		what := fmt.Sprintf("topic %s: the broker of %s is dead", t.GetConfig().GetTopic(), smq.Count(n, "segment"))
		if why := t.GetOrphanError(); why != nil {
			found = append(found, finding{check, bad, what + " and no other can take over: " + why.GetMessage(),
				"until then nothing is published to their partitions; it is tried again all the time"})
		} else {
			found = append(found, finding{check, note, what, "another is about to take over"})
		}
	}
	return found
}
