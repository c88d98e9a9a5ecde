//go:build unix

package torture

import "syscall"

// canFreeze reports whether processes can be paused on this system.
const canFreeze = true

// terminate tells a child to end in good order.
func terminate(p *process) error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// freezeProcess has a child stand still, and thawProcess go on. They fail when it has
// ended.
func freezeProcess(p *process) error { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func thawProcess(p *process) error   { return p.cmd.Process.Signal(syscall.SIGCONT) }
