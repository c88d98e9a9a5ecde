package leader

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// lookEvery is the time between two looks at all topics' loads.
	lookEvery = time.Second
	// maxPlanned is how many planned changes are carried out at a time.
	maxPlanned = 16
)

// scaling is what the looks at all topics share. It belongs to scaleLoop.
type scaling struct {
	expected layout.Expected
	balance  layout.Balance
	slots    chan struct{} // one for each change under way
}

// scaleLoop splits, merges and moves segments by their loads. It also loads the
// topics of which brokers report segments, so that a new leader knows those in
// use before its sweep comes to them.
func (l *Leader) scaleLoop(ctx context.Context) {
	s := &scaling{slots: make(chan struct{}, maxPlanned)}
	for background.Wait(ctx, lookEvery) == nil {
		now := time.Now()
		l.meet(ctx, l.loads.unknown(now, l.isKnown))
		if l.leading() == nil {
			l.scale(s, now)
		}
	}
}

func (l *Leader) isKnown(name smq.Topic, id smq.TopicID) bool {
	t := l.known(name)
	return t != nil && t.ID == id
}

// meet loads topics.
func (l *Leader) meet(ctx context.Context, names []smq.Topic) {
	_ = each(ctx, names, func(ctx context.Context, _ int, name smq.Topic) error {
		if _, err := l.topic(ctx, name, ""); err != nil {
			l.Logger.Debug("a topic that a broker has segments of does not load", "topic", name.String(), "err", err)
		}
		return nil
	})
}

// scale looks at all topics once and begins what is to be done. What finds no
// slot is decided again by a later look.
func (l *Leader) scale(s *scaling, now time.Time) {
	s.expected.Update(l.view.all(), now)
	fresh := l.loads.fresh(now)
	topics := l.snapshot()
	for _, t := range topics {
		for _, d := range l.look(s, t, fresh, now) {
			l.begin(s, t, d)
		}
	}
	l.replenish(s, topics, now)
	moves, balance := layout.Rebalance(&s.expected, l.candidates(topics, now), s.balance, now)
	s.balance = balance
	for _, m := range moves {
		i := slices.IndexFunc(topics, func(t *topic) bool { return t.ID == m.Topic })
		l.begin(s, topics[i], m.Decision())
	}
}

// replenish gives followers to segments in use that lack some, as when a broker
// has joined. Others do not need them before they are used.
func (l *Leader) replenish(s *scaling, topics []*topic, now time.Time) {
	brokers := l.view.eligible()
	for _, t := range topics {
		for _, d := range layout.Replenish(t.layout(), t.config().ReplicasWanted(l.Replicas), brokers) {
			segment := d.Segments[0]
			if _, movable := t.traffic.movable(segment, l.policy(t).CoolDown, now); movable && !t.isHeld(segment.ID) {
				l.begin(s, t, d)
			}
		}
	}
}

// look lets the planner look at one topic.
func (l *Leader) look(s *scaling, t *topic, fresh map[smq.BrokerID]bool, now time.Time) []layout.Decision {
	lay, policy := t.layout(), l.policy(t)
	tr := t.traffic
	tr.mu.Lock()
	tr.settle(lay, fresh)
	in := layout.Input{
		Layout: lay, Loads: tr.loads, Policy: policy, Memory: tr.memory, Now: now,
		Expected: &s.expected, Busy: t.isHeld,
	}
	decisions, notes, memory := layout.Plan(in)
	news := !slices.Equal(tr.notes, notes)
	tr.memory, tr.notes = memory, notes
	tr.mu.Unlock()
	if news {
		l.tellNotes(t, notes)
		l.hub.touch(tr)
	}
	return decisions
}

func (l *Leader) tellNotes(t *topic, notes []layout.Note) {
	for _, n := range notes {
		l.Logger.Debug("a segment is above its threshold and stays", "topic", t.Topic.String(), "segment", n.Segment, "why", n.Text)
	}
}

// candidates are the segments that may be moved.
func (l *Leader) candidates(topics []*topic, now time.Time) iter.Seq[layout.Candidate] {
	return func(yield func(layout.Candidate) bool) {
		for _, t := range topics {
			policy := l.policy(t)
			if policy.Mode != layout.Auto {
				continue
			}
			for _, s := range t.layout().Segments {
				load, movable := t.traffic.movable(s, policy.CoolDown, now)
				if movable && !t.isHeld(s.ID) && !yield(layout.Candidate{Topic: t.ID, Segment: s, Load: load}) {
					return
				}
			}
		}
	}
}

// movable reports whether the segment's load is known and its partitions have
// not been changed within the cool-down.
func (tr *traffic) movable(s layout.Segment, coolDown time.Duration, now time.Time) (layout.Load, bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	load := tr.loads[s.ID]
	if !load.Known || load.IsZero() {
		return load.Load, false
	}
	return load.Load, now.Sub(tr.memory.Changed(s.ID)) >= coolDown
}

// begin carries a decision out in the background, if a slot is free.
func (l *Leader) begin(s *scaling, t *topic, d layout.Decision) {
	select {
	case s.slots <- struct{}{}:
	default:
		return
	}
	p := l.planOf(t, d)
	l.Logger.Info("changing a layout by its load", "topic", t.Topic.String(), "cause", p.cause, "segments", p.ids(), "reason", p.reason)
	l.tasks.Go(func(ctx context.Context) {
		defer func() { <-s.slots }()
		_ = l.carryOut(ctx, t, p) // it tells how it went
	})
}

// planOf is the planner's decision as a plan.
func (l *Leader) planOf(t *topic, d layout.Decision) plan {
	p := plan{cause: d.Cause, reason: d.Reason, segments: d.Segments}
	for i, r := range d.Ranges {
		p.successors = append(p.successors, successor{r, wish{prefer: d.Owners[i]}})
	}
	return p
}
