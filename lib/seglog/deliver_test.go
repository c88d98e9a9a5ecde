package seglog

import (
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
)

// roomy notes the memory that acks are given to it in.
type roomy struct{ acks, room int }

func (r *roomy) Acked(acks []Ack) { r.acks, r.room = r.acks+len(acks), r.room+cap(acks) }

// A chunk's batches may be of any number of publishers; their acks together take no
// more memory than those of one.
func TestAcksOfManyPublishers(t *testing.T) {
	const publishers, each = 100, 10
	sinks := make([]*roomy, publishers)
	var entries []entry
	var repeats []repeat
	for i := range sinks {
		sinks[i] = new(roomy)
		for range each {
			entries = append(entries, entry{sink: sinks[i]})
		}
		repeats = append(repeats, repeat{sink: sinks[i]})
	}
	deliver(entries, repeats, Stored, func(smq.Position) error { return nil })
	for i, s := range sinks {
		if s.acks != each+1 || s.room > 2*s.acks {
			t.Fatalf("publisher %d has %d acks in room for %d, want %d", i, s.acks, s.room, each+1)
		}
	}
}
