//go:build !windows

package cli

import (
	"os"
	"slices"
	"syscall"
)

// daemons are the programs that dump their goroutines on SIGQUIT, as Go does by
// itself: that tells an administrator why one hangs.
var daemons = []string{"smq-master", "smq-broker"}

// interruptions are the signals that end a command.
func (e *Env) interruptions() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !slices.Contains(daemons, e.Name) {
		signals = append(signals, syscall.SIGQUIT)
	}
	return signals
}
