package fault

import (
	"fmt"
	"slices"
)

// maxLog is how many of the last calls are remembered.
const maxLog = 4096

// Entry is a call as it went, for the report of a failure.
type Entry struct {
	Op       Op
	Decision Decision
	Arrival  bool  // it is a late change's arrival, and not the call
	Applied  bool  // the inner store was called, and succeeded
	Err      error // what the caller was told; of an arrival: nobody was
}

// String is one line.
func (e Entry) String() string {
	what := "call"
	if e.Arrival {
		what = "arrival"
	}
	applied := "not applied"
	if e.Applied {
		applied = "applied"
	}
	return fmt.Sprintf("%v %s: %v (delay %v, late by %v): %s, error: %v", e.Op, what, e.Decision.Outcome, e.Decision.Delay, e.Decision.LateBy, applied, e.Err)
}

// Log returns the last calls, in the order in which they ended.
func (s *Store) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *Store) note(e Entry) {
	if len(s.log) == maxLog {
		s.log = append(s.log[:0], s.log[maxLog/2:]...)
	}
	s.log = append(s.log, e)
}
