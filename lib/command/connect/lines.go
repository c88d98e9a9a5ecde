package connect

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/seaweedmq/smq/lib/cli"
)

// lines is a log for people at a terminal: a line for each record that matters
// to them, with what went wrong at its end.
type lines struct {
	e     *cli.Env
	attrs []slog.Attr
}

// Enabled keeps what is of use only to those who look for a fault to -v.
func (l lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle prints a record, unless -q.
func (l lines) Handle(_ context.Context, r slog.Record) error {
	var text, why strings.Builder
	if r.Level >= slog.LevelWarn {
		text.WriteString("warning: ")
	}
	text.WriteString(r.Message)
	attrs := slices.Clone(l.attrs)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	for _, a := range attrs {
		if a.Key == "err" || a.Key == "error" {
			fmt.Fprintf(&why, ": %v", a.Value)
		} else {
			fmt.Fprintf(&text, ", %s %v", a.Key, a.Value)
		}
	}
	l.e.Infof("%s%s", text.String(), why.String())
	return nil
}

// WithAttrs adds to every record.
func (l lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lines{l.e, append(slices.Clone(l.attrs), attrs...)}
}

// WithGroup leaves groups out: names alone say enough on a line.
func (l lines) WithGroup(string) slog.Handler { return l }
