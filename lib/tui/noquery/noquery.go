// Package noquery keeps the terminal library from talking to the terminal while
// the program starts. Bubble Tea's first version asks the terminal for its
// background colour in an init function: every command of a program that merely
// contains it would write escape sequences to standard output, swallow what was
// typed ahead, and stand still for seconds where nobody answers.
//
// The library does not ask terminals of the names that begin with "screen". This
// package's init names ours so; its path and its having no imports but syscall
// put it before the library's. Whoever imports the library calls Restore in an
// init of its own, which runs after it. A test of lib/command/admin looks at
// what a program writes.
package noquery

import "syscall"

var (
	was string
	set bool
)

func init() {
	was, set = syscall.Getenv("TERM")
	_ = syscall.Setenv("TERM", "screen") // its only errors are about the name
}

// Restore gives the environment its TERM back.
func Restore() {
	if set {
		_ = syscall.Setenv("TERM", was)
	} else {
		_ = syscall.Unsetenv("TERM")
	}
}
