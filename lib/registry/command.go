package registry

import (
	"encoding/json"
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// Command is a change of the registry: exactly one of its fields is set.
type Command struct {
	Init      *Init      `json:"init,omitempty"`
	SetMaster *Master    `json:"set_master,omitempty"`
	Register  *Register  `json:"register,omitempty"`
	Drain     *BrokerRef `json:"drain,omitempty"`
	Silence   *Silence   `json:"silence,omitempty"`
	Leave     *BrokerRef `json:"leave,omitempty"`
	Expire    *BrokerRef `json:"expire,omitempty"`
}

// Init founds the cluster. A second one changes nothing and is an
// smq.ErrConflict unless it names the same cluster and store.
type Init struct {
	Cluster   smq.ClusterID `json:"cluster"`
	Store     string        `json:"store"`      // URL
	FirstJoin uint64        `json:"first_join"` // registrations are numbered from here: ms since 1970 now
	// FirstTerm is what the terms go on from: more than any of an earlier
	// registry's, if the store is one that had one.
	FirstTerm uint64 `json:"first_term,omitempty"`
}

// Register adds a broker. Registering one that is there with the same address
// changes nothing and gives its number again. smq.ErrConflict: the id has
// expired, or another broker uses it.
type Register struct {
	ID          smq.BrokerID `json:"id"`
	Address     string       `json:"address"` // gRPC, host:port
	HTTPAddress string       `json:"http_address,omitempty"`
	Rack        string       `json:"rack,omitempty"`
	Version     string       `json:"version,omitempty"`
	Join        uint64       `json:"join,omitempty"`      // the number that the broker was told, if it was
	JoinedMS    int64        `json:"joined_ms,omitempty"` // the proposer's clock, for people
}

// BrokerRef names the broker that a command is about. A broker that is not
// registered makes the command do nothing.
type BrokerRef struct {
	ID smq.BrokerID `json:"id"`
}

// Silence says whether a broker has lost its connection to the masters, which
// makes it unfit to lead though its lease still runs.
type Silence struct {
	ID     smq.BrokerID `json:"id"`
	Silent bool         `json:"silent"`
}

// Master is a member of the raft group. As a command it sets, or replaces, what
// is known of the member with that id.
type Master struct {
	ID          string `json:"id"`      // in the raft configuration
	Address     string `json:"address"` // gRPC, host:port
	HTTPAddress string `json:"http_address,omitempty"`
}

// Encode is the form that DecodeCommand reads back, and that raft's log keeps.
func (c Command) Encode() ([]byte, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode a registry command: %w", err)
	}
	return b, nil
}

// DecodeCommand reads an encoded command. smq.ErrCorrupt when it is none.
func DecodeCommand(b []byte) (Command, error) {
	var c Command
	if err := json.Unmarshal(b, &c); err != nil {
		return Command{}, fmt.Errorf("%w registry command: %w", smq.ErrCorrupt, err)
	}
	return c, nil
}
