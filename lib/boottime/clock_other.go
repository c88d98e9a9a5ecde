//go:build !linux && !darwin

package boottime

import "time"

func system() func() time.Duration { return Steady() }
