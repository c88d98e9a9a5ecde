package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Child is a daemon in a process of its own: this program, started again.
type Child struct {
	Name    string
	Address string // gRPC

	cmd   *exec.Cmd
	stdin io.Closer // closed, it stops in good order
	log   string    // file with its standard error
	ended chan struct{}
	err   error // of the process, once it has ended
}

// RunAs is the command of smq-admin that runs another binary's command tree,
// and ends it in good order when standard input does.
const RunAs = "run-as"

// childPoll is how often a child's address file is looked for.
const childPoll = 20 * time.Millisecond

// StartChild starts a daemon, binary with args, and returns when it is ready.
// Its files are in dir, by its name. The end of ctx before that kills it.
func StartChild(ctx context.Context, dir, name, binary string, args ...string) (*Child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	c := &Child{Name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	addrFile := filepath.Join(dir, name+".json")
	c.cmd = exec.Command(program, append([]string{RunAs, binary, "--listen", "127.0.0.1:0", "--http", "off", "--addr-file", addrFile}, args...)...)
	c.cmd.Args[0] = os.Args[0]
	c.cmd.SysProcAttr = apart()
	if err := c.start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if c.Address, err = c.waitReady(ctx, addrFile); err != nil {
		c.Kill()
		return nil, fmt.Errorf("start %s: %w%s", name, err, c.lastWords())
	}
	return c, nil
}

func (c *Child) start() error {
	log, err := os.Create(c.log)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	c.cmd.Stderr = log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return nil
}

// waitReady waits for the address file and returns the gRPC address in it.
func (c *Child) waitReady(ctx context.Context, addrFile string) (string, error) {
	ticker := time.NewTicker(childPoll)
	defer ticker.Stop()
	for {
		content, err := os.ReadFile(addrFile)
		if err == nil {
			var addresses struct {
				GRPC string `json:"grpc"`
			}
			if err := json.Unmarshal(content, &addresses); err != nil {
				return "", err
			}
			return addresses.GRPC, nil
		}
		select {
		case <-ticker.C:
		case <-c.ended:
			return "", fmt.Errorf("it has ended: %w", errors.Join(c.err, smq.ErrUnavailable))
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// lastWords is the last line that the child wrote.
func (c *Child) lastWords() string {
	content, err := os.ReadFile(c.log)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return strings.TrimRight(": "+string(lines[len(lines)-1]), ": ")
}

// Kill ends the process at once, as kill -9 does, and waits for its end.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // it fails when the process has ended
	<-c.ended
}

// Stop ends the process in good order, or at once when ctx ends.
func (c *Child) Stop(ctx context.Context) error {
	_ = c.stdin.Close() // it fails when the process has ended
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.Kill()
		return fmt.Errorf("stop %s: %w", c.Name, context.Cause(ctx))
	}
	if c.err != nil {
		return fmt.Errorf("stop %s: %w%s", c.Name, c.err, c.lastWords())
	}
	return nil
}
