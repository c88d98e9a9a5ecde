package admin

import (
	"context"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/broker"
	"github.com/seaweedmq/smq/lib/command/local"
	"github.com/seaweedmq/smq/lib/command/master"
)

// newRunAs runs the command tree of a daemon, so that the demo needs no other
// binary than this one. The end of standard input stops it like SIGTERM: so it
// ends with whoever started it, also on systems without signals.
func newRunAs(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:                local.RunAs + " smq-master|smq-broker FLAGS…",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("which one?")
			}
			builds := map[string]func(*cli.Env) *cobra.Command{"smq-master": master.New, "smq-broker": broker.New}
			build, known := builds[args[0]]
			if !known {
				return cli.OneOf("daemon", args[0], "smq-master", "smq-broker")
			}
			ctx, cancel := context.WithCancelCause(cmd.Context())
			defer cancel(nil)
			go func() {
				_, _ = io.Copy(io.Discard, e.Stdin) // however it ends, it has ended
				cancel(&cli.SignalError{Signal: syscall.SIGTERM})
			}()
			if code := cli.NewEnv(args[0]).Run(ctx, build, args[1:]); code != cli.ExitDone {
				return cli.Exit(code, nil)
			}
			return nil
		},
	}
}
