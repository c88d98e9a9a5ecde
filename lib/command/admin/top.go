package admin

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/tui"
)

// topOptions are the flags of top.
type topOptions struct {
	once, readOnly, ascii bool
	topic                 string
}

func newTop(e *cli.Env) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top [TOPIC]",
		Short: "Watch the cluster: topics, segments, brokers and what changes",
		Long: `Watch the cluster on the whole terminal: topics and their traffic, a topic's
segments over its partitions, brokers, and the changes of layouts as they happen.
Press ? for the keys. Splitting, merging and draining by hand ask first.

With --once it prints what there is now and ends, on a terminal or not: of the
cluster, or of TOPIC.`,
		Example: `  smq-admin top
  smq-admin top orders --read-only
  smq-admin top --once -o json | jq '.topics[] | select(.bytes_per_second > 1e6) | .topic'`,
		Args: cli.Args("[TOPIC]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				topic, err := smq.ParseTopic(args[0])
				if err != nil {
					return cli.Exit(cli.ExitUsage, err)
				}
				o.topic = topic.String()
			}
			if o.once {
				return topOnce(cmd.Context(), e, o.topic)
			}
			if cli.Typed(cmd.Flags(), "output") {
				return cli.Usagef("--output is for top --once")
			}
			return top(cmd.Context(), e, o)
		},
		ValidArgsFunction: connect.CompleteTopic(e),
	}
	f := cmd.Flags()
	f.BoolVar(&o.once, "once", false, "print what there is now, and end")
	f.BoolVar(&o.readOnly, "read-only", false, "refuse keys that change the cluster")
	f.BoolVar(&o.ascii, "ascii", false, "draw with plain characters (default where the locale is not UTF-8)")
	e.AddOutputFlag(cmd)
	return cmd
}

// top shows the console until it is quit.
func top(ctx context.Context, e *cli.Env, o topOptions) error {
	if !e.StdinTerminal || !e.StdoutTerminal || e.Getenv("TERM") == "dumb" {
		return cli.Usagef("top needs a terminal that can place the cursor; without one, use top --once, or events -f")
	}
	// What the client has to get around is shown in the console: lines on
	// standard error would go through its screen.
	quiet := &cli.Env{Name: e.Name, Getenv: e.Getenv, Flags: e.Flags}
	quiet.Flags.Verbose = true
	backend := startConsole(ctx, func(ctx context.Context) (*client.Client, error) { return dialConsole(ctx, quiet, o.topic) })
	defer backend.close()
	err := tui.Run(ctx, tui.Options{
		Backend: backend, Topic: o.topic, ReadOnly: o.readOnly,
		ASCII: o.ascii || plainLocale(e.Getenv), NoColor: e.Plain(),
		In: os.Stdin, Out: os.Stdout, Last: e.OnSecondSignal,
	})
	var fault *tui.PanicError
	switch {
	case errors.Is(err, tui.ErrInterrupted):
		return &cli.SignalError{Signal: syscall.SIGINT}
	case errors.As(err, &fault):
		if e.Getenv("SMQ_DEBUG") != "" {
			_, _ = e.Stderr.Write(fault.Stack) // nobody is left to tell when this fails
		}
		panic(fault.Value) // which is told as every other fault is
	}
	return err
}

// plainLocale reports whether the locale says that characters are not UTF-8. One
// that is not set says nothing.
func plainLocale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}

// eventOf is a version as it was told when it was written.
func eventOf(topic *smqpb.TopicConfig, v *smqpb.Layout, opened []*smqpb.Segment) *smqpb.LayoutEvent {
	return &smqpb.LayoutEvent{
		Topic: topic.GetTopic(), TopicId: topic.GetTopicId(), Version: v.GetVersion(), Cause: v.GetCause(), CreatedMs: v.GetCreatedMs(),
		Sealed: v.GetSealed(), Opened: opened, Reason: v.GetReason(), Loads: v.GetLoads(), PauseMs: v.GetPauseMs(),
		Leader: v.GetLeader(), Segments: int32(len(v.GetSegments())),
	}
}
