package leader

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// knownFor is how long a load counts as known after its owner's last report;
	// brokers report every second.
	knownFor = 5 * time.Second
	// rememberedFor is how long what a broker that is gone has told is kept
	// apart from the loads of segments that are still live, and what is told of
	// topics that do not load.
	rememberedFor = time.Minute
)

// loads is what the brokers have told of the traffic that segments take in.
// There is no more of it than segments that brokers own, or did when they died.
type loads struct {
	mu        sync.Mutex
	reporters map[smq.BrokerID]*reporter
	topics    map[smq.TopicID]*traffic
}

func newLoads() *loads {
	return &loads{reporters: make(map[smq.BrokerID]*reporter), topics: make(map[smq.TopicID]*traffic)}
}

// reporter is a broker that reports its segments' loads.
type reporter struct {
	at atomic.Int64 // of the last report taken in, in ns since 1970

	mu       sync.Mutex
	sequence uint64              // of the last report taken in; 0: none
	segments map[segmentKey]bool // told, and not gone
}

// segmentKey names a segment within the cluster.
type segmentKey struct {
	topic   smq.TopicID
	segment smq.SegmentID
}

// report is a report that has been looked through.
type report struct {
	broker   smq.BrokerID
	sequence uint64
	full     bool
	segments []told
}

// told is what a report says of one segment.
type told struct {
	segmentKey
	name smq.Topic
	gone bool
	load layout.SegmentLoad // with the partitions that have changed, rising
}

// ReportLoads takes in what traffic a broker's segments take in.
func (l *Leader) ReportLoads(_ context.Context, req *smqpb.ReportLoadsRequest) (*smqpb.ReportLoadsResponse, error) {
	if err := l.leading(); err != nil {
		return nil, err
	}
	r, err := parseReport(req)
	if err != nil {
		return nil, fmt.Errorf("report of loads by broker %q: %w", req.GetBroker(), err)
	}
	if _, known := l.view.get(r.broker); !known {
		// The masters have not told of it yet, or its lease has run out.
		return &smqpb.ReportLoadsResponse{SendFull: true}, nil
	}
	inOrder := l.loads.take(r, time.Now(), l.hub.touch)
	return &smqpb.ReportLoadsResponse{SendFull: !inOrder}, nil
}

func parseReport(req *smqpb.ReportLoadsRequest) (report, error) {
	r := report{broker: smq.BrokerID(req.GetBroker()), sequence: req.GetSequence(), full: req.GetFull()}
	for _, s := range req.GetSegments() {
		t, err := parseTold(s)
		if err != nil {
			return report{}, err
		}
		r.segments = append(r.segments, t)
	}
	return r, nil
}

func parseTold(s *smqpb.SegmentLoad) (told, error) {
	t := told{segmentKey: segmentKey{smq.TopicID(s.GetTopicId()), smq.SegmentID(s.GetSegment())}, gone: s.GetGone()}
	var err error
	if t.name, err = smq.ParseTopic(s.GetTopic()); err != nil || t.gone {
		return t, err
	}
	if t.load, err = layout.LoadFromProto(s); err != nil {
		return t, err
	}
	byPartition := func(a, b layout.PartitionLoad) int { return cmp.Compare(a.Partition, b.Partition) }
	if !slices.IsSortedFunc(t.load.Partitions, byPartition) {
		slices.SortFunc(t.load.Partitions, byPartition)
	}
	last := s.GetLo() - 1
	for _, p := range t.load.Partitions {
		if p.Partition <= last || p.Partition >= s.GetHi() || !isRate(p.Load) {
			return t, fmt.Errorf("%w load of partition %d of segment %d, range [%d, %d): %v", smq.ErrInvalid, p.Partition, t.segment, s.GetLo(), s.GetHi(), p.Load)
		}
		last = p.Partition
	}
	if !isRate(t.load.Load) || !t.topic.Valid() {
		return t, fmt.Errorf("%w load of segment %d of topic %q: %v", smq.ErrInvalid, t.segment, t.topic, t.load.Load)
	}
	return t, nil
}

