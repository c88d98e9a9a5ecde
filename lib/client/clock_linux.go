package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// newClock counts time that the machine slept through: an ack that waited as
// long is an old one.
func newClock() clock {
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
