//go:build unix && !linux

package e2e

import (
	"bytes"
	"os/exec"
	"strconv"
	"syscall"
)

// attributes have a child die with this process, where there is a way to.
func attributes() *syscall.SysProcAttr { return nil }

// awaitPause waits until a child has stopped, after SIGSTOP.
func awaitPause(pid int) error {
	for {
		state, err := processColumn(pid, "state")
		if err != nil || bytes.HasPrefix(state, []byte("T")) {
			return err
		}
	}
}

// memoryOf is what a process holds in memory now, in bytes; the most it ever
// held is not known here.
func memoryOf(pid int) (now, peak int64, err error) {
	column, err := processColumn(pid, "rss")
	if err != nil {
		return 0, 0, err
	}
	kib, err := strconv.ParseInt(string(column), 10, 64)
	return kib << 10, kib << 10, err
}

func processColumn(pid int, name string) ([]byte, error) {
	out, err := exec.Command("ps", "-o", name+"=", "-p", strconv.Itoa(pid)).Output()
	return bytes.TrimSpace(out), err
}
