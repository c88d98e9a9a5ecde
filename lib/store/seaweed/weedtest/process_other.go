//go:build unix && !linux

package weedtest

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

// awaitPause waits until the process has stopped, after SIGSTOP.
func (p *process) awaitPause() error {
	for {
		state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(p.cmd.Process.Pid)).Output()
		if err != nil {
			return fmt.Errorf("wait for the server's pause: %w", err)
		}
		if bytes.HasPrefix(bytes.TrimSpace(state), []byte("T")) {
			return nil
		}
	}
}
