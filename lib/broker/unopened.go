package broker

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
)

// maxHandOvers bounds the topics that are looked at at once for segments that
// were never opened.
const maxHandOvers = 16

// handOverUnopened hands over, when no more segments are opened, those that are
// ours by the layouts of the topics known here but were never opened. What it
// returns is closed when that is done, or ctx has ended.
func (ss *segments) handOverUnopened(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group errgroup.Group
		group.SetLimit(maxHandOvers)
		for _, t := range ss.b.topics.all() {
			group.Go(func() error {
				ss.handOverTopic(ctx, t)
				return nil
			})
		}
		_ = group.Wait() // nothing fails it
	}()
	return done
}

// handOverTopic hands over the topic's segments that were never opened.
func (ss *segments) handOverTopic(ctx context.Context, t *topic) {
	lay, err := t.refresh(ctx)
	if err != nil {
		ss.b.log.Debug("cannot tell which segments of a topic were never opened", "topic", t.Topic.String(), "err", err)
	}
	for _, s := range lay.Segments {
		if s.Owner.Broker == ss.self && !ss.hadOpen(segmentKey{t.ID, s.ID}) {
			ss.sealUnopened(ctx, t, s)
		}
	}
}

// hadOpen reports whether the segment is looked after here, or was lately: its
// followers may hold messages that are not in the store.
func (ss *segments) hadOpen(k segmentKey) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byKey[k] != nil || ss.past[k] != nil
}

// sealUnopened seals a segment that is ours by the layout but was never opened,
// and has it replaced, so that it need not wait for this broker to be gone.
func (ss *segments) sealUnopened(ctx context.Context, t *topic, s layout.Segment) {
	err := ss.b.tasks.Once(ctx, fmt.Sprintf("seal %s/%d", t.ID, s.ID), reportFor, func(ctx context.Context) error {
		_, err := seglog.SealStore(ctx, t.st, t.Ident(s.ID, s.Range), seals(s), seglog.SealOptions{Broker: ss.self})
		if err != nil {
			return err
		}
		return ss.b.report(ctx, t, s.ID, notice{cause: layout.Drain, by: ss.self})
	})
	if err != nil {
		ss.b.log.Debug("a segment that was never opened is not handed over yet", "topic", t.Topic.String(), "segment", s.ID, "err", err)
	}
}
