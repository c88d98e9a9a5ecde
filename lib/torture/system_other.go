//go:build unix && !linux

package torture

import (
	"errors"
	"syscall"
)

// canStarve reports whether other processes' files can be limited on this
// system.
const canStarve = false

// childAttributes keep the terminal's signals from a child.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func starveProcess(*process) (feed func(), err error) { return nil, errors.ErrUnsupported }
