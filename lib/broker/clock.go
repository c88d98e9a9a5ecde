package broker

import "time"

// steadyClock is the process's clock, where there is nothing better.
func steadyClock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
