package master

import (
	"fmt"
	"runtime"

	"github.com/hashicorp/raft"
)

// termStore is raft's stable store. Raft panics when it cannot save its term, since
// it must not go on: after a restart it would take part in that term once more. A full
// disk is no reason for a stack trace, so the master stops instead, and says why.
type termStore struct {
	raft.StableStore
	dir     string
	failed  func(error) // stops the master
	started bool        // raft's first own write has been made; it makes them one by one
	err     error       // of that first one
}

// termKey is raft's key for its term.
const termKey = "CurrentTerm"

// SetUint64 saves a number. It does not return when that is raft's term and cannot be
// saved, but ends the goroutine, which is raft's; except for the first time, which is
// while raft is started.
func (s *termStore) SetUint64(key []byte, n uint64) error {
	err := s.StableStore.SetUint64(key, n)
	if string(key) != termKey {
		return err
	}
	if err != nil {
		err = fmt.Errorf("save raft's term in %s: %w", s.dir, err)
	}
	if !s.started {
		s.started, s.err = true, err
		return err
	}
	if err != nil {
		s.failed(err)
		runtime.Goexit()
	}
	return nil
}
