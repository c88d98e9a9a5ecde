package seglog

import (
	"container/list"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/seaweedmq/smq/lib/smq"
)

// chunk is a stored chunk in memory.
type chunk struct {
	footer footer
	size   int64      // of the file
	blocks [][][]byte // the batches of each of the footer's blocks; nil when only the footer is here
}

// chunk is the flush as readers see it once it is stored.
func (f *flush) chunk() *chunk {
	return &chunk{footer: f.footer, size: f.size, blocks: f.blocks}
}

// weight estimates the memory that the chunk takes, in bytes.
func (c *chunk) weight() int64 {
	const parsed = 4 // a parsed footer is larger than its message
	w := int64(c.footer.size) * parsed
	if c.blocks != nil {
		w += c.size
	}
	return w
}

// chunkKey names a chunk within a store.
type chunkKey struct {
	topic   smq.TopicID
	segment smq.SegmentID
	n       uint64
}

// chunkCache keeps the chunks used last, up to a weight. The newest chunks get
// in as they are stored, so readers at the tail need no store.
type chunkCache struct {
	loads   singleflight.Group
	metrics *metrics

	mu    sync.Mutex
	limit int64
	used  int64
	byKey map[chunkKey]*list.Element
	order *list.List // of *cached, the last used in front
}

type cached struct {
	key   chunkKey
	chunk *chunk
}

func newChunkCache(limit int64, m *metrics) *chunkCache {
	return &chunkCache{metrics: m, limit: limit, byKey: make(map[chunkKey]*list.Element), order: list.New()}
}

func (id Ident) key(n uint64) chunkKey { return chunkKey{id.TopicID, id.Segment, n} }

// get returns the chunk, or nil.
func (c *chunkCache) get(k chunkKey) *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).chunk
}

// content returns the chunk if its batches are here, or nil.
func (c *chunkCache) content(k chunkKey) *chunk {
	if ch := c.get(k); ch != nil && ch.blocks != nil {
		c.metrics.cacheHits.Inc()
		return ch
	}
	c.metrics.cacheMisses.Inc()
	return nil
}

// put keeps the chunk of the segment, in place of one with less to it.
func (c *chunkCache) put(id Ident, ch *chunk) {
	k := id.key(ch.footer.Chunk)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[k]; e != nil {
		c.order.MoveToFront(e)
		old := e.Value.(*cached)
		if old.chunk.blocks == nil {
			c.used += ch.weight() - old.chunk.weight()
			old.chunk = ch
		}
	} else {
		c.byKey[k] = c.order.PushFront(&cached{k, ch})
		c.used += ch.weight()
	}
	for c.used > c.limit && c.order.Len() > 1 {
		e := c.order.Back()
		old := e.Value.(*cached)
		c.order.Remove(e)
		delete(c.byKey, old.key)
		c.used -= old.chunk.weight()
	}
}
