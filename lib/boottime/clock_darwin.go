package boottime

import "golang.org/x/sys/unix"

const clockID = unix.CLOCK_MONOTONIC // which counts sleep there
