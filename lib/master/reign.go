package master

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// tick is how often the leading master looks at the leases.
	tick = 100 * time.Millisecond
	// loadTicks is how often those who watch the cluster hear of changed loads.
	loadTicks = 10
	// silentAfter is how long a stream may be broken before its broker, if it
	// leads, loses that to another one. A broker that merely lost its connection
	// is back before.
	silentAfter = 300 * time.Millisecond
	// missedAfter is how long a broker that was registered before this reign may
	// keep it waiting once half of the others have come. A broker that lives looks for
	// the leading master at least every second.
	missedAfter = 1500 * time.Millisecond
	// applyTimeout bounds the wait for raft to take a command; once taken it
	// ends with the leadership at the latest.
	applyTimeout = 5 * time.Second
)

// reign is a time during which this master leads. It is made anew at every
// election, so nothing of an earlier one survives in it.
type reign struct {
	m      *Master
	done   chan struct{} // closed: the reign is over
	leases *leases
	loads  chan struct{} // holds one: some load has changed
	dirty  chan struct{} // holds one: the registry may have something to learn
	wake   chan struct{} // holds one: a heartbeat waits
	// members holds a token while the raft group is being changed.
	members chan struct{}

	mu          sync.Mutex
	lastTick    time.Duration       // when keepTime last ran
	confirmed   bool                // an entry was committed since keepTime last noticed a pause
	confirmedAt time.Duration       // when that was
	waiting     map[*session]waiter // heartbeats that wait for a verification
}

// waiter is a heartbeat that waits to be granted.
type waiter struct {
	id       smq.BrokerID
	sequence uint64
}

func newReign(m *Master) *reign {
	return &reign{
		m:       m,
		done:    make(chan struct{}),
		leases:  newLeases(m.config.LeaseDuration),
		loads:   make(chan struct{}, 1),
		dirty:   make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		members: make(chan struct{}, 1),
		waiting: make(map[*session]waiter),
	}
}

// run rules until done is closed.
func (r *reign) run() {
	for {
		err := r.begin()
		if err == nil {
			break
		}
		r.m.logger.Warn("could not take over as the leading master", "error", err)
		select {
		case <-time.After(tick):
		case <-r.done:
			return
		}
	}
	r.m.setReign(r)
	defer r.m.setReign(nil)
	var group sync.WaitGroup
	group.Go(r.grant)
	group.Go(r.keepTime)
	group.Go(r.commit)
	group.Wait()
}

// begin waits until the registry has everything that earlier leading masters
// committed, founds the cluster if nobody has, and gives every broker a full
// lease.
func (r *reign) begin() error {
	if err := r.m.raft.Barrier(applyTimeout).Error(); err != nil {
		return translate("wait for the registry", err)
	}
	if err := r.found(); err != nil {
		return err
	}
	if err := r.setMaster(r.m.self()); err != nil {
		return err
	}
	now := r.m.config.Clock()
	r.lastTick, r.confirmed, r.confirmedAt = now, true, now
	r.leases.sync(r.m.registered, now)
	return nil
}

func (r *reign) found() error {
	founded, store := false, ""
	r.m.fsm.view(func(s *registry.State) { founded, store = s.Cluster() != "", s.Store() })
	if err := r.m.checkStore(founded, store); err != nil || founded {
		return err
	}
	id := r.m.config.ClusterID
	if id == "" {
		id = smq.NewClusterID()
	}
	now := uint64(time.Now().UnixMilli())
	init := registry.Init{Cluster: id, Store: r.m.config.StoreURL, FirstJoin: now}
	if r.m.config.Adopted {
		init.FirstTerm = now // leaders change less often than every millisecond
	}
	if _, err := r.apply(registry.Command{Init: &init}); err != nil {
		return fmt.Errorf("found the cluster: %w", err)
	}
	r.m.logger.Info("founded the cluster", "cluster", id, "store", init.Store)
	return nil
}

// setMaster records a member's addresses if they are news.
func (r *reign) setMaster(m registry.Master) error {
	var known registry.Master
	r.m.fsm.view(func(s *registry.State) { known, _ = s.Master(m.ID) })
	if known == m {
		return nil
	}
	_, err := r.apply(registry.Command{SetMaster: &m})
	return err
}

// apply commits a command and returns what it did. An error of the registry is
// returned as such; smq.ErrNotLeader and smq.ErrUnavailable mean that the
// leadership is lost, and that the command may be committed yet.
func (r *reign) apply(c registry.Command) (registry.Result, error) {
	b, err := c.Encode()
	if err != nil {
		return registry.Result{}, err
	}
	future := r.m.raft.Apply(b, applyTimeout)
	if err := future.Error(); err != nil {
		return registry.Result{}, translate("commit to the registry", err)
	}
	result, ok := future.Response().(registry.Result)
	if !ok {
		return registry.Result{}, fmt.Errorf("commit to the registry: it answered %T", future.Response())
	}
	return result, result.Err
}

