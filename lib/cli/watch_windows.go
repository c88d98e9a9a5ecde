package cli

import "context"

// WatchOutput derives a context. Windows does not tell when the reader of
// standard output leaves; the next write does.
func (e *Env) WatchOutput(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}
