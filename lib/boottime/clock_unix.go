//go:build linux || darwin

package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

func system() func() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clockID, &t) != nil {
		return Steady()
	}
	return func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(clockID, &t) // it was there a moment ago
		return time.Duration(t.Nano())
	}
}
