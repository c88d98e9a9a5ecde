//go:build unix

package weedtest

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a running server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed after its end
	err  error         // of its end; valid after done
}

// startProcess starts a process that does not outlive this one, where the
// system offers that. Such a process ends with the thread that started it, so a
// goroutine keeps one for it.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = attributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// end sends a signal and waits for the process's end. A process that is paused
// takes no signal but SIGKILL.
func (p *process) end(sig syscall.Signal) {
	// An error means that it has ended.
	_ = p.signal(sig)
	<-p.done
}

func (p *process) kill() { p.end(syscall.SIGKILL) }

// await polls until ready returns nil, as long as the process lives.
func (p *process) await(ctx context.Context, ready func(ctx context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended by itself: %v", p.err)
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w: %v", ctx.Err(), last)
		case <-tick.C:
		}
	}
}
