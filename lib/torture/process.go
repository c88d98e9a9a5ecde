package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
)

// process is a running child.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed after its end
	err   error         // of its end; valid after ended
	asked atomic.Bool   // to end, by us
}

// startProcess starts a child whose output goes to the end of a file. Its home
// is the file's directory.
func startProcess(cmd *exec.Cmd, output string) (*process, error) {
	log, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = childEnvironment(filepath.Dir(output))
	cmd.SysProcAttr = childAttributes()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	// A child of run-as ends with its standard input; others do not care.
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := make(chan error)
	go p.attend(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// attend starts the child and waits for its end. Where the system offers that,
// a child ends with the thread that started it, so this goroutine keeps its
// thread.
func (p *process) attend(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
		close(p.ended)
	}
}

// childEnvironment keeps this machine's configuration away from the children.
func childEnvironment(home string) []string {
	env := []string{"NO_COLOR=1", "HOME=" + home, "XDG_CONFIG_HOME=" + home}
	for _, name := range []string{"PATH", "TMPDIR", "GOCOVERDIR", "GORACE", "SYSTEMROOT", "TEMP"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the child at once, whatever it is doing, paused or not.
func (p *process) kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Kill() // it fails when the child has ended
	<-p.ended
}

// errHung means that a child did not end when it was told to.
var errHung = errors.New("it did not end by itself and was killed")

// stop ends the child in good order, or kills it when ctx ends.
func (p *process) stop(ctx context.Context) error {
	p.asked.Store(true)
	if err := terminate(p); err != nil {
		p.kill()
		return err
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("it ended with %w", p.err)
		}
		return nil
	case <-ctx.Done():
		p.kill()
		return errHung
	}
}
