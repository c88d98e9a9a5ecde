package master

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/boottime"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
)

// DefaultLeaseDuration is how long a broker that is not heard of counts as
// alive. It is part of the system's promises: tests may shorten it, operators
// should not.
const DefaultLeaseDuration = 3 * time.Second

// DefaultElectionTimeout is how long a leading master may be unheard of before
// the others elect another one, at the least; at the most twice that.
const DefaultElectionTimeout = 500 * time.Millisecond

// Config configures a master.
type Config struct {
	// Advertise is the gRPC address, host:port, at which brokers, clients and
	// the other masters reach this one. Required.
	Advertise string
	// HTTPAddress is told to whoever asks for the cluster's members.
	HTTPAddress string

	// StoreURL is the store of a cluster that is founded now. It is fixed then:
	// a master that finds another one recorded stops (see Err). Empty: what is
	// recorded.
	StoreURL string
	// ClusterID is the id of a cluster that is founded now; empty: a random one.
	// A store that is bound to a cluster already wants that one's.
	ClusterID smq.ClusterID
	// Adopted: the store has layouts of a cluster already, whose registry this
	// master may not have. The terms of a cluster that is founded now are later
	// than those, which would else depose each of its leaders.
	Adopted bool

	// DataDir keeps raft's state, and belongs to one master. Empty: memory only,
	// for a master by itself.
	DataDir string
	// Peers are the raft addresses of the masters that found the group,
	// host:port, this one's among them, the same list for each; what they are
	// later is in DataDir. Empty: this one is by itself, unless it joins.
	Peers []string
	// Join: a master without state waits to be added to a group that runs; Peers
	// is empty. One with state goes on from that.
	Join bool
	// RaftAdvertise is this master's raft address as the others reach it, one of
	// Peers.
	RaftAdvertise string
	// RaftListener accepts the other masters' raft connections; required with
	// Peers and Join. The master closes it.
	RaftListener net.Listener
	// RaftDial opens a connection to another master's raft address. nil: TCP.
	RaftDial func(addr string, timeout time.Duration) (net.Conn, error)

	// Conns are the connections by which a member announces itself to the
	// leading master; nil: its own.
	Conns *rpc.Conns
	// Logger; nil: nothing is logged.
	Logger *slog.Logger

	// LeaseDuration and ElectionTimeout: 0 for the defaults.
	LeaseDuration   time.Duration
	ElectionTimeout time.Duration
	// Clock tells the time since some moment, counting the time that the machine
	// is suspended. nil: the system's.
	Clock func() time.Duration
}

// soloID is the raft id of a master by itself, whose address may change from
// one start to the next.
const soloID = "solo"

// id is this master's id in the raft configuration.
func (c Config) id() string {
	if c.solo() {
		return soloID
	}
	return c.RaftAdvertise
}

func (c Config) solo() bool { return len(c.Peers) == 0 && !c.Join }

// complete checks c and fills in defaults.
func (c Config) complete() (Config, error) {
	if _, _, err := net.SplitHostPort(c.Advertise); err != nil {
		return c, fmt.Errorf("%w address to advertise %q: %w", smq.ErrInvalid, c.Advertise, err)
	}
	if err := c.checkPeers(); err != nil {
		return c, err
	}
	if c.LeaseDuration == 0 {
		c.LeaseDuration = DefaultLeaseDuration
	}
	if c.ElectionTimeout == 0 {
		c.ElectionTimeout = DefaultElectionTimeout
	}
	if c.Clock == nil {
		c.Clock = boottime.Clock()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func (c Config) checkPeers() error {
	if c.solo() {
		return nil
	}
	sorted := slices.Sorted(slices.Values(c.Peers))
	switch {
	case c.Join && len(c.Peers) > 0:
		return fmt.Errorf("%w configuration: a master that joins a group has no list of peers", smq.ErrInvalid)
	case len(slices.Compact(sorted)) != len(c.Peers):
		return fmt.Errorf("%w peers %v: an address is there twice", smq.ErrInvalid, c.Peers)
	case !c.Join && !slices.Contains(c.Peers, c.RaftAdvertise):
		return fmt.Errorf("%w peers %v: this master's own raft address, %q, is not among them", smq.ErrInvalid, c.Peers, c.RaftAdvertise)
	case c.RaftListener == nil:
		return fmt.Errorf("%w configuration: several masters need a raft listener each", smq.ErrInvalid)
	case c.DataDir == "":
		// One that forgot its votes at a restart could vote twice.
		return fmt.Errorf("%w configuration: several masters need a data directory each", smq.ErrInvalid)
	}
	for _, p := range append([]string{c.RaftAdvertise}, c.Peers...) {
		if _, _, err := net.SplitHostPort(p); err != nil {
			return fmt.Errorf("%w peer %q: %w", smq.ErrInvalid, p, err)
		}
	}
	return nil
}

// brokerLease is the lease as a broker counts it.
func (c Config) brokerLease() time.Duration { return c.LeaseDuration - c.LeaseDuration/3 }

// transportTimeout bounds how long an answer of raft's can be under way, and
// maxPause how long this process can pause without being noticed: see Leases in
// the package's documentation.
func (c Config) transportTimeout() time.Duration { return c.LeaseDuration / 3 }
func (c Config) maxPause() time.Duration         { return c.ElectionTimeout * 4 / 5 }
