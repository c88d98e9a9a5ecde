package node

import "runtime/debug"

// LimitMemory has garbage collected in time for the process to stay below twice
// the bytes that its brokers together buffer and cache at most. Otherwise garbage
// alone may take as much as all that is in use. A GOMEMLIMIT in the environment
// goes before.
func LimitMemory(getenv func(string) string, bound int64) {
	if limit, ok := memoryLimit(getenv, bound); ok {
		debug.SetMemoryLimit(limit)
	}
}

// memoryLimit leaves room for what the limit does not count: the program itself.
func memoryLimit(getenv func(string) string, bound int64) (limit int64, ok bool) {
	return bound + bound/2, getenv("GOMEMLIMIT") == ""
}
