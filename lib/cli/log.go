package cli

import (
	"log/slog"
)

// Logger is where a command logs to: standard error. With -q only errors are
// logged; with -v everything.
//
// quietly is the level without either flag: a daemon logs what it does, a tool
// only what is wrong.
func (e *Env) Logger(quietly slog.Level) (*slog.Logger, error) {
	level := quietly
	switch {
	case e.Flags.Quiet:
		level = slog.LevelError
	case e.Flags.Verbose:
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	switch e.Flags.LogFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(e.Stderr, options)), nil
	case "text", "":
		return slog.New(slog.NewTextHandler(e.Stderr, options)), nil
	}
	return nil, OneOf("log format", e.Flags.LogFormat, "text", "json")
}
