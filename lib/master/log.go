package master

import (
	"context"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger passes what raft logs on to l. Raft tells its whole life as
// information, and calls every failed attempt at a peer an error: here these
// are debug messages and warnings.
func raftLogger(l *slog.Logger) hclog.Logger {
	out := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off})
	out.RegisterSink(sink{l.With("part", "raft")})
	return out
}

type sink struct{ l *slog.Logger }

// Accept implements hclog.SinkAdapter.
func (s sink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if level >= hclog.Warn {
		to = slog.LevelWarn
	}
	s.l.Log(context.Background(), to, msg, args...)
}
