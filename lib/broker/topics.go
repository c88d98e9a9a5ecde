package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Bounds of what is remembered of topics, and of the time that learning
// something of one may take.
const (
	maxTopics    = 10_000
	storeTimeout = 15 * time.Second
)

// topics is what the broker knows of topics: copies of what the store holds,
// any of which may be dropped.
type topics struct {
	st    store.Store
	tasks *background.Group
	// moved, unless nil, is called with each newer layout of a topic.
	moved func(*topic, layout.Layout)

	mu     sync.Mutex
	byName map[smq.Topic]*topic
}

func newTopics(st store.Store, tasks *background.Group) *topics {
	return &topics{st: st, tasks: tasks, byName: make(map[smq.Topic]*topic)}
}

// topic is a topic as last seen.
type topic struct {
	catalog.Config
	st    store.Store
	tasks *background.Group
	moved func(*topic, layout.Layout)

	mu      sync.Mutex
	latest  layout.Layout  // the newest version seen
	missing time.Time      // since when it is looked for in vain; zero: it is not
	history layout.History // may be behind latest
}

// get returns the topic of that name; id, when given, is the incarnation meant.
// smq.ErrNotFound when there is none. An incarnation that was seen before may
// have been deleted since: then its segments are sealed.
func (ts *topics) get(ctx context.Context, name string, id smq.TopicID) (*topic, error) {
	parsed, err := smq.ParseTopic(name)
	if err != nil {
		return nil, err
	}
	if t := ts.known(parsed); t != nil && t.ID == id {
		return t, nil
	}
	err = ts.tasks.Once(ctx, "topic "+parsed.String(), storeTimeout, func(ctx context.Context) error {
		c, err := catalog.ReadConfig(ctx, ts.st, parsed)
		if err == nil {
			ts.put(c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t := ts.known(parsed)
	if t == nil || id != "" && t.ID != id {
		return nil, fmt.Errorf("topic %v with id %q: %w", parsed, id, smq.ErrNotFound)
	}
	return t, nil
}

func (ts *topics) known(name smq.Topic) *topic {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byName[name]
}

func (ts *topics) put(c catalog.Config) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.byName[c.Topic]; t != nil && t.ID == c.ID {
		return
	}
	for name := range ts.byName { // any one: whoever needs it loads it again
		if len(ts.byName) < maxTopics {
			break
		}
		delete(ts.byName, name)
	}
	ts.byName[c.Topic] = &topic{Config: c, st: ts.st, tasks: ts.tasks, moved: ts.moved}
}

// layout is the newest version seen; its version is 0 before the first.
func (t *topic) layout() layout.Layout {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest
}

// adopt takes in a version that was read or told.
func (t *topic) adopt(lay layout.Layout) {
	t.mu.Lock()
	newer := lay.Version > t.latest.Version
	if newer {
		t.latest = lay
	}
	t.mu.Unlock()
	if newer && t.moved != nil {
		t.moved(t, lay)
	}
}

// refresh looks in the store for a newer layout version and returns the newest.
func (t *topic) refresh(ctx context.Context) (layout.Layout, error) {
	err := t.tasks.Once(ctx, "layout "+string(t.ID), storeTimeout, func(ctx context.Context) error {
		lay, found, err := catalog.Latest(ctx, t.st, t.Topic, t.ID, t.layout().Version)
		if found {
			t.adopt(lay)
		}
		return err
	})
	return t.layout(), err
}

// past is the history, at least up to the newest version seen.
func (t *topic) past(ctx context.Context) (layout.History, error) {
	if h, complete := t.known(); complete {
		return h, nil
	}
	err := t.tasks.Once(ctx, "history "+string(t.ID), storeTimeout, func(ctx context.Context) error {
		h, _ := t.known()
		h, err := catalog.Extend(ctx, t.st, t.Topic, t.ID, h)
		t.adopt(h.Last)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.history = h // what could be read, also when something could not
		return err
	})
	h, _ := t.known()
	return h, err
}

// known is the history as far as it has been read, and whether that is as far
// as the newest version seen.
func (t *topic) known() (h layout.History, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history, t.history.Last.Version >= t.latest.Version && t.latest.Version > 0
}
