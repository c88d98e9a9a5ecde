package admin

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
)

const long = `Administer a cluster: topics, brokers, masters and the messages in the store.

` + cli.ExitCodes

const examples = `  smq-admin up --brokers 3                      # a whole cluster on this machine
  smq-admin topic create orders --partitions 128
  smq-admin topic list -o json
  smq-admin broker drain 127.0.0.1:7310 --wait
  smq-admin log verify orders
  smq-admin doctor`

// New is the command tree of smq-admin.
func New(e *cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:     "smq-admin",
		Short:   "Administer a cluster",
		Long:    long,
		Example: examples,
	}
	e.AddMasterFlag(root)
	e.AddTimeoutFlag(root, cli.DefaultTimeout, "give up after this long; 0: never")
	e.AddCommonFlags(root)
	root.AddCommand(
		newUp(e), newDemo(e), newTopic(e), newBroker(e), newMaster(e), newSegment(e), newEvents(e), newTop(e),
		newLog(e), newDoctor(e), newBench(e), newTorture(e), newCompletion(), newRunAs(e),
	)
	return root
}

// withClient runs f with a connection to the cluster, within --timeout.
func withClient(ctx context.Context, e *cli.Env, f func(ctx context.Context, c *client.Client) error) error {
	return withClientUntimed(ctx, e, func(ctx context.Context, c *client.Client) error {
		ctx, cancel := e.WithTimeout(ctx)
		defer cancel()
		return f(ctx, c)
	})
}

// withClientUntimed runs f with a connection to the cluster; only connecting is
// subject to --timeout.
func withClientUntimed(ctx context.Context, e *cli.Env, f func(ctx context.Context, c *client.Client) error) error {
	logger, err := e.Logger(slog.LevelError)
	if err != nil {
		return err
	}
	c, err := connect.Dial(ctx, e, logger)
	if err != nil {
		return err
	}
	defer c.Close() // nothing is under way
	return f(ctx, c)
}

// elsewhere is what other tools call a command.
var elsewhere = map[string][]string{
	"list":     {"ls", "get"},
	"describe": {"show", "info", "inspect"},
	"create":   {"add", "new", "make"},
	"alter":    {"update", "edit", "set", "config"},
	"delete":   {"rm", "del", "remove", "drop"},
	"drain":    {"decommission", "remove"},
	"remove":   {"rm", "delete"},
	"history":  {"log"},
}

// group is a command that only holds others, and shows an example of each.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: name, Short: short}
	g.AddCommand(commands...)
	for _, c := range commands {
		c.SuggestFor = elsewhere[c.Name()]
	}
	var examples []string
	for _, c := range commands {
		lines := strings.Split(c.Example, "\n")
		shown := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, name+" "+c.Name()) })
		examples = append(examples, lines[max(shown, 0)])
	}
	g.Example = strings.Join(examples, "\n")
	return g
}
