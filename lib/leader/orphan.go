package leader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// orphan is a segment whose owner is dead.
type orphan struct {
	topic *topic
	replacement
	rate float64
}

// reap replaces the segments whose owners are dead, of the topics known, the
// busiest first.
func (l *Leader) reap(ctx context.Context) error {
	orphans := l.orphans()
	defer func() { l.Metrics.orphans.Set(float64(len(l.orphans()))) }()
	l.Metrics.orphans.Set(float64(len(orphans)))
	if len(orphans) == 0 || !l.view.takes() || l.leading() != nil {
		return nil
	}
	start := time.Now()
	failed := make([]error, len(orphans))
	_ = each(ctx, orphans, func(ctx context.Context, i int, o orphan) error {
		failed[i] = l.replace(ctx, o.topic, o.replacement)
		o.topic.attempted(o.segment.ID, failed[i])
		l.Metrics.failoverSeconds.Observe(time.Since(start).Seconds())
		return nil
	})
	err := errors.Join(failed...)
	if err != nil {
		l.Logger.Warn("segments of dead brokers are not all failed over, trying again", "segments", len(orphans), "err", firstOf(failed))
	}
	return err
}

func firstOf(errs []error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	return errs[max(i, 0)]
}

func (l *Leader) orphans() []orphan {
	var all []orphan
	for _, t := range l.snapshot() {
		all = append(all, l.orphansOf(t)...)
	}
	slices.SortStableFunc(all, func(a, b orphan) int { return cmp.Compare(b.rate, a.rate) })
	return all
}

func (l *Leader) orphansOf(t *topic) []orphan {
	var all []orphan
	for _, s := range t.layout().Segments {
		if !s.Assigned() {
			continue
		}
		if r, needed := l.needed(s); needed {
			all = append(all, orphan{topic: t, replacement: r, rate: t.traffic.of(s.ID).Cost()})
		}
	}
	return all
}

// attempted keeps how the last attempt to replace an orphan ended.
func (t *topic) attempted(id smq.SegmentID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.stuck, id)
		return
	}
	if t.stuck == nil {
		t.stuck = make(map[smq.SegmentID]error)
	}
	t.stuck[id] = err
}

// whyStuck is why the last attempt to replace the first of the orphans failed that
// has failed; nil when none has.
func (t *topic) whyStuck(orphans []orphan) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range orphans {
		if err := t.stuck[o.segment.ID]; err != nil {
			return err
		}
	}
	return nil
}
