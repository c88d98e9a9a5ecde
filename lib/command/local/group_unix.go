//go:build !windows

package local

import "syscall"

// apart puts a child into a process group of its own: a Ctrl-C on the terminal
// is for the parent, which ends its children itself and in its own order.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
