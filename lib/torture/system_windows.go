package torture

import (
	"errors"
	"syscall"
)

// canFreeze reports whether processes can be paused on this system.
const canFreeze = false

// canStarve reports whether other processes' files can be limited on this
// system.
const canStarve = false

// terminate tells a child to end in good order: it sees the end of its standard
// input.
func terminate(p *process) error { return p.stdin.Close() }

func freezeProcess(*process) error { return errors.ErrUnsupported }
func thawProcess(*process) error   { return errors.ErrUnsupported }

func starveProcess(*process) (feed func(), err error) { return nil, errors.ErrUnsupported }

func childAttributes() *syscall.SysProcAttr { return nil }
