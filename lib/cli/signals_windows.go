package cli

import (
	"os"
	"syscall"
)

// interruptions are the signals that end a command.
func (e *Env) interruptions() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM} }
