//go:build !linux

package client

func newClock() clock { return steadyClock() }
