package seglog

import "github.com/seaweedmq/smq/lib/smq"

// Traffic is what a partition has taken in over some time: batches that were
// accepted, whether they are stored by now or not. A slow store so does not look
// like silence. Repeats and what was refused do not count.
type Traffic struct {
	Partition smq.Partition
	Messages  uint64
	Bytes     uint64 // of batches, as they travel
}

// traffic counts what partitions take in. Counting takes no search and, but for
// growth, no memory; taking the counts costs nothing for partitions that were
// idle, and clears nothing: place says where in counts a partition's count is
// only if that one names the partition.
type traffic struct {
	place  []int32 // by partition less lo
	counts []Traffic
	lo     smq.Partition
}

func newTraffic(rng smq.Range) traffic {
	return traffic{place: make([]int32, rng.Len()), lo: rng.Lo}
}

// count adds a batch.
func (t *traffic) count(p smq.Partition, messages int32, bytes int) {
	place := &t.place[p-t.lo]
	i := int(*place)
	if i >= len(t.counts) || t.counts[i].Partition != p {
		i = len(t.counts)
		*place = int32(i)
		t.counts = append(t.counts, Traffic{Partition: p})
	}
	c := &t.counts[i]
	c.Messages += uint64(messages)
	c.Bytes += uint64(bytes)
}

// TakeTraffic returns what each partition has taken in since the last call, or
// since the log was opened; partitions that were idle are not listed. The log
// counts on in spare, whose content is lost: give back what the last call
// returned, and nothing is allocated.
func (l *Log) TakeTraffic(spare []Traffic) []Traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.traffic.counts
	l.traffic.counts = spare[:0]
	return taken
}
