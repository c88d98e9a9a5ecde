package broker

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/background"
)

// When the broker looks whether its idle segments have been sealed by others.
const (
	// probeEvery is for what nothing else tells.
	probeEvery = 30 * time.Second
	// awayEvery is for when the broker is out of touch with the masters, so that
	// nobody tells it anything.
	awayEvery = time.Second
	// maxProbes bounds the looks at once.
	maxProbes = 16
)

// probeAfter are the times after the broker was out of touch with the masters
// at which it looks: the leader may have taken it for dead meanwhile, or be about
// to.
var probeAfter = []time.Duration{0, time.Second, 3 * time.Second}

// probe looks at idle segments from time to time, until ctx ends. An owner that
// stores something finds out by that when it is fenced; one that has nothing to
// store would keep its readers waiting at the end of a segment that is sealed.
func (b *Broker) probe(ctx context.Context) {
	var due []time.Duration
	timer := time.NewTimer(probeEvery)
	defer timer.Stop()
	for {
		select {
		case <-b.member.rejoined:
			due = probeAfter
		case <-timer.C:
			b.probeAll(ctx)
		case <-ctx.Done():
			return
		}
		wait := probeEvery
		if len(due) > 0 {
			wait, due = due[0], due[1:]
		}
		timer.Reset(wait)
	}
}

// probeAway looks at idle segments while the lease has run out, until ctx ends:
// by then the leader has taken them over, if there is another broker.
func (b *Broker) probeAway(ctx context.Context) {
	for background.Wait(ctx, awayEvery) == nil {
		if !b.member.leased() {
			b.probeAll(ctx)
		}
	}
}

// probeLater looks at one segment in the background.
func (b *Broker) probeLater(s *segment) {
	b.tasks.Go(func(ctx context.Context) { b.probeOne(ctx, s) })
}

func (b *Broker) probeAll(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(maxProbes)
	for _, s := range b.segments().snapshot() {
		group.Go(func() error {
			b.probeOne(ctx, s)
			return nil
		})
	}
	_ = group.Wait() // nothing fails it
}

func (b *Broker) probeOne(ctx context.Context, s *segment) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.log.Probe(ctx); err != nil {
		b.log.Debug("cannot tell whether a segment is sealed", "err", err)
	}
}
