package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/fault"
)

// leader replaces segments: those whose owner is dead or has lost them, and
// others because it wishes to. Several of them do not know of one another.
type leader struct {
	l      *life
	name   string
	store  *fault.Store
	dice   *Dice
	wishes int
}

func (l *life) newLeader(name string) *leader {
	return &leader{l: l, name: name, store: l.openStore(name), dice: NewDice(l.cfg.seed, "leader "+name), wishes: l.cfg.changes}
}

func (ld *leader) run(ctx context.Context) {
	for pause(ctx, 20*time.Millisecond+ld.dice.UpTo(300*time.Millisecond)) {
		live := ld.l.table.live()
		for _, p := range live {
			if s := ld.l.table.state(p); s.ended || s.owner.isDead() {
				ld.replace(ctx, []*place{p}, []smq.Range{p.id.Range})
			}
		}
		if ld.wishes > 0 && ld.dice.Percent(5) {
			ld.wishes--
			ld.wish(ctx, live)
		}
	}
}

// wish replaces a segment that could go on: by one like it, by two, or
// together with its neighbour by one.
func (ld *leader) wish(ctx context.Context, live []*place) {
	i := ld.dice.IntN(len(live))
	p, r := live[i], live[i].id.Range
	switch kind := ld.dice.IntN(3); {
	case kind == 1 && r.Len() > 1:
		at := r.Lo + 1 + smq.Partition(ld.dice.IntN(r.Len()-1))
		ld.replace(ctx, []*place{p}, []smq.Range{{Lo: r.Lo, Hi: at}, {Lo: at, Hi: r.Hi}})
	case kind == 2 && i+1 < len(live):
		ld.replace(ctx, []*place{p, live[i+1]}, []smq.Range{{Lo: r.Lo, Hi: live[i+1].id.Range.Hi}})
	default:
		ld.replace(ctx, []*place{p}, []smq.Range{r})
	}
}

// replace seals segments and puts others in their place. When it cannot seal
// one it leaves all as they are.
func (ld *leader) replace(ctx context.Context, old []*place, ranges []smq.Range) {
	for _, p := range old {
		if !ld.seal(ctx, p) {
			return
		}
	}
	added := ld.l.table.replace(old, ranges, ld.l.anyHost)
	switch {
	case len(added) > 1:
		ld.l.count("split")
	case len(added) == 1 && len(old) > 1:
		ld.l.count("merge")
	}
	for _, p := range added {
		ld.l.note("%s gives %v, %v, to %s", ld.name, p.id, p.id.Range, p.owner.name)
		ld.l.spawn(func() { p.owner.serve(p) })
	}
}

// seal has the owner seal its segment, or does so itself.
func (ld *leader) seal(ctx context.Context, p *place) bool {
	s := ld.l.table.state(p)
	if s.log != nil && !s.owner.isDead() && ld.dice.Percent(50) {
		short, cancel := context.WithTimeout(ctx, ld.dice.UpTo(time.Second))
		defer cancel()
		if seal, err := s.log.Seal(short); err == nil {
			ld.l.sealed(p, ld.name, seal)
			ld.l.count("seal: planned")
			return true
		}
	}
	long, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	seal, err := seglog.SealStore(long, ld.store, p.id, p.preds, seglog.SealOptions{Broker: smq.BrokerID(ld.name), Limits: ld.l.limits})
	if err != nil {
		ld.l.note("%s cannot seal %v: %v", ld.name, p.id, err)
		if errors.Is(err, smq.ErrCorrupt) {
			ld.l.fail(Violated("P8", "%s seals %v: %v", ld.name, p.id, err))
		}
		return false
	}
	ld.l.sealed(p, ld.name, seal)
	ld.l.count("seal: from the store")
	return true
}

// anyHost picks a living host.
func (l *life) anyHost() *host {
	l.mu.Lock()
	defer l.mu.Unlock()
	alive := slices.DeleteFunc(slices.Clone(l.hosts), (*host).isDead)
	return alive[l.dice.IntN(len(alive))]
}

// chaos kills hosts, whose places others take, and cuts hosts off from the
// store for a while.
func (l *life) chaos(ctx context.Context) {
	d := NewDice(l.cfg.seed, "chaos")
	for i := range l.cfg.crashes {
		at, name := d.UpTo(trouble), fmt.Sprintf("h%d", l.cfg.hosts+i+1)
		l.spawn(func() {
			if !pause(ctx, at) {
				return
			}
			victim := l.anyHost()
			l.note("%s dies, %s starts", victim.name, name)
			l.startHost(ctx, name)
			victim.kill()
			l.count("crash")
		})
	}
	for range l.cfg.pauses {
		at, long := d.UpTo(trouble), d.UpTo(4*time.Second)
		l.spawn(func() {
			if !pause(ctx, at) || l.isHealed() {
				return
			}
			h := l.anyHost()
			l.note("%s is cut off for %v", h.name, long)
			h.store.Pause()
			l.count("cut off")
			pause(ctx, long)
			h.store.Resume()
		})
	}
}
