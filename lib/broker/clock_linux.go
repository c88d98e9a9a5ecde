package broker

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootClock counts time that the machine slept through: a lease ends then too.
func bootClock() func() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return steadyClock()
	}
	return func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // it was there a moment ago
		return time.Duration(t.Nano())
	}
}
