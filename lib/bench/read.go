package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Reading measures how fast a topic can be read.
type Reading struct {
	messages atomic.Int64
}

// Messages is how many have been read so far.
func (r *Reading) Messages() int64 { return r.messages.Load() }

// Read reads from a source, subscribed just before, until every partition that
// ends names has been read up to its end there, or until ctx ends.
func (r *Reading) Read(ctx context.Context, from Source, ends map[int32]int64) (Result, error) {
	began := time.Now()
	var out Result
	left := make(map[int32]int64, len(ends))
	for p, end := range ends {
		if end > 0 {
			left[p] = end
		}
	}
	for len(left) > 0 {
		fetch, err := from.Poll(ctx)
		if ctx.Err() != nil {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("read: %w", err)
		}
		before := out.Messages
		for rec, ok := fetch.Next(); ok; rec, ok = fetch.Next() {
			out.Messages++
			out.Bytes += int64(len(rec.Value))
		}
		if fetch.Err() != nil {
			return out, fmt.Errorf("read: %w", fetch.Err())
		}
		if end, ok := left[fetch.Partition]; ok && fetch.NextOffset >= end {
			delete(left, fetch.Partition)
		}
		r.messages.Add(out.Messages - before)
		out.Elapsed = time.Since(began)
	}
	return out, nil
}
