package seaweed

import (
	"container/list"
	"sync"
	"time"
)

// memory is a bounded map that forgets: what was used least recently when it is
// full, and everything some time after it was put in.
type memory[K comparable, V any] struct {
	max int           // total cost
	ttl time.Duration // from put
	now func() time.Time

	mu    sync.Mutex
	items map[K]*list.Element // of *remembered[K, V]
	order list.List           // most recently used first
	cost  int
}

type remembered[K comparable, V any] struct {
	key   K
	value V
	cost  int
	until time.Time
}

func newMemory[K comparable, V any](maxCost int, ttl time.Duration) *memory[K, V] {
	return &memory[K, V]{max: maxCost, ttl: ttl, now: time.Now, items: map[K]*list.Element{}}
}

func (m *memory[K, V]) get(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.items[key]
	if !ok {
		return value, false
	}
	r := e.Value.(*remembered[K, V])
	if m.now().After(r.until) {
		m.drop(e)
		return value, false
	}
	m.order.MoveToFront(e)
	return r.value, true
}

func (m *memory[K, V]) put(key K, value V, cost int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.items[key]; ok {
		m.drop(e)
	}
	if cost > m.max {
		return
	}
	m.items[key] = m.order.PushFront(&remembered[K, V]{key, value, cost, m.now().Add(m.ttl)})
	m.cost += cost
	for m.cost > m.max {
		m.drop(m.order.Back())
	}
}

// forget drops the keys for which match says so.
func (m *memory[K, V]) forget(match func(K) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, e := range m.items {
		if match(key) {
			m.drop(e)
		}
	}
}

func (m *memory[K, V]) remove(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.items[key]; ok {
		m.drop(e)
	}
}

func (m *memory[K, V]) drop(e *list.Element) {
	r := m.order.Remove(e).(*remembered[K, V])
	delete(m.items, r.key)
	m.cost -= r.cost
}
