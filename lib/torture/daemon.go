package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/wire"
)

// daemon is a master, a broker or a server of the store: a process that comes
// and goes behind doors that stay.
type daemon struct {
	name string
	dir  string // for its log and its address file
	// doors lead to it. Each start takes free ports for what is behind them,
	// unless the addresses are fixed.
	doors []*wire.Door
	fixed []string
	// command makes the process that listens at the given addresses, one for
	// each door.
	command func(addresses []string) *exec.Cmd
	// died is told when the process has ended though nobody asked it to.
	died func(d *daemon, how string)

	mu      sync.Mutex
	process *process // nil while it is down
	claimed bool     // by a fault
}

// address is the one by which others reach its first door.
func (d *daemon) address() string { return d.doors[0].Address() }

func (d *daemon) logFile() string  { return filepath.Join(d.dir, d.name+".log") }
func (d *daemon) addrFile() string { return filepath.Join(d.dir, d.name+".json") }

// running is the process, nil when it is down.
func (d *daemon) running() *process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.process
}

// start starts the process, unless it runs.
func (d *daemon) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		return nil
	}
	addresses := d.fixed
	if addresses == nil {
		var err error
		if addresses, err = freeAddresses(len(d.doors)); err != nil {
			return fmt.Errorf("start %s: %w", d.name, err)
		}
	}
	_ = os.Remove(d.addrFile()) // one that was killed has left it
	p, err := startProcess(d.command(addresses), d.logFile())
	if err != nil {
		return fmt.Errorf("start %s: %w", d.name, err)
	}
	for i, door := range d.doors {
		door.Lead(addresses[i])
	}
	d.process = p
	go d.watch(p)
	return nil
}

// watch notices that the process ends by itself.
func (d *daemon) watch(p *process) {
	<-p.ended
	d.mu.Lock()
	if d.process == p {
		d.process = nil
	}
	d.mu.Unlock()
	if !p.asked.Load() {
		d.died(d, fmt.Sprintf("it ended by itself (%v): %s", p.err, d.lastWords()))
	}
}

// lastWords is the last line that the process has written.
func (d *daemon) lastWords() string {
	content, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(lines[len(lines)-1])
}

// take is the process, which from now on counts as down.
func (d *daemon) take() *process {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.process
	d.process = nil
	return p
}

// kill ends the process at once, if it runs.
func (d *daemon) kill() {
	if p := d.take(); p != nil {
		p.kill()
	}
}

// stop ends the process in good order, if it runs.
func (d *daemon) stop(ctx context.Context) error {
	p := d.take()
	if p == nil {
		return nil
	}
	if err := p.stop(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", d.name, err)
	}
	return nil
}

// readyPoll is how often it is looked whether a daemon is ready.
const readyPoll = 50 * time.Millisecond

// ready reports whether the daemon has written its address file.
func (d *daemon) ready() bool {
	_, err := os.Stat(d.addrFile())
	return err == nil
}

// awaitReady waits until the daemon has written its address file.
func (d *daemon) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		if d.ready() {
			return nil
		}
		p := d.running()
		if p == nil {
			return fmt.Errorf("start %s: %w: it has ended: %s", d.name, smq.ErrUnavailable, d.lastWords())
		}
		select {
		case <-ticker.C:
		case <-p.ended:
		case <-ctx.Done():
			return fmt.Errorf("start %s: it is not ready: %w: %s", d.name, errors.Join(smq.ErrTimeout, context.Cause(ctx)), d.lastWords())
		}
	}
}

// addressTaken is how a daemon says that it cannot listen: another process has
// taken the port since it was found free.
const addressTaken = "it is in use; choose another"

func wantsAnotherPort(how string) bool { return strings.Contains(how, addressTaken) }

// freeAddresses are addresses of this machine that are free now.
func freeAddresses(n int) ([]string, error) {
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // not before all are found, so that they differ
		all = append(all, l.Addr().String())
	}
	return all, nil
}
