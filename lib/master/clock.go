package master

import "time"

// steadyClock is the process's monotonic clock.
func steadyClock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
