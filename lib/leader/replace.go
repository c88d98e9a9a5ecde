package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// replacement says how a live segment gets a successor.
type replacement struct {
	segment layout.Segment
	cause   layout.Cause
	reason  string // in words; may be empty
	owner   wish
	// lost says that the segment's owner holds nothing of it, and never will, as if
	// it were dead.
	lost bool
}

// replace seals the segment in the store, unless it is sealed, and gives its
// range to a successor. Requests for one segment at the same time share one
// replacement, whatever their causes; while the segment is being split, merged
// or moved they wait for that.
func (l *Leader) replace(ctx context.Context, t *topic, r replacement) error {
	return l.once(ctx, fmt.Sprintf("replace %s/%d", t.ID, r.segment.ID), func(ctx context.Context) error {
		release, err := t.await(ctx, r.segment.ID)
		if err != nil {
			return err
		}
		defer release()
		if _, live := t.layout().Get(r.segment.ID); !live {
			return nil // what was waited for has replaced it
		}
		begin, loads := time.Now(), t.traffic.briefs(0, r.segment)
		sealed, err := l.seal(ctx, t.config(), r.segment, r.lost)
		if err != nil {
			return err
		}
		return l.submit(ctx, t, r.plain(sealed, loads, begin))
	})
}

// replaceAll makes the replacements side by side. It tries all of them and
// returns the first error.
func (l *Leader) replaceAll(ctx context.Context, t *topic, rs []replacement) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, r := range rs {
		group.Go(func() error { return l.replace(ctx, t, r) })
	}
	return group.Wait()
}

// seal seals the segment in the store. Its owner, should it live, can append
// nothing from then on; ownerLost: it holds nothing that could be waited for.
func (l *Leader) seal(ctx context.Context, c catalog.Config, s layout.Segment, ownerLost bool) (layout.Sealed, error) {
	if !s.Assigned() {
		return layout.EmptyOf(s), nil
	}
	if len(s.Followers) == 0 {
		return l.sealFromStore(ctx, c, s, seglog.SealOptions{Broker: l.Self})
	}
	return l.sealReplicated(ctx, c, s, ownerLost)
}

// sealFromStore seals with nothing but what the store holds.
func (l *Leader) sealFromStore(ctx context.Context, c catalog.Config, s layout.Segment, o seglog.SealOptions) (layout.Sealed, error) {
	seal, err := seglog.SealStore(ctx, l.Store, c.Ident(s.ID, s.Range), catalog.Seals(s.Predecessors), o)
	if err != nil {
		return layout.Sealed{}, err
	}
	return catalog.Sealed(seal), nil
}

// isSealed asks the store.
func (l *Leader) isSealed(ctx context.Context, c catalog.Config, s layout.Segment) (bool, error) {
	if !s.Assigned() {
		return false, nil
	}
	_, sealed, err := seglog.FindSeal(ctx, l.Store, c.Ident(s.ID, s.Range))
	return sealed, err
}

// needed is the replacement that lets partitions of the segment be written to:
// of one without owner, or whose owner is dead. It reports false when the
// segment is as it should be.
func (l *Leader) needed(s layout.Segment) (replacement, bool) {
	switch {
	case !s.Assigned():
		return replacement{segment: s, cause: layout.Assign}, true
	case !l.view.alive(s.Owner.Broker):
		return replacement{segment: s, cause: layout.Failover, reason: died(s.Owner), owner: wish{avoid: s.Owner.Broker}}, true
	}
	return replacement{}, false
}

// replaceSealed replaces the segment if the store says that it is sealed. It is
// what a client's word that a segment is sealed leads to.
func (l *Leader) replaceSealed(ctx context.Context, t *topic, s layout.Segment) error {
	return l.once(ctx, fmt.Sprintf("look %s/%d", t.ID, s.ID), func(ctx context.Context) error {
		sealed, err := l.isSealed(ctx, t.config(), s)
		if err != nil || !sealed {
			return err
		}
		return l.replace(ctx, t, l.successorOf(s))
	})
}

// successorOf is the replacement of a segment that somebody has met sealed: its
// owner goes on if it can. It may have sealed the segment because of a follower,
// and not have said so yet.
func (l *Leader) successorOf(s layout.Segment) replacement {
	owner, ok := l.view.get(s.Owner.Broker)
	switch {
	case ok && owner.Takes():
		cause, reason := l.view.followersOf(s)
		return replacement{segment: s, cause: cause, reason: reason, owner: wish{prefer: owner.ID}}
	case ok && !owner.Dead:
		return replacement{segment: s, cause: layout.Drain, reason: leaves(s.Owner), owner: wish{avoid: owner.ID}}
	}
	return replacement{segment: s, cause: layout.Failover, reason: died(s.Owner), owner: wish{avoid: s.Owner.Broker}}
}

// followersOf says why the owner of a segment may have sealed it: because a
// follower has died, or else because one is leaving, or else because it was full.
func (v *view) followersOf(s layout.Segment) (cause layout.Cause, reason string) {
	cause = layout.Roll
	for _, f := range s.Followers {
		b, ok := v.get(f.Broker)
		switch {
		case !ok || b.Dead:
			return layout.Failover, died(f)
		case b.Draining:
			cause, reason = layout.Drain, leaves(f)
		}
	}
	return cause, reason
}

func died(m layout.Member) string { return fmt.Sprintf("broker %s at %s is dead", m.Broker, m.Address) }

func leaves(m layout.Member) string {
	return fmt.Sprintf("broker %s at %s is leaving", m.Broker, m.Address)
}

// retire seals every live segment of a topic that is deleted, so that their
// owners stop. Owners that answer seal by themselves, which saves them from
// finding out.
func (l *Leader) retire(ctx context.Context, c catalog.Config) error {
	lay, found, err := catalog.Latest(ctx, l.Store, c.Topic, c.ID, 0)
	if err != nil || !found {
		return err
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, s := range lay.Segments {
		if s.Assigned() {
			group.Go(func() error { return l.retireSegment(ctx, c, s) })
		}
	}
	return group.Wait()
}

func (l *Leader) retireSegment(ctx context.Context, c catalog.Config, s layout.Segment) error {
	if l.view.alive(s.Owner.Broker) {
		err := l.askToSeal(ctx, c, s)
		if err == nil {
			return nil
		}
		l.Logger.Debug("an owner does not seal, the leader does", "topic", c.Topic.String(), "segment", s.ID, "broker", s.Owner.Broker, "err", err)
	}
	_, err := l.sealFromStore(ctx, c, s, seglog.SealOptions{Broker: l.Self}) // what replicas hold goes with the topic
	if errors.Is(err, smq.ErrNotFound) || errors.Is(err, smq.ErrCorrupt) {
		// An earlier deletion got further: parts of the topic are gone.
		return nil
	}
	return err
}
