//go:build !linux && !darwin

package master

import "time"

func systemClock() func() time.Duration { return steadyClock() }
