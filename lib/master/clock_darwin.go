package master

import "golang.org/x/sys/unix"

const suspendClock = unix.CLOCK_MONOTONIC
