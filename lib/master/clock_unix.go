//go:build linux || darwin

package master

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemClock goes on while the machine is suspended.
func systemClock() func() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(suspendClock, &t) != nil {
		return steadyClock()
	}
	return func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(suspendClock, &t) // it was there a moment ago
		return time.Duration(t.Nano())
	}
}
