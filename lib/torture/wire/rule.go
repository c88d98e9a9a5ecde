package wire

import (
	"context"
	"slices"
	"time"
)

// Parts are names of parts of the system; nil stands for all of them.
type Parts []string

func (p Parts) has(name string) bool { return p == nil || slices.Contains(p, name) }

// Rule changes how bytes travel from some parts to others.
type Rule struct {
	From, To Parts
	Both     bool // it holds for the way back too

	// Cut lets nothing through. What is sent meanwhile waits, and so do new
	// connections.
	Cut bool
	// Reset breaks connections between the parts, whoever opened them, and
	// refuses new ones. It knows no direction.
	Reset bool
	// Delay is how long bytes are under way, in addition to what they take
	// anyway.
	Delay time.Duration
	// Rate, in bytes a second, bounds each connection; 0: no bound.
	Rate int64
}

// covers reports whether the rule holds for bytes that travel so. Nothing comes
// between a part and itself.
func (r Rule) covers(from, to string) bool {
	return from != to && (r.From.has(from) && r.To.has(to) || r.Both && r.From.has(to) && r.To.has(from))
}

// resets reports whether the rule breaks connections between two parts.
func (r Rule) resets(a, b string) bool {
	return r.Reset && (r.covers(a, b) || r.covers(b, a))
}

// effect is what all rules together do to bytes that travel one way.
type effect struct {
	cut   bool
	delay time.Duration
	rate  int64
}

func combine(rules []*Rule, from, to string) effect {
	var e effect
	for _, r := range rules {
		if !r.covers(from, to) {
			continue
		}
		e.cut = e.cut || r.Cut
		e.delay += r.Delay
		if r.Rate > 0 && (e.rate == 0 || r.Rate < e.rate) {
			e.rate = r.Rate
		}
	}
	return e
}

// Impose puts a rule into force. Calling lift ends it; it may be called again.
func (n *Network) Impose(r Rule) (lift func()) {
	n.mu.Lock()
	n.rules = append(slices.Clip(n.rules), &r)
	n.announce()
	var broken []*connection
	for c := range n.connections {
		if r.resets(c.from, c.to) {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		c.abort()
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.rules = slices.DeleteFunc(slices.Clone(n.rules), func(other *Rule) bool { return other == &r })
		n.announce()
	}
}

// announce wakes whoever waits for the rules to change. The caller holds mu.
func (n *Network) announce() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// effect is what the rules in force do to bytes that travel so; changed is
// closed when they change.
func (n *Network) effect(from, to string) (e effect, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return combine(n.rules, from, to), n.changed
}

// awaitPassage waits until nothing cuts bytes that travel so.
func (n *Network) awaitPassage(ctx context.Context, from, to string) error {
	for {
		e, changed := n.effect(from, to)
		if !e.cut {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refuses reports whether connections between two parts are refused.
func (n *Network) refuses(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.rules, func(r *Rule) bool { return r.resets(a, b) })
}
