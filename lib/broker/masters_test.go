package broker_test

import (
	"testing"
	"time"
)

// A broker goes with the masters, also when all that it was told of at its start
// are gone.
func TestBrokersFollowTheMasters(t *testing.T) {
	b := newBed(t, "a")
	const next = "next:7300"
	after := b.serve(b.master, next)
	t.Cleanup(after.Stop)
	await := func(what string, condition func() bool) {
		t.Helper()
		for ctx := within(t); ; {
			b.master.mu.Lock()
			holds := condition()
			b.master.mu.Unlock()
			if holds {
				return
			}
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				t.Fatal(what)
			}
		}
	}
	hellos := 0
	// When it asks for the second time it has the first answer.
	for n, masters := range [][]string{{masterAddress, next}, {masterAddress, next, "other:7300"}} {
		b.master.update(func() { b.master.masters = masters })
		await("the broker does not ask who the masters are", func() bool { return b.master.told == n+2 })
	}
	b.master.update(func() { b.master.masters, hellos = []string{next}, b.master.hellos })
	b.mu.Lock()
	delete(b.listeners, masterAddress)
	b.mu.Unlock()
	b.server.Stop()
	await("the broker does not join at the next master", func() bool { return b.master.hellos > hellos })
}
