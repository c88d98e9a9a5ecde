package master

import "sync"

// hub tells any number of listeners that something changed, never what: they
// look for themselves, so that changes coalesce for those who are slow.
type hub struct {
	mu      sync.Mutex
	version uint64
	changed chan struct{}
}

func newHub() *hub { return &hub{changed: make(chan struct{})} }

// announce wakes everybody. substance: the change is more than one of loads,
// and counts as a version.
func (h *hub) announce(substance bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if substance {
		h.version++
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// listen returns the current version and a channel that is closed at the next
// change. Look at the state after calling it, never before.
func (h *hub) listen() (version uint64, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.changed
}
