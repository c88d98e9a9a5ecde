package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// unheardFor is how long a draining broker goes on asking a leader that does not
// answer to take what it never opened. When the broker is gone the next one does
// all the same.
const unheardFor = 3 * time.Second

// handOverRest has the leader give to others, when no more segments are opened
// here, all that is this broker's by the layouts and was never opened. What it
// returns is closed when nothing is left, or when it is given up.
func (b *Broker) handOverRest(ctx context.Context, own *segments) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		heard := time.Now()
		for wait := reportAgain; ; wait = min(2*wait, reportAtMost) {
			left, err := b.askToHandOver(ctx, own)
			switch {
			case err == nil && left == 0:
				return
			case err == nil:
				heard = time.Now()
				b.rest.Store(left)
			case errors.Is(err, smq.ErrInvalid), time.Since(heard) >= unheardFor: // the first: it is of an older version
				b.log.Warn("the leader does not take what was never opened here; it is failed over when this broker is gone", "err", err)
				return
			}
			if background.Wait(ctx, wait) != nil {
				return
			}
		}
	}()
	return done
}

// askToHandOver asks the leader once, and returns how many segments are left, at
// least.
func (b *Broker) askToHandOver(ctx context.Context, own *segments) (left int32, err error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	req := &smqpb.HandOverRequest{Broker: string(own.self)}
	for _, s := range own.all() {
		req.Open = append(req.Open, &smqpb.SegmentRef{TopicId: string(s.key.topic), Segment: uint64(s.key.id)})
	}
	err = b.cfg.Cluster.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		resp, err := l.HandOver(ctx, req)
		left = resp.GetSegmentsLeft()
		if resp.GetIncomplete() {
			left = max(left, 1)
		}
		return err
	})
	return left, err
}

// sealUnopened seals a segment that is ours by the layout but was never opened,
// and has it replaced, so that whoever asks for it need not wait for the leader.
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