func isRate(l layout.Load) bool {
	return l.Messages >= 0 && l.Bytes >= 0 && !math.IsInf(l.Messages+l.Bytes, 0) // and no NaN
}

// take takes the report in. It reports false when that does not make sense
// because an earlier one is missing. touch is called when topics have other
// loads than before.
func (ls *loads) take(r report, now time.Time, touch func(*traffic)) (inOrder bool) {
	from := ls.reporter(r.broker)
	from.mu.Lock()
	defer from.mu.Unlock()
	switch {
	case from.sequence > 0 && r.sequence <= from.sequence:
		return true // it comes late: what it says is known, or outdated
	case !r.full && (from.sequence == 0 || r.sequence != from.sequence+1):
		return false
	}
	from.sequence = r.sequence
	from.at.Store(now.UnixNano())
	left := from.segments
	if r.full {
		from.segments = make(map[segmentKey]bool, len(r.segments))
	}
	for _, t := range r.segments {
		if t.gone {
			delete(from.segments, t.segmentKey)
			ls.lose(t.segmentKey, r.broker)
			continue
		}
		from.segments[t.segmentKey] = true
		tr := ls.traffic(t.topic, t.name, now)
		if tr.tell(r.broker, t.load, r.full, now) {
			touch(tr)
		}
	}
	for key := range left {
		if !from.segments[key] {
			ls.lose(key, r.broker)
		}
	}
	return true
}

func (ls *loads) reporter(id smq.BrokerID) *reporter {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	r := ls.reporters[id]
	if r == nil {
		r = &reporter{segments: make(map[segmentKey]bool)}
		r.at.Store(time.Now().UnixNano())
		ls.reporters[id] = r
	}
	return r
}

// traffic returns what is told of the topic's segments.
func (ls *loads) traffic(id smq.TopicID, name smq.Topic, now time.Time) *traffic {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	tr := ls.topics[id]
	if tr == nil {
		tr = newTraffic(name, now)
		ls.topics[id] = tr
	}
	return tr
}

// lose takes in that a broker does not own a segment any more.
func (ls *loads) lose(key segmentKey, broker smq.BrokerID) {
	ls.mu.Lock()
	tr := ls.topics[key.topic]
	ls.mu.Unlock()
	if tr != nil {
		tr.lose(key.segment, broker)
	}
}

// forget drops all that is told of a topic.
func (ls *loads) forget(id smq.TopicID) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.topics, id)
}

// fresh are the brokers that have reported lately.
func (ls *loads) fresh(now time.Time) map[smq.BrokerID]bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	fresh := make(map[smq.BrokerID]bool, len(ls.reporters))
	for id, r := range ls.reporters {
		switch silent := now.Sub(time.Unix(0, r.at.Load())); {
		case silent < knownFor:
			fresh[id] = true
		case silent > rememberedFor:
			delete(ls.reporters, id)
		}
	}
	return fresh
}

// unknown lists the topics of which segments are told and that isKnown does not
// know, and forgets those of which nothing has been told for long. isKnown is
// called without the lock: it takes the leader's, under which loads are asked.
func (ls *loads) unknown(now time.Time, isKnown func(smq.Topic, smq.TopicID) bool) []smq.Topic {
	ls.mu.Lock()
	told := maps.Clone(ls.topics)
	ls.mu.Unlock()
	maps.DeleteFunc(told, func(id smq.TopicID, tr *traffic) bool { return isKnown(tr.name, id) })
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var names []smq.Topic
	for id, tr := range told {
		switch at := tr.toldAt(); {
		case ls.topics[id] != tr:
		case now.Sub(at) > rememberedFor:
			delete(ls.topics, id)
		case now.Sub(at) < knownFor && !tr.tried:
			tr.tried = true
			names = append(names, tr.name)
		}
	}
	return names
}
