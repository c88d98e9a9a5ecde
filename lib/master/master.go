package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Master is one member of the masters.
type Master struct {
	smqpb.UnimplementedMasterServer

	config   Config
	logger   *slog.Logger
	hub      *hub
	fsm      *fsm
	raft     *raft.Raft
	parts    *raftParts
	conns    *rpc.Conns
	ownConns bool

	ready    chan struct{}
	stopping chan struct{} // closed: Shutdown was called, or something failed for good
	stopOnce sync.Once
	group    sync.WaitGroup
	done     chan struct{} // closed: nothing is left running

	mu    sync.Mutex
	reign *reign // while this master leads
	err   error
}

// Start starts a master, which runs until Shutdown. It returns before the
// master is of use: see Ready. smq.ErrInvalid: the configuration is wrong or
// does not fit the data directory; smq.ErrUnavailable: the data directory is in
// use; smq.ErrCorrupt: it is damaged.
func Start(c Config) (*Master, error) {
	m, err := start(c)
	if err != nil {
		if c.RaftListener != nil {
			c.RaftListener.Close()
		}
		return nil, fmt.Errorf("start the master: %w", err)
	}
	return m, nil
}

func start(c Config) (*Master, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	h := newHub()
	m := &Master{
		config: c, logger: c.Logger, hub: h, fsm: newFSM(h, c.id()), conns: c.Conns,
		ready: make(chan struct{}), stopping: make(chan struct{}), done: make(chan struct{}),
	}
	if m.raft, m.parts, err = openRaft(c, m.fsm, m.stop); err != nil {
		return nil, err
	}
	if m.conns == nil {
		m.conns, m.ownConns = rpc.NewConns(rpc.DialOptions{}), true
	}
	m.group.Go(m.run)
	m.group.Go(m.attend)
	m.group.Go(m.observe)
	if !c.solo() {
		m.group.Go(m.mind)
	}
	go m.finish()
	return m, nil
}

// Register makes s, which rpc.NewServer made, serve this master.
func (m *Master) Register(s grpc.ServiceRegistrar) { smqpb.RegisterMasterServer(s, m) }

// Ready is closed when the master belongs to a founded cluster and knows who
// leads the masters; if it is this one, when brokers can join.
func (m *Master) Ready() <-chan struct{} { return m.ready }

// Done is closed when the master has stopped: after Shutdown, or because of
// what Err tells.
func (m *Master) Done() <-chan struct{} { return m.done }

// Err is why the master stopped by itself; nil while it has not.
func (m *Master) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Shutdown stops the master and returns when it has stopped or ctx ends. A
// leading master hands over first, if somebody is there. Streams that it serves
// end. It may be called more than once.
func (m *Master) Shutdown(ctx context.Context) error {
	m.stop(nil)
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the master: %w: %w", smq.ErrTimeout, ctx.Err())
	}
}

// stop begins the end, because of err if there is one.
func (m *Master) stop(err error) {
	m.stopOnce.Do(func() {
		m.mu.Lock()
		m.err = err
		m.mu.Unlock()
		if err != nil {
			m.logger.Error("the master stops", "error", err)
		}
		close(m.stopping)
	})
}

// finish takes everything down once stop has been called.
func (m *Master) finish() {
	defer close(m.done)
	<-m.stopping
	// The reign ends while raft still runs: raft forgets to answer some of the
	// requests that reach it while it shuts down.
	m.group.Wait()
	if !m.config.solo() && m.raft.State() == raft.Leader {
		if err := m.raft.LeadershipTransfer().Error(); err != nil {
			m.logger.Debug("could not hand over the leadership of the masters", "error", err)
		}
	}
	err := m.raft.Shutdown().Error()
	if m.ownConns {
		m.conns.Close()
	}
	if err = errors.Join(err, m.parts.close()); err != nil {
		m.logger.Warn("the master did not stop cleanly", "error", err)
	}
}

// run follows the leadership. Raft's channel holds the latest change only, so
// two messages that say "leader" mean a new leadership.
func (m *Master) run() {
	var r *reign
	var group sync.WaitGroup
	end := func() {
		if r != nil {
			close(r.done)
			group.Wait()
			r = nil
			m.hub.announce(true)
		}
	}
	defer end()
	for {
		select {
		case leads := <-m.raft.LeaderCh():
			end()
			if leads {
				r = newReign(m)
				group.Go(r.run)
			}
		case <-m.stopping:
			return
		}
	}
}

// observe announces changes of the leading master.
func (m *Master) observe() {
	// One place is enough: an observation that finds it taken is covered by
	// the one that waits there.
	changes := make(chan raft.Observation, 1)
	observer := raft.NewObserver(changes, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	m.raft.RegisterObserver(observer)
	defer m.raft.DeregisterObserver(observer)
	m.hub.announce(true) // what happened before
	for {
		select {
		case <-changes:
			m.hub.announce(true)
		case <-m.stopping:
			return
		}
	}
}

func (m *Master) setReign(r *reign) {
	m.mu.Lock()
	m.reign = r
	m.mu.Unlock()
	m.hub.announce(true)
}

// leading returns the reign while this master leads and is ready to.
func (m *Master) leading() (*reign, error) {
	m.mu.Lock()
	r := m.reign
	m.mu.Unlock()
	if r == nil {
		return nil, &rpc.NotLeaderError{Address: m.leadingAddress()}
	}
	return r, nil
}

// reigns reports whether this master leads and is ready to.
func (m *Master) reigns() bool {
	_, err := m.leading()
	return err == nil
}

// leadingAddress is the leading master's gRPC address; empty while it is not
// known.
func (m *Master) leadingAddress() string {
	_, id := m.raft.LeaderWithID()
	if string(id) == m.config.id() {
		return m.config.Advertise
	}
	var leader registry.Master
	m.fsm.view(func(s *registry.State) { leader, _ = s.Master(string(id)) })
	return leader.Address
}

// self is this master as the others should know it.
func (m *Master) self() registry.Master {
	return registry.Master{ID: m.config.id(), Address: m.config.Advertise, HTTPAddress: m.config.HTTPAddress}
}

func (m *Master) brokers() (all []registry.Broker) {
	m.fsm.view(func(s *registry.State) { all = s.Brokers() })
	return all
}

// registered lists the ids of the registered brokers.
func (m *Master) registered() []smq.BrokerID {
	var ids []smq.BrokerID
	for _, b := range m.brokers() {
		ids = append(ids, b.ID)
	}
	return ids
}

// checkStore stops the master when the cluster's store is not the one that it
// was started for, or when there is none to found a cluster with.
func (m *Master) checkStore(founded bool, store string) error {
	var err error
	switch {
	case !founded && m.config.StoreURL == "":
		err = fmt.Errorf("%w configuration: a new cluster needs a store", smq.ErrInvalid)
	case founded && m.config.StoreURL != "" && m.config.StoreURL != store:
		err = fmt.Errorf("%w: this cluster's store is %s, not %s", smq.ErrConflict, store, m.config.StoreURL)
	default:
		return nil
	}
	m.stop(err)
	return err
}
