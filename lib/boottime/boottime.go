// Package boottime tells the time that has passed, including what the machine slept
// through: leases, and acks that were given under one, run out meanwhile.
package boottime

import "time"

// Clock is a clock that tells the time since some moment in the past. Where the system
// does not count sleep it is Steady.
func Clock() func() time.Duration { return system() }

// Steady is the process's monotonic clock, which may stand still while the machine
// sleeps.
func Steady() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
