package torture

import (
	"context"
	"slices"
	"time"
)

// roleTimeout bounds the search for who plays a role; a fault that comes late
// for it hits somebody else.
const roleTimeout = 2 * time.Second

// choose finds those whom a fault hits. Whoever is killed, paused, drained or
// starved is claimed, so that faults of processes do not meet, until release is
// called. Of several who play a role, or when nobody is known to, the step's
// pick decides.
func (in *injector) choose(ctx context.Context, s step) (hit []*daemon, release func()) {
	candidates, all := in.candidates(ctx, s)
	if !s.deed.toProcesses() {
		if !all && len(candidates) > 0 {
			candidates = candidates[:1]
		}
		return candidates, func() {}
	}
	for _, d := range candidates {
		if d.claim() {
			hit = append(hit, d)
			if !all {
				break
			}
		}
	}
	return hit, func() {
		for _, d := range hit {
			d.release()
		}
	}
}

// claim takes a daemon that runs for a fault. It fails when another has it.
func (d *daemon) claim() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claimed || d.process == nil {
		return false
	}
	d.claimed = true
	return true
}

func (d *daemon) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claimed = false
}

// candidates are those who may be hit, the best first; all of them are when all
// is true.
func (in *injector) candidates(ctx context.Context, s step) (list []*daemon, all bool) {
	c := in.cluster
	switch s.role {
	case allBrokers:
		return c.brokers, true
	case allMasters:
		return c.masters, true
	case allProcesses:
		return c.daemons(), true
	case theStore:
		if c.store.server == nil {
			return nil, true
		}
		return []*daemon{c.store.server}, true
	case anyMaster, leadingMaster:
		return in.shuffled(s, c.masters, in.find(ctx, s)), false
	}
	return in.shuffled(s, c.brokers, in.find(ctx, s)), false
}

// shuffled are daemons in an order that the step's pick gives, but one first.
func (in *injector) shuffled(s step, daemons []*daemon, first *daemon) []*daemon {
	at := int(s.pick % uint64(len(daemons)))
	list := slices.Concat(daemons[at:], daemons[:at])
	if i := slices.Index(list, first); i > 0 {
		list = slices.Concat(list[i:i+1], list[:i], list[i+1:])
	}
	return list
}

// find is who plays the step's role; nil when anybody may, or nobody is known
// to.
func (in *injector) find(ctx context.Context, s step) *daemon {
	ctx, cancel := context.WithTimeout(ctx, roleTimeout)
	defer cancel()
	c := in.cluster
	switch s.role {
	case leadingBroker:
		if info, err := in.observer.Cluster(ctx); err == nil {
			return c.named(c.brokers, info.GetLeader().GetAddress())
		}
	case leadingMaster:
		if info, err := in.observer.Cluster(ctx); err == nil {
			return c.named(c.masters, info.GetLeadingMaster())
		}
	case owningBroker:
		topic := in.topics[s.pick%uint64(len(in.topics))]
		described, err := in.observer.DescribeTopic(ctx, topic)
		if segments := described.GetLayout().GetSegments(); err == nil && len(segments) > 0 {
			return c.named(c.brokers, segments[(s.pick>>8)%uint64(len(segments))].GetOwnerAddress())
		}
	}
	return nil
}
