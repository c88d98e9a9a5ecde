package sim

import "fmt"

// Violation says which promise was broken, and how.
type Violation struct {
	Promise string // "P1" to "P8", or "answers" where a call got none
	Text    string
}

// Error names the promise first.
func (v *Violation) Error() string { return v.Promise + ": " + v.Text }

// Violated makes a Violation.
func Violated(promise, format string, args ...any) *Violation {
	return &Violation{Promise: promise, Text: fmt.Sprintf(format, args...)}
}
