package torture

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canStarve reports whether other processes' files can be limited on this
// system.
const canStarve = true

// childAttributes have a child die with this process, and keep the terminal's
// signals from it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// starveProcess keeps a child from opening any files, and connections, until
// feed is called. It fails when the child has ended.
func starveProcess(p *process) (feed func(), err error) {
	var before unix.Rlimit
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return nil, err
	}
	none := unix.Rlimit{Cur: 0, Max: before.Max}
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, &none, nil); err != nil {
		return nil, err
	}
	return func() {
		_ = unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, &before, nil) // it fails when the child has ended
	}, nil
}
