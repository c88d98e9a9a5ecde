package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// sealsWithin is how long a segment that is sealed waits for the others of its
// change.
const sealsWithin = time.Second

// plan is a change that nothing forces: a split, a merge or a move.
type plan struct {
	cause      layout.Cause
	reason     string
	segments   []layout.Segment // to go, by range
	successors []successor      // over the same partitions
	loads      []layout.SegmentLoad
}

// carryOut makes the change, or none: when it fails after segments have been
// sealed, each of them gets a plain successor. smq.ErrConflict: a segment is
// being changed, or has been replaced meanwhile.
//
// Only the partitions of the plan's segments wait, from the moment that their
// owners are asked to seal until the version is written.
func (l *Leader) carryOut(ctx context.Context, t *topic, p plan) error {
	return l.once(ctx, p.key(t), func(ctx context.Context) error {
		release, err := t.holdAll(p.segments)
		if err != nil {
			return err
		}
		defer func() {
			for _, r := range release {
				r()
			}
		}()
		if err := l.rehearse(t, p); err != nil {
			return err
		}
		p.loads = t.traffic.briefs(busiest, p.segments...)
		err = l.execute(ctx, t, p, release)
		l.Metrics.planned.WithLabelValues(string(p.cause), outcome(err)).Inc()
		if err != nil {
			l.Logger.Warn("a planned change of a layout is given up", "topic", t.Topic.String(), "cause", p.cause, "segments", p.ids(), "err", err)
		}
		return err
	})
}

func outcome(err error) string {
	if err == nil {
		return "made"
	}
	return "given up"
}

// key is the same for plans that do the same.
func (p plan) key(t *topic) string {
	ranges := make([]smq.Range, len(p.successors))
	for i, s := range p.successors {
		ranges[i] = s.Range
	}
	return fmt.Sprintf("%s %s/%v to %v of %v", p.cause, t.ID, p.ids(), ranges, p.successors[0].owner.prefer)
}

func (p plan) ids() []smq.SegmentID {
	ids := make([]smq.SegmentID, len(p.segments))
	for i, s := range p.segments {
		ids[i] = s.ID
	}
	return ids
}

// rehearse finds out, before anything is sealed, whether the layout can become
// what the plan wants.
func (l *Leader) rehearse(t *topic, p plan) error {
	if err := l.leading(); err != nil {
		return err
	}
	if !l.view.takes() {
		return fmt.Errorf("%w: no broker takes segments", smq.ErrUnavailable)
	}
	c := layout.Change{Cause: p.cause}
	for _, s := range p.segments {
		if s.Assigned() {
			c.Sealed = append(c.Sealed, layout.Sealed{Segment: s.ID, Range: s.Range, Hash: layout.Hash{1}})
		} else {
			c.Sealed = append(c.Sealed, layout.EmptyOf(s))
		}
	}
	for _, s := range p.successors {
		c.Successors = append(c.Successors, layout.Successor{Range: s.Range, Owner: layout.Member{Broker: l.Self, Address: "?"}})
	}
	_, err := t.layout().Next(c, l.stamp())
	return err
}

// sealing is how the sealing of one of a plan's segments went.
type sealing struct {
	i      int // of the segment in the plan
	sealed layout.Sealed
	err    error
}

// execute seals the plan's segments side by side, and replaces them when all are
// sealed. When one fails, or takes much longer than the first, the plan is given
// up. It returns when no sealing is under way any more.
func (l *Leader) execute(ctx context.Context, t *topic, p plan, release []func()) error {
	begin := time.Now()
	outcomes := make(chan sealing, len(p.segments))
	for i, s := range p.segments {
		go func() {
			sealed, err := l.sealPlanned(ctx, t, s)
			outcomes <- sealing{i, sealed, err}
		}()
	}
	var (
		ready  []sealing
		failed error
		late   <-chan time.Time
	)
	for left := len(p.segments); left > 0; {
		select {
		case <-late:
			failed = fmt.Errorf("segments %v: only %d were sealed within %v of the first: %w", p.ids(), len(ready), sealsWithin, smq.ErrUnavailable)
			late = nil
		case s := <-outcomes:
			left--
			if s.err != nil {
				failed = errors.Join(failed, s.err)
				release[s.i]()
				break
			}
			ready = append(ready, s)
			if late == nil && left > 0 {
				timer := time.NewTimer(sealsWithin)
				defer timer.Stop()
				late = timer.C
			}
		}
		if failed != nil {
			l.restore(ctx, t, p, begin, ready, release)
			ready, late = nil, nil
		}
	}
	if failed != nil {
		return failed
	}
	c := &change{cause: p.cause, reason: p.reason, successors: p.successors, loads: p.loads, stopped: begin}
	for _, s := range ready {
		c.sealed = append(c.sealed, s.sealed)
	}
	err := l.submit(ctx, t, c)
	if errors.Is(err, smq.ErrConflict) {
		l.restore(ctx, t, p, begin, ready, release)
	}
	return err
}

// restore gives plain successors to those segments of a plan that are sealed and
// are not to wait for the others.
func (l *Leader) restore(ctx context.Context, t *topic, p plan, begin time.Time, ready []sealing, release []func()) {
	for _, s := range ready {
		c := l.successorOf(p.segments[s.i]).plain(s.sealed, t.traffic.briefs(0, p.segments[s.i]), begin)
		if err := l.submit(ctx, t, c); err != nil {
			// Whoever meets the segment next asks for a successor again.
			l.Logger.Warn("a sealed segment has no successor yet", "topic", t.Topic.String(), "segment", s.sealed.Segment, "err", err)
		}
		release[s.i]()
	}
}

// sealPlanned has the owner seal the segment with all that it holds. One that
// does not is treated as in a failover.
func (l *Leader) sealPlanned(ctx context.Context, t *topic, s layout.Segment) (layout.Sealed, error) {
	if s.Assigned() && l.view.alive(s.Owner.Broker) {
		if err := l.askToSeal(ctx, t.config(), s); err != nil {
			l.Logger.Debug("an owner does not seal, the leader does", "topic", t.Topic.String(), "segment", s.ID, "broker", s.Owner.Broker, "err", err)
		}
	}
	return l.seal(ctx, t.config(), s, false)
}
