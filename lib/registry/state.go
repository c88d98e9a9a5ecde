package registry

import (
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
)

// Broker is a registered broker.
type Broker struct {
	ID          smq.BrokerID `json:"id"`
	Address     string       `json:"address"`
	HTTPAddress string       `json:"http_address,omitempty"`
	Rack        string       `json:"rack,omitempty"`
	Version     string       `json:"version,omitempty"`
	Join        uint64       `json:"join"`                // of its registration; rises from broker to broker
	JoinedMS    int64        `json:"joined_ms,omitempty"` // when it joined, for people
	Draining    bool         `json:"draining,omitempty"`
	Silent      bool         `json:"silent,omitempty"`
}

// fit reports whether the broker should lead rather than one that is not.
func (b Broker) fit() bool { return !b.Draining && !b.Silent }

// Leader is the leading broker in a term of it. The zero Broker leads nothing:
// there is no leader.
type Leader struct {
	Broker  smq.BrokerID
	Address string
	Term    uint64
}

// State is the registry. The zero value is not usable: call New or Restore. It
// is not safe for concurrent use.
type State struct {
	d data
}

// data is the state as the snapshot has it. Slices are sorted, so that equal
// states encode as equal bytes.
type data struct {
	Cluster   smq.ClusterID  `json:"cluster,omitempty"`
	Store     string         `json:"store,omitempty"`
	FirstJoin uint64         `json:"first_join,omitempty"`
	NextJoin  uint64         `json:"next_join,omitempty"`
	Brokers   []Broker       `json:"brokers,omitempty"` // by Join, rising
	Leader    smq.BrokerID   `json:"leader,omitempty"`
	Term      uint64         `json:"term,omitempty"`
	Masters   []Master       `json:"masters,omitempty"` // by ID, rising
	Expired   []smq.BrokerID `json:"expired,omitempty"` // the last maxExpired, oldest first
}

// maxExpired bounds the list of expired ids (see the package documentation).
const maxExpired = 1024

// New returns the state of a cluster that has not been founded.
func New() *State { return &State{} }

// Cluster is the cluster's id; empty before Init.
func (s *State) Cluster() smq.ClusterID { return s.d.Cluster }

// Store is the store's URL; empty before Init.
func (s *State) Store() string { return s.d.Store }

// Brokers lists the registered brokers in the order in which they joined. The
// slice is the caller's.
func (s *State) Brokers() []Broker { return slices.Clone(s.d.Brokers) }

// Broker returns the registered broker of that id.
func (s *State) Broker(id smq.BrokerID) (Broker, bool) {
	i := s.index(id)
	if i < 0 {
		return Broker{}, false
	}
	return s.d.Brokers[i], true
}

// Masters lists what is known of the raft group's members, by id. The slice is
// the caller's.
func (s *State) Masters() []Master { return slices.Clone(s.d.Masters) }

// Master returns what is known of the member of that id.
func (s *State) Master(id string) (Master, bool) {
	i, ok := slices.BinarySearchFunc(s.d.Masters, id, masterByID)
	if !ok {
		return Master{}, false
	}
	return s.d.Masters[i], true
}

// Leader returns the leading broker and the term. Without a leader only the
// term is set, to that of the last one.
func (s *State) Leader() Leader {
	l := Leader{Broker: s.d.Leader, Term: s.d.Term}
	if b, ok := s.Broker(l.Broker); ok {
		l.Address = b.Address
	}
	return l
}

func (s *State) index(id smq.BrokerID) int {
	return slices.IndexFunc(s.d.Brokers, func(b Broker) bool { return b.ID == id })
}
