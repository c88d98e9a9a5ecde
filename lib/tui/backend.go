package tui

import (
	"context"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// Backend is the cluster as the console needs it. Its methods may be called at
// the same time.
type Backend interface {
	// Watch passes on a snapshot of what req names and then its changes, until
	// ctx ends or an error comes that another try would not mend, which it
	// returns. When it has to begin anew it says why to lost, and then passes on
	// a new snapshot, which begins with an update that says reset. It calls both
	// one after the other, and waits for them.
	Watch(ctx context.Context, req *smqpb.WatchRequest, update func(*smqpb.WatchUpdate), lost func(error)) error
	// Changes are the changes of a topic's layout after a version, oldest first,
	// as the store has them.
	Changes(ctx context.Context, topic string, after uint64) ([]*smqpb.LayoutEvent, error)
	// SplitSegment splits a live segment where its load halves and returns when
	// that is done.
	SplitSegment(ctx context.Context, topic string, segment uint64) error
	// MergeSegments makes one of neighbouring live segments and returns when
	// that is done.
	MergeSegments(ctx context.Context, topic string, segments []uint64) error
	// DrainBroker has a broker hand over its segments and leave; it returns when
	// that has begun.
	DrainBroker(ctx context.Context, broker string) error
}
