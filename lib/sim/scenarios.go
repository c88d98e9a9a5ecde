package sim

import (
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// one and two are ranges of so many partitions.
var (
	one = smq.Range{Lo: 0, Hi: 1}
	two = smq.Range{Lo: 0, Hi: 2}
)

// scenarios are the worlds that are searched. Each is as small as it can be
// for what it is about: what costs runs is every pair of steps that may
// change places.
var scenarios = []scenario{
	{
		// The everyday failure: an owner is given up, sealed from the store,
		// and followed by another, while it may still be at work.
		name:   "failover",
		faults: []mishap{unknown},
		build:  failover,
	},
	{
		// Two brokers believe that they own the segment, a third that it is
		// to be sealed.
		name:   "opening",
		faults: []mishap{unknown, refused},
		build: func(w *world) {
			w.broker("A1", 1, one)
			w.broker("A2", 1, one)
			w.sealer("S", 1, one)
			w.broker("B", 2, one, 1)
			w.client("c", 7, messages{0, 1})
		},
	},
	{
		// Two leaders fail the same segment over, and let different brokers
		// follow.
		name:   "leaders",
		faults: []mishap{unknown},
		wide:   true,
		build: func(w *world) {
			w.broker("A", 1, one)
			w.sealer("S1", 1, one)
			w.sealer("S2", 1, one)
			w.broker("B1", 2, one, 1)
			w.broker("B2", 2, one, 1)
			w.client("c", 7, messages{0, 1})
		},
	},
	{
		// A segment that its owner seals as planned while somebody else does.
		name:   "planned",
		faults: []mishap{unknown},
		build: func(w *world) {
			w.limits.ChunkBytes = 1
			w.broker("A", 1, one).planned = true
			w.sealer("S", 1, one)
			w.broker("B", 2, one, 1)
			w.client("c", 7, messages{0, 1}, messages{0, 1})
		},
	},
	{
		// The same with nobody else: what was accepted before the seal is in
		// the segment, though it takes several chunks.
		name:   "planned alone",
		faults: []mishap{unknown},
		build: func(w *world) {
			w.limits.ChunkBytes, w.limits.Inflight = 1, 1
			w.broker("A", 1, one).planned = true
			w.client("c", 7, messages{0, 1}, messages{0, 1}, messages{0, 1})
		},
	},
	{
		// Chunks of a batch each, several of them under way, uploaded ahead.
		name:   "pipeline",
		faults: []mishap{unknown},
		more:   []budget{{faults: 2, turns: anyTurns}},
		build: func(w *world) {
			w.limits.ChunkBytes = 1
			w.upload = true
			w.broker("A", 1, one)
			w.sealer("S", 1, one)
			w.client("c", 7, messages{0, 1}, messages{0, 1})
		},
	},
	{
		// A store that is full for a while.
		name:   "full",
		faults: []mishap{full, unknown},
		more:   []budget{{faults: 3, turns: anyTurns}},
		build: func(w *world) {
			w.limits.ChunkBytes = 1
			w.broker("A", 1, one).planned = true
			w.client("c", 7, messages{0, 1}, messages{0, 1})
		},
	},
	{
		// The same, and somebody seals meanwhile.
		name:   "full and sealed",
		faults: []mishap{full},
		more:   []budget{{faults: 2, turns: anyTurns}},
		build: func(w *world) {
			w.broker("A", 1, one)
			w.sealer("S", 1, one)
			w.client("c", 7, messages{0, 1}, messages{0, 1})
		},
	},
	{
		// A split and a merge: the producers' memory goes with the partitions.
		name:   "split and merge",
		faults: []mishap{unknown},
		build: func(w *world) {
			low, high := smq.Range{Lo: 0, Hi: 1}, smq.Range{Lo: 1, Hi: 2}
			w.broker("A", 1, two).planned = true
			w.broker("B", 2, low, 1).planned = true
			w.broker("C", 3, high, 1).planned = true
			w.broker("D", 4, two, 2, 3)
			w.client("c", 7, messages{0, 1}, messages{1, 1})
		},
	},
	{
		// A segment that nobody opens, between two that are.
		name:   "unopened",
		faults: []mishap{unknown},
		wide:   true,
		build: func(w *world) {
			w.broker("A", 1, one)
			w.sealer("S", 1, one)
			w.broker("B", 2, one, 1)
			w.sealer("T", 2, one, 1)
			w.broker("C", 3, one, 2)
			w.client("c", 7, messages{0, 1})
		},
	},
	{
		// An owner and a follower: what is acked from memory outlives either.
		name:   "follower",
		faults: []mishap{unknown},
		turns:  1,
		wide:   true,
		build:  withFollower,
	},
	{
		// The same over a store that is full for a while: positions are never
		// given twice.
		name:   "follower, full",
		faults: []mishap{full},
		more:   []budget{{faults: 2, turns: 1}},
		turns:  1,
		wide:   true,
		build: func(w *world) {
			w.limits.MaxUnstored = time.Hour
			w.limits.ChunkBytes = 1
			w.replica("F", w.broker("A", 1, one))
			w.client("c", 7, messages{0, 1}, messages{0, 1}).level = seglog.Replicated
		},
	},
	{
		// An owner and two followers: it outlives any two of them.
		name:   "two followers",
		faults: []mishap{unknown},
		more:   []budget{{crashes: 2, turns: anyTurns}},
		wide:   true,
		turns:  1,
		build: func(w *world) {
			w.limits.MaxUnstored = time.Hour
			a := w.broker("A", 1, one)
			w.replica("F", a)
			w.replica("G", a)
			w.client("c", 7, messages{0, 1}).level = seglog.Replicated
		},
	},
}

func failover(w *world) {
	w.broker("A", 1, two)
	w.sealer("S", 1, two)
	w.broker("B", 2, two, 1)
	w.client("c", 7, messages{0, 1}, messages{1, 1}, messages{0, 2})
}
func withFollower(w *world) {
	w.limits.MaxUnstored = time.Hour // no choice takes so long
	a := w.broker("A", 1, one)
	w.replica("F", a)
	w.broker("B", 2, one, 1)
	w.client("c", 7, messages{0, 1}, messages{0, 1}).level = seglog.Replicated
}
