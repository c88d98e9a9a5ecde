// Package connect is the way of the commands to the cluster: connecting within
// --timeout, and completions that ask the cluster.
package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// Dial connects to the masters that --master names, within --timeout. What the
// client has to get around, now and later, is told in lines on standard error,
// unless -q; with -v it goes to logger instead.
func Dial(ctx context.Context, e *cli.Env, logger *slog.Logger) (*client.Client, error) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	if !e.Flags.Verbose {
		logger = slog.New(lines{e: e})
	}
	c, err := client.Connect(ctx, client.Config{Masters: e.Flags.Masters, Logger: logger})
	if errors.Is(err, smq.ErrUnavailable) {
		err = fmt.Errorf("%w; start one (smq-admin up) or name it with --master or SMQ_MASTER", err)
	}
	return c, err
}

// NoTopic says plainly that topic is not there, if that is what err says, and
// what to do; any other error it returns as it is.
func NoTopic(err error, topic smq.Topic) error {
	if !errors.Is(err, smq.ErrNotFound) {
		return err
	}
	return fmt.Errorf("topic %s: %w; smq-admin topic list shows those that there are", topic, smq.ErrNotFound)
}

// WarnOfPartitions warns when a topic, which was to be created and was there
// already, has another number of partitions than it would have got.
func WarnOfPartitions(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, wanted int32) {
	d, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return // whatever uses the topic will tell
	}
	if n := d.GetConfig().GetPartitions(); n != wanted {
		e.Warnf("topic %s was there already, with %s, not %d", topic, smq.Count(n, "partition"), wanted)
	}
}

// completionTimeout bounds how long a shell waits for completions.
const completionTimeout = 2 * time.Second

// CompleteWords makes a flag complete to fixed words.
func CompleteWords(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cli.Words(words...)); err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
}

// CompleteTopics completes every argument to the names of topics.
func CompleteTopics(e *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return ask(cmd, e, topics), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFirstTopic completes the first argument to the names of topics, and
// the others to files.
func CompleteFirstTopic(e *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return ask(cmd, e, topics), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteBrokers completes the only argument to the ids of brokers.
func CompleteBrokers(e *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return ask(cmd, e, brokers), cobra.ShellCompDirectiveNoFileComp
	}
}

// ask asks the cluster, and offers nothing when it does not answer.
func ask(cmd *cobra.Command, e *cli.Env, question func(context.Context, *client.Client) []string) []string {
	if err := e.Configure(cmd); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, err := client.Connect(ctx, client.Config{Masters: e.Flags.Masters})
	if err != nil {
		return nil
	}
	defer c.Close() // nothing is under way
	return question(ctx, c)
}

func topics(ctx context.Context, c *client.Client) []string {
	var names []string
	for t, err := range c.ListTopics(ctx, "", client.ListOptions{NamesOnly: true}) {
		if t == nil {
			break
		}
		if err == nil { // else it is damaged, and of no use
			names = append(names, t.GetConfig().GetTopic())
		}
	}
	return names
}

func brokers(ctx context.Context, c *client.Client) []string {
	info, err := c.Cluster(ctx)
	if err != nil {
		return nil
	}
	var ids []string
	for _, b := range info.GetBrokers() {
		ids = append(ids, b.GetId()+"\t"+b.GetAddress())
	}
	return ids
}
