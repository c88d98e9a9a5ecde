package client

import "github.com/seaweedmq/smq/lib/smq"

// pageSize is how many partitions share a page of a table.
const pageSize = 1024

// table holds something for those partitions of a topic that are in use, so
// that a wide topic costs memory only where it is used.
type table[T any] struct {
	pages [][]*T
}

func newTable[T any](partitions int32) table[T] {
	return table[T]{pages: make([][]*T, (int(partitions)+pageSize-1)/pageSize)}
}

// get is what the table holds for a partition, or nil.
func (t *table[T]) get(p smq.Partition) *T {
	page := t.pages[p/pageSize]
	if page == nil {
		return nil
	}
	return page[p%pageSize]
}

func (t *table[T]) put(p smq.Partition, v *T) {
	page := &t.pages[p/pageSize]
	if *page == nil {
		*page = make([]*T, pageSize)
	}
	(*page)[p%pageSize] = v
}

// each calls f for what the table holds in [lo, hi), by partition.
func (t *table[T]) each(lo, hi smq.Partition, f func(*T)) {
	lo, hi = max(lo, 0), min(hi, smq.Partition(len(t.pages)*pageSize))
	for p := lo; p < hi; {
		page := t.pages[p/pageSize]
		end := min(hi, (p/pageSize+1)*pageSize)
		for ; page != nil && p < end; p++ {
			if v := page[p%pageSize]; v != nil {
				f(v)
			}
		}
		p = end
	}
}
