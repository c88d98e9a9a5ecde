package torture

import (
	"testing"

	"golang.org/x/sys/unix"
)

// filesOf is how many files a child may have open.
func filesOf(t *testing.T, p *process) uint64 {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		t.Fatal(err)
	}
	return limit.Cur
}

func TestStarving(t *testing.T) {
	d, _ := newTestDaemon(t, "good")
	start(t, d)
	p := d.running()
	before := filesOf(t, p)
	feed := starveAll([]*daemon{d})
	if got := filesOf(t, p); got != 0 {
		t.Errorf("starved, it may open %d files", got)
	}
	// It accepts this connection when it may open files again.
	heard := make(chan string, 1)
	go func() { heard <- said(t, d) }()
	feed()
	if got := <-heard; got != "good" {
		t.Errorf("fed again, it said %q", got)
	}
	if got := filesOf(t, p); got != before {
		t.Errorf("fed again, it may open %d files, before %d", got, before)
	}
	d.kill()
	feed() // harmless
}
