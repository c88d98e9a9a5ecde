package leader

import (
	"context"
	"sync"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// rates are the loads of live segments as their owners told them last.
type rates struct {
	mu   sync.Mutex
	byID map[rateKey]float64 // bytes per second
}

type rateKey struct {
	topic   smq.TopicID
	segment smq.SegmentID
}

func (r *rates) of(topic smq.TopicID, segment smq.SegmentID) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[rateKey{topic, segment}]
}

// loadsLoop asks the brokers for their segments' loads, again and again. That
// also tells a new leader which topics are in use, before its sweep comes to
// them.
func (l *Leader) loadsLoop(ctx context.Context) {
	for {
		l.collectLoads(ctx)
		if background.Wait(ctx, l.LoadsEvery) != nil {
			return
		}
	}
}

// collectLoads asks every broker. What a dead one told last is kept: it says
// which of its segments to see to first.
func (l *Leader) collectLoads(ctx context.Context) {
	live := l.view.live()
	told := make([][]*smqpb.SegmentStatus, len(live))
	_ = each(ctx, live, func(ctx context.Context, i int, b layout.Broker) error {
		err := l.ask(ctx, b.Address, func(ctx context.Context, peer smqpb.BrokerClient) error {
			resp, err := peer.ListSegments(ctx, &smqpb.ListSegmentsRequest{})
			told[i] = resp.GetSegments()
			return err
		})
		if err != nil {
			l.Logger.Debug("a broker does not tell its segments", "broker", b.ID, "address", b.Address, "err", err)
		}
		return nil
	})
	fresh := make(map[rateKey]float64)
	for _, segments := range told {
		for _, s := range segments {
			fresh[rateKey{smq.TopicID(s.GetTopicId()), smq.SegmentID(s.GetSegment())}] = s.GetBytesPerSecond()
		}
	}
	l.rates.keep(fresh, l.orphans())
	for _, segments := range told {
		l.meet(ctx, segments)
	}
}

// keep replaces the rates, but for those of orphans.
func (r *rates) keep(fresh map[rateKey]float64, orphans []orphan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range orphans {
		k := rateKey{o.topic.ID, o.segment.ID}
		if rate, known := r.byID[k]; known {
			fresh[k] = rate
		}
	}
	r.byID = fresh
}

// meet loads the topics of live segments that are not known yet.
func (l *Leader) meet(ctx context.Context, segments []*smqpb.SegmentStatus) {
	unknown := make(map[smq.Topic]bool)
	for _, s := range segments {
		if name, err := smq.ParseTopic(s.GetTopic()); err == nil && l.known(name) == nil {
			unknown[name] = true
		}
	}
	names := make([]smq.Topic, 0, len(unknown))
	for name := range unknown {
		names = append(names, name)
	}
	_ = each(ctx, names, func(ctx context.Context, _ int, name smq.Topic) error {
		if _, err := l.topic(ctx, name, ""); err != nil {
			l.Logger.Debug("a topic that a broker has segments of does not load", "topic", name.String(), "err", err)
		}
		return nil
	})
}
