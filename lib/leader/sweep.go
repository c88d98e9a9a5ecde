package leader

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/smq"
)

// Waits before something that has failed is tried again.
const (
	reapAgain  = 500 * time.Millisecond
	sweepAgain = 10 * time.Second
)

// sweepPage is how many names the sweep lists at once.
const sweepPage = 1000

// sweepLoop sweeps at once, and then now and again. A topic that is damaged does
// not fail a sweep.
func (l *Leader) sweepLoop(ctx context.Context) {
	for {
		next := l.SweepEvery
		if err := l.sweep(ctx); err != nil {
			next = min(next, sweepAgain)
			l.Logger.Warn("the sweep over all topics failed, trying again", "in", next, "err", err)
		} else if !l.swept.Swap(true) {
			l.hub.publish(nil, nil)
		}
		for end := time.Now().Add(next); time.Now().Before(end); l.lookAtDamage(ctx) {
			if background.Wait(ctx, min(time.Until(end), sweepAgain)) != nil {
				return
			}
		}
	}
}

// sweep goes through all topics: it loads those that are not known, so that
// their segments are failed over too, and cleans up after deleted ones.
func (l *Leader) sweep(ctx context.Context) error {
	namespaces, err := catalog.Namespaces(ctx, l.Store, "")
	if err != nil {
		return err
	}
	var failed error
	for _, ns := range namespaces {
		after := ""
		for more := true; more; {
			var names []smq.Topic
			if names, more, err = catalog.Names(ctx, l.Store, ns, after, sweepPage); err != nil {
				l.Logger.Warn("the sweep leaves the rest of a namespace out", "namespace", ns, "err", err)
				failed = err
				break
			}
			if len(names) > 0 {
				after = names[len(names)-1].Name
			}
			// One topic's trouble must not keep the sweep from the others.
			_ = each(ctx, names, func(ctx context.Context, _ int, name smq.Topic) error {
				var known *damagedError
				if err := l.sweepTopic(ctx, name); err != nil && !errors.As(err, &known) {
					l.Logger.Warn("the sweep leaves a topic out", "topic", name.String(), "err", err)
					l.mu.Lock()
					failed = err
					l.mu.Unlock()
				}
				return nil
			})
			l.poke()
		}
	}
	return errors.Join(failed, ctx.Err())
}

// sweepTopic loads the topic unless it is known, and removes what earlier ones of
// its name left.
func (l *Leader) sweepTopic(ctx context.Context, name smq.Topic) error {
	t := l.known(name)
	deletions := l.deletions.Load()
	// In this order: see catalog.RemoveIncarnation.
	ids, err := catalog.Incarnations(ctx, l.Store, name)
	if err != nil {
		return err
	}
	e, err := catalog.Read(ctx, l.Store, name)
	if errors.Is(err, smq.ErrNotFound) || err == nil && e.Deleted {
		l.mu.Lock()
		l.mended(name)
		l.mu.Unlock()
	}
	if errors.Is(err, smq.ErrNotFound) {
		return nil
	}
	if err != nil {
		return l.judged(name, err)
	}
	ids = slices.DeleteFunc(ids, func(id smq.TopicID) bool { return id == e.ID && !e.Deleted })
	if slices.ContainsFunc(ids, func(id smq.TopicID) bool { return id != e.ID }) {
		// Of the past, e would make the topic that is there now one that had its time,
		// and its segments would be sealed.
		if err := e.Confirm(ctx, l.Store); err != nil {
			return err
		}
	}
	for _, id := range ids {
		old := e.Config
		old.ID = id
		l.Logger.Info("removing what a deleted topic has left", "topic", name.String(), "id", id)
		err := l.once(ctx, "clean up "+string(id), func(ctx context.Context) error { return l.cleanUp(ctx, old) })
		if err != nil {
			return err
		}
	}
	if e.Deleted || t != nil {
		return nil
	}
	t, err = l.readLayout(ctx, e.Config)
	if err == nil && !l.remember(t, deletions) {
		_, err = l.topic(ctx, name, "")
	}
	return err
}

// reapLoop fails over the segments of dead brokers, whenever brokers or topics
// have changed, and now and again until it succeeds: a change, as the end of a
// lease, may be what it takes.
func (l *Leader) reapLoop(ctx context.Context) {
	var again <-chan time.Time // nil: nothing is left to do
	for {
		select {
		case <-l.view.changed:
		case <-again:
		case <-ctx.Done():
			return
		}
		again = nil
		if l.reap(ctx) != nil {
			again = time.After(reapAgain)
		}
	}
}

// poke has reapLoop look.
func (l *Leader) poke() {
	select {
	case l.view.changed <- struct{}{}:
	default: // it is going to
	}
}