// request asks for a heartbeat to be granted. The grant arrives at the session.
func (r *reign) request(s *session, id smq.BrokerID, sequence uint64) {
	r.mu.Lock()
	r.waiting[s] = waiter{id, sequence}
	r.mu.Unlock()
	signal(r.wake)
}

// grant answers heartbeats: all that wait share one verification. It is a
// goroutine of run.
func (r *reign) grant() {
	for {
		select {
		case <-r.wake:
		case <-r.done:
			return
		}
		waiting := r.takeWaiting()
		if !r.verify() {
			continue // the leadership is ending, and every stream with it
		}
		now := r.m.config.Clock()
		for s, w := range waiting {
			r.leases.renew(w.id, s, w.sequence, now)
		}
	}
}

func (r *reign) takeWaiting() map[*session]waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting
	r.waiting = make(map[*session]waiter)
	return waiting
}

// verify reports whether this master led at some time after verify was called,
// but for the bounds that the package's documentation gives.
func (r *reign) verify() bool {
	for {
		if err := r.m.raft.VerifyLeader().Error(); err != nil {
			r.m.logger.Debug("could not verify the leadership", "error", err)
			return false
		}
		if r.steady() {
			return true
		}
		// What a verification says after a pause may be from before it. An
		// entry of this term that is committed now is not.
		if err := r.m.raft.Barrier(applyTimeout).Error(); err != nil {
			r.m.logger.Debug("could not confirm the leadership after a pause", "error", err)
			return false
		}
		r.mu.Lock()
		r.confirmed, r.confirmedAt = true, r.m.config.Clock()
		r.mu.Unlock()
	}
}

// steady reports whether the process has run all the time since its leadership
// was confirmed. Right after a pause keepTime may not have noticed it yet.
func (r *reign) steady() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.confirmed && r.m.config.Clock()-max(r.lastTick, r.confirmedAt) <= r.m.config.maxPause()
}

// keepTime watches the leases run out. It waits for nothing but the time, which
// is how it notices a pause. It is a goroutine of run.
func (r *reign) keepTime() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ticker.C:
		case <-r.done:
			return
		}
		now := r.m.config.Clock()
		if pause := r.paused(now); pause > 0 {
			r.m.logger.Warn("this process was paused; the brokers' leases are longer by as much", "pause", pause)
			r.leases.makeUp(pause, now)
		}
		r.leases.sync(r.m.registered, now)
		r.leases.expire(now)
		signal(r.dirty)
		if n%loadTicks == 0 {
			select {
			case <-r.loads:
				r.m.hub.announce(false)
			default:
			}
		}
	}
}

// paused notes that the ticking goroutine runs, and returns for how long it has
// not, if that was too long; else 0.
func (r *reign) paused(now time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	gap := now - r.lastTick
	r.lastTick = now
	if gap <= r.m.config.maxPause() {
		return 0
	}
	r.confirmed = false
	return gap
}

// commit tells the registry what the leases have brought. It is a goroutine of
// run.
func (r *reign) commit() {
	for {
		select {
		case <-r.dirty:
		case <-r.done:
			return
		}
		var commands []registry.Command
		for _, id := range r.leases.expired() {
			r.m.logger.Info("a broker's lease has run out", "broker", id)
			commands = append(commands, registry.Command{Expire: &registry.BrokerRef{ID: id}})
		}
		r.applyAll(append(commands, r.silences()...))
	}
}

// silences lists what the registry does not know yet of broken, missing and
// restored connections.
func (r *reign) silences() []registry.Command {
	now := r.m.config.Clock()
	var commands []registry.Command
	for _, b := range r.m.brokers() {
		p := r.leases.presence(b.ID, now)
		silent := b.Silent && !p.connected || p.lost && p.lostFor >= silentAfter || p.missing
		if silent != b.Silent {
			commands = append(commands, registry.Command{Silence: &registry.Silence{ID: b.ID, Silent: silent}})
		}
	}
	return commands
}

// applyAll commits commands side by side. Those that fail come again with the
// next tick.
func (r *reign) applyAll(commands []registry.Command) {
	var group sync.WaitGroup
	for _, c := range commands {
		group.Go(func() {
			if _, err := r.apply(c); err != nil && !errors.Is(err, smq.ErrNotLeader) {
				r.m.logger.Warn("could not commit to the registry", "error", err)
			}
		})
	}
	group.Wait()
}

// signal puts a token into a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
