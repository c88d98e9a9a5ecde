package rpc

import (
	"maps"
	"slices"
	"sync"
)

// OnQuiet has f called whenever the peer at addr is quiet that should not be:
// when nothing has come from it for more than a second, not even an answer to
// being asked for a sign of life. It is paused, cut off or overloaded; if it
// stays quiet its connection is closed after three seconds of silence, see Dial.
// f is called once for each such time, and must not block. After remove it is
// not called again, but may still be running.
func (c *Conns) OnQuiet(addr string, f func()) (remove func()) { return c.quiet.add(addr, f) }

// bells are functions to be called for an address. They have a lock of their own,
// under which nothing waits: a connection that is being closed rings, too.
type bells struct {
	mu sync.Mutex
	at map[string]map[*func()]struct{}
}

func (b *bells) add(addr string, f func()) (remove func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil {
		b.at = make(map[string]map[*func()]struct{})
	}
	if b.at[addr] == nil {
		b.at[addr] = make(map[*func()]struct{})
	}
	b.at[addr][&f] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.at[addr], &f); len(b.at[addr]) == 0 {
			delete(b.at, addr)
		}
	}
}

func (b *bells) ring(addr string) {
	b.mu.Lock()
	all := slices.Collect(maps.Keys(b.at[addr]))
	b.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}
