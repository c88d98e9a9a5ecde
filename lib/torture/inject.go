package torture

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/wire"
)

// injector does to a cluster what a plan says.
type injector struct {
	cluster  *cluster
	observer *client.Client // finds out who plays a role
	topics   []smq.Topic
	// begun is told of each fault when it takes effect, with the names of the
	// brokers that may lose what they hold, and returns what to call when it
	// is over.
	begun func(s step, hit []*daemon) (over func())
	// hung is told of each process that did not end when it was told to.
	hung func(who, how string)
}

// run does one fault and returns when it is over, sooner when ctx ends. It does
// nothing when nobody plays the role who is not hit already.
func (in *injector) run(ctx context.Context, s step) {
	hit, release := in.choose(ctx, s)
	if len(hit) == 0 && (s.deed.toProcesses() || s.role != theStore) {
		return
	}
	defer release()
	over := in.begun(s, hit)
	defer over()
	switch s.deed {
	case crash:
		in.crash(ctx, s, hit)
	case freeze:
		in.freeze(ctx, s, hit)
	case drain:
		in.drain(ctx, s, hit)
	case starve:
		in.starve(ctx, s, hit)
	case strand:
		in.strand(ctx, s, hit)
	default:
		in.disturb(ctx, s, hit)
	}
}

// wait waits for the end of a fault.
func wait(ctx context.Context, d time.Duration) {
	_ = pause(ctx, d) // that it ends early is the end too
}

func (in *injector) crash(ctx context.Context, s step, hit []*daemon) {
	for _, d := range hit {
		d.kill()
	}
	wait(ctx, s.lasts)
	for _, d := range hit {
		in.cluster.restart(d)
	}
}

// freeze has processes stand still. One that ends meanwhile does not matter.
func (in *injector) freeze(ctx context.Context, s step, hit []*daemon) {
	var frozen []*process
	for _, d := range hit {
		if p := d.running(); p != nil && freezeProcess(p) == nil {
			frozen = append(frozen, p)
		}
	}
	wait(ctx, s.lasts)
	for _, p := range frozen {
		_ = thawProcess(p) // it fails when the process has ended
	}
}

func (in *injector) drain(ctx context.Context, s step, hit []*daemon) {
	for _, d := range hit {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
		if err := d.stop(stopping); errors.Is(err, errHung) {
			in.hung(d.name, err.Error())
		}
		cancel()
	}
	wait(ctx, s.lasts)
	for _, d := range hit {
		in.cluster.restart(d)
	}
}

func (in *injector) starve(ctx context.Context, s step, hit []*daemon) {
	feed := starveAll(hit)
	defer feed()
	wait(ctx, s.lasts)
}

// strand keeps brokers from the store and, if the scope is the brokers, from
// the others, so that they hold what nobody else does; then it kills them.
func (in *injector) strand(ctx context.Context, s step, hit []*daemon) {
	mend := in.keepFromStore(hit)
	if s.scope == fromBrokers {
		lift := in.cluster.network.Impose(wire.Rule{From: names(hit), To: names(in.cluster.brokers), Both: true, Cut: true})
		defer lift()
	}
	wait(ctx, s.lasts)
	for _, d := range hit {
		d.kill()
	}
	mend()
	wait(ctx, s.lasts)
	for _, d := range hit {
		in.cluster.restart(d)
	}
}

// keepFromStore keeps some brokers from the store, by whichever way leads
// there.
func (in *injector) keepFromStore(hit []*daemon) (mend func()) {
	if slices.Contains(in.cluster.store.have, storeNetwork) {
		return in.cluster.network.Impose(wire.Rule{From: names(hit), To: wire.Parts{storePart}, Both: true, Cut: true})
	}
	return starveAll(hit)
}

// starveAll starves those that are ready: one that begins may well end for want
// of files. One that ends meanwhile does not matter.
func starveAll(hit []*daemon) (feedAll func()) {
	var feeds []func()
	for _, d := range hit {
		if p := d.running(); p != nil && d.ready() {
			if feed, err := starveProcess(p); err == nil {
				feeds = append(feeds, feed)
			}
		}
	}
	return func() {
		for _, feed := range feeds {
			feed()
		}
	}
}

// disturb breaks the network.
func (in *injector) disturb(ctx context.Context, s step, hit []*daemon) {
	lift := in.cluster.network.Impose(in.rule(s, hit))
	defer lift()
	wait(ctx, s.lasts)
}

// rule is what a fault does to the network.
func (in *injector) rule(s step, hit []*daemon) wire.Rule {
	parts := wire.Parts(names(hit))
	if s.role == theStore {
		parts = wire.Parts{storePart}
	}
	others := in.others(s.scope)
	switch s.deed {
	case cutIn:
		return wire.Rule{From: others, To: parts, Cut: true}
	case cutOut:
		return wire.Rule{From: parts, To: others, Cut: true}
	case breakUp:
		return wire.Rule{From: parts, To: others, Reset: true}
	case slowDown:
		return wire.Rule{From: parts, To: others, Both: true, Delay: s.delay, Rate: s.rate}
	}
	return wire.Rule{From: parts, To: others, Both: true, Cut: true}
}

// others are those whom a fault cuts off; nil: all.
func (in *injector) others(s scope) wire.Parts {
	switch s {
	case fromMasters:
		return names(in.cluster.masters)
	case fromBrokers:
		return names(in.cluster.brokers)
	case fromClients:
		return in.cluster.clientParts()
	case fromStore:
		return wire.Parts{storePart}
	}
	return nil
}
