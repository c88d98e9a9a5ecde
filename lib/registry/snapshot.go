package registry

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
)

// snapshotFormat is the version of the snapshot's form.
const snapshotFormat = 1

// snapshot is a state as it is kept: JSON, in one line.
type snapshot struct {
	Format int `json:"format"`
	data
}

// Snapshot encodes the state. Equal states give equal bytes.
func (s *State) Snapshot() ([]byte, error) {
	b, err := json.Marshal(snapshot{snapshotFormat, s.d})
	if err != nil {
		return nil, fmt.Errorf("encode the registry: %w", err)
	}
	return append(b, '\n'), nil
}

// Restore decodes a snapshot. smq.ErrCorrupt when it is none, smq.ErrInvalid
// when it is of a format that is not known here.
func Restore(b []byte) (*State, error) {
	var s snapshot
	decoder := json.NewDecoder(bytes.NewReader(b))
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("%w registry snapshot: %w", smq.ErrCorrupt, err)
	}
	if s.Format != snapshotFormat {
		return nil, fmt.Errorf("%w registry snapshot: format %d, this version reads %d", smq.ErrInvalid, s.Format, snapshotFormat)
	}
	return &State{s.data}, nil
}
