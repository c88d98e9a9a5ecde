//go:build !linux

package broker

import "time"

func bootClock() func() time.Duration { return steadyClock() }
