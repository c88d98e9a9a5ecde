package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/broker"
	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/sim"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/fault"
)

// process is a broker with its way to the store and to the others.
type process struct {
	l     *life
	name  string
	conns *rpc.Conns
	store *fault.Store
	ctx   context.Context // ends when the process does
	up    chan struct{}   // closed when Start has returned

	mu      sync.Mutex
	cancel  context.CancelFunc // of Start and of a drain
	broker  *broker.Broker     // nil while it is not a member
	leaving chan struct{}      // closed when a drain has come to its end; nil: none has begun
	dead    bool
}

// startBroker starts a broker in the background.
func (l *life) startBroker(ctx context.Context, name string) *process {
	p := &process{l: l, name: name, conns: rpc.NewConns(rpc.DialOptions{Dialer: l.net.dialer(name)}), store: l.openStore(name), up: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(ctx)
	p.ctx = ctx
	l.mu.Lock()
	l.brokers = append(l.brokers, p)
	l.mu.Unlock()
	l.spawn(func() {
		defer close(p.up)
		p.start()
	})
	return p
}

func (p *process) start() {
	address := p.name + ":7310"
	b, err := broker.Start(p.ctx, broker.Config{
		Cluster:   rpc.NewCluster([]string{masterAddress}, p.conns, p.l.logger),
		Listener:  p.l.net.listen(address),
		Advertise: address,
		OpenStore: func(context.Context, string) (store.Store, error) { return keptOpen{p.store}, nil },
		Lead: func(o broker.LeadOptions) broker.Leading {
			p.l.note("%s leads, term %d", p.name, o.Term)
			p.l.count("lead")
			return leader.Start(leader.Config{Store: o.Store, Self: o.Self, Term: o.Term, Brokers: o.Brokers, Peer: o.Peer, Logger: o.Logger})
		},
		Limits: p.l.limits,
		Logger: p.l.logger,
		Clock:  p.l.clock(),
	})
	if err != nil {
		p.l.note("%s does not start: %v", p.name, err)
		return
	}
	p.l.note("%s is a member", p.name)
	p.mu.Lock()
	dead := p.dead
	p.broker = b
	p.mu.Unlock()
	if dead {
		b.Close()
	}
}

// keptOpen is a store that outlives its broker: what a killed process had under
// way may still arrive.
type keptOpen struct{ *fault.Store }

// Close does nothing.
func (keptOpen) Close() error { return nil }

// member returns the broker, unless it is not up or dead.
func (p *process) member() *broker.Broker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil
	}
	return p.broker
}

// kill ends the process without a farewell. A drain that is under way comes to
// nothing.
func (p *process) kill() {
	p.mu.Lock()
	b, leaving := p.broker, p.leaving
	first := !p.dead
	p.dead = true
	p.mu.Unlock()
	if !first {
		return
	}
	p.l.net.kill(p.name)
	p.store.Kill()
	p.cancel()
	if leaving != nil {
		<-leaving
	}
	if b != nil {
		b.Close()
	}
	p.conns.Close()
}

// drain has the broker hand over and leave.
func (p *process) drain() {
	p.mu.Lock()
	b := p.broker
	if p.dead || b == nil || p.leaving != nil {
		p.mu.Unlock()
		return
	}
	leaving := make(chan struct{})
	p.leaving = leaving
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	if err := b.Drain(ctx); err != nil {
		p.l.note("%s: %v", p.name, err)
	}
	close(leaving)
	p.kill()
}

// chaos strikes at moments that the seed decides.
func (l *life) chaos(ctx context.Context) {
	d := sim.NewDice(l.cfg.seed, "chaos")
	strike := func(f func(p *process)) {
		at := d.UpTo(trouble)
		l.spawn(func() {
			if !pause(ctx, at) {
				return
			}
			if p := l.anyBroker(); p != nil {
				f(p)
			}
		})
	}
	for range l.cfg.deaths() {
		strike(func(p *process) {
			l.note("%s is killed", p.name)
			l.count("kill")
			p.kill()
			l.another(ctx)
		})
	}
	for range l.cfg.leaves() {
		strike(func(p *process) {
			l.note("%s drains", p.name)
			l.count("drain")
			l.another(ctx)
			p.drain()
		})
	}
	for range l.cfg.cuts {
		long := d.UpTo(l.cfg.longestCut())
		strike(func(p *process) { l.cutOff(ctx, p, long) })
	}
	for range l.cfg.breaks {
		strike(func(p *process) {
			name := l.anyName(p)
			l.note("the connections of %s break", name)
			l.count("break")
			l.net.breakAll(name)
		})
	}
}

// cutOff cuts a process off for a while: the broker p, the master or a client.
func (l *life) cutOff(ctx context.Context, p *process, long time.Duration) {
	name := l.anyName(p)
	l.note("%s is cut off for %v", name, long)
	l.count("cut")
	l.net.cutOff(name)
	if name == p.name {
		p.store.Pause()
		defer p.store.Resume()
	}
	pause(ctx, long)
	l.net.mend(name)
}

// anyName is the broker's name, or now and then the master's or a client's.
func (l *life) anyName(p *process) string {
	switch n := l.dice.IntN(10); {
	case n < 2:
		return processOf(masterAddress)
	case n < 4:
		return fmt.Sprintf("c%d", 1+l.dice.IntN(l.cfg.publishers+l.cfg.subscribers))
	}
	return p.name
}

// another starts one more broker.
func (l *life) another(ctx context.Context) {
	l.mu.Lock()
	name := fmt.Sprintf("b%d", len(l.brokers)+1)
	l.mu.Unlock()
	l.startBroker(ctx, name)
}

// anyBroker picks a member, or nil when there is none.
func (l *life) anyBroker() *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	var up []*process
	for _, p := range l.brokers {
		if p.member() != nil {
			up = append(up, p)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[l.dice.IntN(len(up))]
}

// pause waits, and reports whether the context still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
