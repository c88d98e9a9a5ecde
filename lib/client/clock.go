package client

import "time"

// clock tells the time since some moment in the past. It goes on while the
// machine sleeps, where the system can tell.
type clock func() time.Duration

// steadyClock is the process's clock where there is nothing better.
func steadyClock() clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
