package broker

import (
	"context"
	"errors"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/smq"
)

// Times of the sweep.
const (
	// sweepEvery is how often fenced segments are looked after.
	sweepEvery = time.Second
	// sweepAll is how many sweeps there are to one of everything that is
	// followed. An owner tells when it is done with a segment, unless it could
	// not seal it itself.
	sweepAll = 30
	// goneFor is how long a topic has to be looked for in vain before what is
	// followed of it is dropped, which may be all that there is: of several filers
	// one that has just joined does not show what is there for some seconds.
	goneFor = 8 * time.Second
)

// sweep drops what needs no follower any more, until ctx ends or nothing is left
// to follow: a follower that the leader has fenced is told nothing after that.
func (fs *followers) sweep(ctx context.Context) {
	for n := 1; background.Wait(ctx, sweepEvery) == nil; n++ {
		for t, fls := range fs.byTopic(n%sweepAll == 0) {
			fs.sweepTopic(ctx, t, fls)
		}
		select {
		case <-fs.empty:
			return
		default:
		}
	}
}

// byTopic lists the fenced segments that are followed, or all of them.
func (fs *followers) byTopic(all bool) map[*topic][]*following {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	byTopic := make(map[*topic][]*following)
	for _, fl := range fs.byKey {
		select {
		case <-fl.ready:
			if fl.err == nil && (all || fl.fenced) {
				byTopic[fl.topic] = append(byTopic[fl.topic], fl)
			}
		default:
		}
	}
	return byTopic
}

func (fs *followers) sweepTopic(ctx context.Context, t *topic, fls []*following) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	over := t.over(ctx)
	for _, fl := range fls {
		if over(fl.key.id) {
			fs.drop(fl)
		}
	}
}

// isGone reports whether the topic, or this incarnation of it, has not been found
// for so long that it must have been deleted.
func (t *topic) isGone(ctx context.Context) bool {
	c, err := catalog.ReadConfig(ctx, t.st, t.Topic)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil && c.ID == t.ID:
		t.missing = time.Time{}
	case err != nil && !errors.Is(err, smq.ErrNotFound): // nobody knows
	case t.missing.IsZero():
		t.missing = time.Now()
	default:
		return time.Since(t.missing) >= goneFor
	}
	return false
}

// over looks which segments need no follower any more: those whose seal is
// stored, which a layout without them proves, and all when the topic is gone.
// Only they may be forgotten, as an unknown segment without a seal would be
// followed anew.
func (t *topic) over(ctx context.Context) func(smq.SegmentID) bool {
	if t.isGone(ctx) {
		return func(smq.SegmentID) bool { return true }
	}
	lay, _ := t.refresh(ctx) // what cannot be read now is looked at again
	return func(id smq.SegmentID) bool { return isReplaced(lay, id) }
}
