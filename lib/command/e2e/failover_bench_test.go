//go:build unix

package e2e

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkFailover measures how long a publisher that sends all the time gets
// no ack when the owner of its partition is killed, which closes its
// connections, or falls silent. The median and the worst are reported, as
// milliseconds from the signal to the first ack of the successor, apart for the
// times when the owner led the cluster too: then another leader comes first.
func BenchmarkFailover(b *testing.B) {
	for name, end := range map[string]func(*daemon) (mend func()){
		"killed": func(d *daemon) func() { d.kill(); return d.start },
		"silent": func(d *daemon) func() { d.pause(); return d.resume },
	} {
		b.Run(name, func(b *testing.B) { benchmarkFailover(b, end) })
	}
}

func benchmarkFailover(b *testing.B, end func(*daemon) (mend func())) {
	c := newCluster(b, newStore(b), 3)
	c.createTopic("t", "--partitions", "1")
	pub := c.publish("pub", "t", plain, "--rate", "20000/s")
	pub.setWindow(60_000)
	pub.awaitMore(20_000)
	took := make(map[string][]time.Duration) // by what the owner is besides
	for b.Loop() {
		owner, id := c.ownerOf("t")
		also := ""
		if owner == c.leader() {
			also = "-leading"
		}
		pub.mark()
		begun := time.Now()
		mend := end(owner)
		c.otherOwnerOf("t", id)
		pub.awaitMore(20_000)
		took[also] = append(took[also], pub.longestPause().end.Sub(begun))
		mend()
		c.awaitAllThere()
	}
	pub.finish(0)
	b.ReportMetric(0, "ns/op")
	for also, took := range took {
		slices.Sort(took)
		b.ReportMetric(float64(len(took)), "times"+also)
		b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-median"+also)
		b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms-worst"+also)
	}
}
