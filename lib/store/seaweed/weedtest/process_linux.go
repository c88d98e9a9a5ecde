package weedtest

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitPause waits until all threads of the process have stopped, after
// SIGSTOP.
func (p *process) awaitPause() error {
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for the server's pause: %w", err)
		}
		return nil
	}
}
