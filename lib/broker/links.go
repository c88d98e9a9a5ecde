package broker

import (
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// Times and sizes of replication.
const (
	// linkBeat is how often an owner tells a follower that it lives when it has
	// nothing else to say.
	linkBeat = 250 * time.Millisecond
	// linkLost is how long a follower may be out of reach, or owe an answer,
	// before its segments are sealed without it.
	linkLost  = time.Second
	linkAgain = 50 * time.Millisecond
	// refusedFor is how long a follower that is unavailable is asked again: a
	// little longer than leases last, after which it has its own or is replaced.
	refusedFor = 3 * time.Second
	// linkIdle is how long a link that carries nothing is kept: brokers come and
	// go, at ever new addresses.
	linkIdle = 10 * time.Second
)

// links are a broker's ways to those who follow its segments, in one life: one
// link and one stream for each of them, whatever the number of segments, and none
// for those who have long had none to follow.
//
// While the broker's own lease has run out nothing is acked as replicated, and
// who would follow a segment's successor is most likely as cut off as the broker.
// So it then has nobody begin to follow, and gives up no follower; messages are
// acked when they are stored.
type links struct {
	b    *Broker
	self smq.BrokerID

	mu     sync.Mutex
	byAddr map[string]*link
	byLog  map[*seglog.Log][]*link // that carry it
}

func newLinks(b *Broker, self smq.BrokerID) *links {
	return &links{b: b, self: self, byAddr: make(map[string]*link), byLog: make(map[*seglog.Log][]*link)}
}

// replication is what the log of a segment with followers needs. attach must
// follow when the log is open.
func (ls *links) replication(s layout.Segment) seglog.Replication {
	if len(s.Followers) == 0 {
		return seglog.Replication{}
	}
	r := seglog.Replication{Leased: ls.b.member.leased, Notify: ls.notify}
	for _, f := range s.Followers {
		r.Followers = append(r.Followers, f.Broker)
	}
	return r
}

// attach begins to send the log's batches to its followers. lost is called,
// perhaps more than once for the same, when the log has to go on without one;
// leaving: it drains, and has said so.
func (ls *links) attach(t *topic, s layout.Segment, log *seglog.Log, lost func(follower smq.BrokerID, leaving bool)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i, f := range s.Followers {
		k := ls.byAddr[f.Address]
		if k == nil {
			k = newLink(ls, f.Address)
			ls.byAddr[f.Address] = k
			ls.b.tasks.Go(k.run)
		}
		ls.byLog[log] = append(ls.byLog[log], k)
		k.add(&outgoing{topic: t, log: log, key: segmentKey{t.ID, s.ID}, index: i,
			lost: func(leaving bool) { lost(f.Broker, leaving) }})
	}
}

// detach ends the sending of a log that has stopped. Followers of a sealed
// segment are told to let go; those of one that is not may hold what nobody else
// does any more.
func (ls *links) detach(log *seglog.Log) {
	_, sealed := log.Sealed()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, k := range ls.byLog[log] {
		if sealed {
			k.finish(log)
		} else {
			k.remove(log)
		}
	}
	delete(ls.byLog, log)
}

// drop gives the link up, if it has been idle for long; it reports whether it did.
func (ls *links) drop(k *link) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !k.isIdle() {
		return false
	}
	delete(ls.byAddr, k.addr)
	return true
}

// notify has every link that carries the log look at it.
func (ls *links) notify(log *seglog.Log) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, k := range ls.byLog[log] {
		k.mark(log)
	}
}
