package leader

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// topic is a topic's copy in memory.
type topic struct {
	Topic smq.Topic
	ID    smq.TopicID
	// altering holds a token while the configuration is being altered.
	altering chan struct{}
	traffic  *traffic
	rev      atomic.Uint64 // see hub

	mu      sync.Mutex
	current catalog.Config
	latest  layout.Layout // newest version known
	queue   []*change
	idle    chan struct{} // closed when the queue is empty and nothing is written
	deleted bool          // nothing more is queued, and no segment held
	held    map[smq.SegmentID]*hold
	stuck   map[smq.SegmentID]error // see attempted
}

func newTopic(c catalog.Config, l layout.Layout, tr *traffic) *topic {
	tr.follow(l)
	t := &topic{
		Topic: c.Topic, ID: c.ID, altering: make(chan struct{}, 1), traffic: tr,
		current: c, latest: l, idle: make(chan struct{}), held: make(map[smq.SegmentID]*hold),
	}
	close(t.idle)
	return t
}

// config is the configuration as last known.
func (t *topic) config() catalog.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// layout is the newest version known.
func (t *topic) layout() layout.Layout {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest
}

// adopt takes in a version that was read or written.
func (l *Leader) adopt(t *topic, lay layout.Layout) {
	if t.advance(lay) {
		t.traffic.follow(lay)
		l.hub.publish(t, eventOf(t.Topic, t.ID, lay))
	}
}

// advance makes the version the newest known, if it is.
func (t *topic) advance(lay layout.Layout) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if lay.Version <= t.latest.Version {
		return false
	}
	t.latest = lay
	maps.DeleteFunc(t.stuck, func(id smq.SegmentID, _ error) bool {
		_, live := lay.Get(id)
		return !live
	})
	return true
}

// topic returns the topic, loading it at first. id, when given, is the
// incarnation meant. smq.ErrNotFound when there is none.
func (l *Leader) topic(ctx context.Context, name smq.Topic, id smq.TopicID) (*topic, error) {
	if err := l.leading(); err != nil {
		return nil, err
	}
	t := l.known(name)
	// Somebody who knows another incarnation may know more than we do.
	if t == nil || id != "" && id != t.ID {
		if err := l.once(ctx, "load "+name.String(), func(ctx context.Context) error { return l.load(ctx, name) }); err != nil {
			return nil, err
		}
		t = l.known(name)
	}
	if t == nil || id != "" && id != t.ID {
		return nil, fmt.Errorf("topic %v with id %q: %w", name, id, smq.ErrNotFound)
	}
	return t, l.leading()
}

func (l *Leader) known(name smq.Topic) *topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.topics[name]
}

// snapshot lists the topics known.
func (l *Leader) snapshot() []*topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*topic, 0, len(l.topics))
	for _, t := range l.topics {
		all = append(all, t)
	}
	return all
}

// load reads the topic from the store, and gives it its first layout version if
// it has none yet.
func (l *Leader) load(ctx context.Context, name smq.Topic) error {
	for {
		before := l.deletions.Load()
		t, err := l.read(ctx, name)
		if err != nil {
			return err
		}
		if l.remember(t, before) {
			return nil
		}
	}
}

// remember keeps the topic in memory. It reports false when topics have been
// deleted since the number of deletions was the given one: then the topic may
// be one of them.
func (l *Leader) remember(t *topic, deletions uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deletions.Load() != deletions {
		return false
	}
	l.mended(t.Topic)
	if old := l.topics[t.Topic]; old == nil || old.ID != t.ID {
		l.topics[t.Topic] = t
		l.hub.publish(t, nil)
		l.Metrics.topics.Set(float64(len(l.topics)))
	}
	return true
}

func (l *Leader) read(ctx context.Context, name smq.Topic) (*topic, error) {
	c, err := catalog.ReadConfig(ctx, l.Store, name)
	if err != nil {
		return nil, l.judged(name, err)
	}
	return l.readLayout(ctx, c)
}

// readLayout is the topic of the configuration with its newest layout.
func (l *Leader) readLayout(ctx context.Context, c catalog.Config) (*topic, error) {
	lay, found, err := catalog.Latest(ctx, l.Store, c.Topic, c.ID, 0)
	if err != nil {
		return nil, l.judged(c.Topic, err)
	}
	if !found {
		if lay, err = l.firstVersion(ctx, c); err != nil {
			return nil, err
		}
	}
	l.met(lay.Stamp)
	return newTopic(c, lay, l.loads.traffic(c.ID, c.Topic, time.Now())), nil
}

// firstVersion writes layout version 1, or finds it written.
func (l *Leader) firstVersion(ctx context.Context, c catalog.Config) (layout.Layout, error) {
	lay, err := layout.New(c.Partitions, l.stamp())
	if err != nil {
		return layout.Layout{}, err
	}
	if err := catalog.WriteVersion(ctx, l.Store, c.Topic, c.ID, lay); err != nil {
		if there, found, _ := catalog.Latest(ctx, l.Store, c.Topic, c.ID, 0); found {
			return there, nil
		}
		return layout.Layout{}, err
	}
	l.Metrics.versions.WithLabelValues(string(lay.Cause)).Inc()
	l.hub.publish(nil, eventOf(c.Topic, c.ID, lay))
	return lay, nil
}

// reload looks in the store for a newer layout version.
func (l *Leader) reload(ctx context.Context, t *topic) error {
	lay, found, err := catalog.Latest(ctx, l.Store, t.Topic, t.ID, t.layout().Version)
	if err != nil || !found {
		return err
	}
	l.adopt(t, lay)
	l.poke() // whoever wrote it may not have known which brokers are dead
	l.met(lay.Stamp)
	return l.leading()
}

// refresh is reload, shared by all who want it at the same time.
func (l *Leader) refresh(ctx context.Context, t *topic) error {
	return l.once(ctx, "reload "+string(t.ID), func(ctx context.Context) error { return l.reload(ctx, t) })
}

// forget drops a deleted incarnation from memory, after whatever is under way has
// come to its end: nothing is to be written below the topic's folder any more.
func (l *Leader) forget(ctx context.Context, name smq.Topic, id smq.TopicID) error {
	l.mu.Lock()
	l.deletions.Add(1)
	t := l.topics[name]
	l.mu.Unlock()
	if t == nil || t.ID != id {
		return nil
	}
	for _, ended := range t.finish() {
		select {
		case <-ended:
		case <-ctx.Done():
			return fmt.Errorf("a change of it is under way: %w: %w", smq.ErrTimeout, ctx.Err())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.topics[name] == t {
		delete(l.topics, name)
	}
	l.loads.forget(id)
	l.hub.publish(nil, &smqpb.LayoutEvent{Topic: name.String(), TopicId: string(id), CreatedMs: time.Now().UnixMilli(), Leader: string(l.Self), Deleted: true})
	l.Metrics.topics.Set(float64(len(l.topics)))
	return nil
}

// finish lets nothing more be changed, and returns what is closed when the
// changes under way have ended.
func (t *topic) finish() (ended []<-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted = true
	for _, h := range t.held {
		ended = append(ended, h.done)
	}
	return append(ended, t.idle)
}
