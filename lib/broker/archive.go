package broker

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/store"
)

// maxSealed bounds the sealed segments kept open for reading. Each takes some
// 50 KiB at most; their chunks are cached elsewhere.
const maxSealed = 512

// archive opens sealed segments for reading, whoever owned them, and keeps
// those used last.
type archive struct {
	st     store.Store
	shared *seglog.Shared
	tasks  *background.Group

	mu    sync.Mutex
	byKey map[segmentKey]*list.Element
	order *list.List // of archived, the last used in front
}

type archived struct {
	key    segmentKey
	sealed *seglog.Sealed
}

func newArchive(st store.Store, shared *seglog.Shared, tasks *background.Group) *archive {
	return &archive{st: st, shared: shared, tasks: tasks, byKey: make(map[segmentKey]*list.Element), order: list.New()}
}

// get opens a sealed segment.
func (a *archive) get(ctx context.Context, id seglog.Ident) (*seglog.Sealed, error) {
	k := segmentKey{id.TopicID, id.Segment}
	for {
		if s := a.cached(k); s != nil {
			return s, nil
		}
		err := a.tasks.Once(ctx, fmt.Sprintf("sealed %s/%d", k.topic, k.id), storeTimeout, func(ctx context.Context) error {
			s, err := seglog.OpenSealed(ctx, a.st, id, a.shared)
			if err == nil {
				a.put(k, s)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
}

func (a *archive) cached(k segmentKey) *seglog.Sealed {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.byKey[k]
	if e == nil {
		return nil
	}
	a.order.MoveToFront(e)
	return e.Value.(archived).sealed
}

func (a *archive) put(k segmentKey, s *seglog.Sealed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey[k] != nil {
		return
	}
	a.byKey[k] = a.order.PushFront(archived{k, s})
	if a.order.Len() > maxSealed {
		last := a.order.Back()
		a.order.Remove(last)
		delete(a.byKey, last.Value.(archived).key)
	}
}
