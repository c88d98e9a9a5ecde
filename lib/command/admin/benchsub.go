package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/bench"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newBenchSub(e *cli.Env) *cobra.Command {
	o := newBenchFlags()
	o.warmup, o.settle = 0, cli.Duration(time.Minute) // of what is published to be read
	var duration cli.Duration
	cmd := &cobra.Command{
		Use:   "sub",
		Short: "Measure reading: how many messages a second a topic gives",
		Long: `Measure reading: how many messages a second one reader gets out of a topic, from its
beginning to the end that it has at the start.

Without --topic, a topic is made and filled with --messages first, and deleted in the end.

SIGINT and SIGTERM end it early; what was found so far is printed.

` + cli.ExitCodes,
		Example: "  smq-admin bench sub --messages 1000000 --size 100\n  smq-admin bench sub --topic orders -o json",
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := cmd.Flags()
			if o.topic != "" && (f.Changed("messages") || f.Changed("size") || f.Changed("compress")) {
				return cli.Usagef("--topic %s: what is in it is read; --messages, --size and --compress are for a topic of the measurement's own", o.topic)
			}
			p, err := o.parse(f)
			if err != nil {
				return err
			}
			p.options.Duration = 0 // which is the reader's
			return withClientUntimed(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return benchSub(ctx, e, c, o, p, time.Duration(duration))
			})
		},
	}
	cmd.Flags().Int64Var(&o.messages, "messages", benchFill, "without --topic, read `N` messages")
	cmd.Flags().Var(&duration, "duration", "end after this time (default: at the end of the topic)")
	o.topicFlags(cmd, e)
	return cmd
}

func benchSub(ctx context.Context, e *cli.Env, c *client.Client, o *benchFlags, p benchPlan, most time.Duration) error {
	return withTopic(ctx, e, c, p.topic, o, func(topic smq.Topic, config *smqpb.TopicConfig) error {
		if o.topic == "" {
			e.Infof("publishing %s to be read", smq.Count(p.options.Messages, "message"))
			_, filled, err := publishTo(ctx, e, c, topic, p, nil)
			if err == nil {
				err = benchOutcome(ctx, filled)
			}
			if err != nil {
				return err
			}
		}
		result, err := readWhole(ctx, e, c, topic, most)
		if err != nil {
			return connect.NoTopic(ctx, c, err, topic)
		}
		if err := printBench(e, o.output, viewBench("sub", config, p, result)); err != nil {
			return err
		}
		return context.Cause(ctx)
	})
}

// readWhole reads all that a topic holds now, or as much as it can within a
// time; 0 is no limit.
func readWhole(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, most time.Duration) (bench.Result, error) {
	connecting, cancel := e.WithTimeout(ctx)
	defer cancel()
	found, err := c.Offsets(connecting, topic, nil, smqpb.OffsetsRequest_END, time.Time{})
	if err != nil {
		return bench.Result{}, err
	}
	ends := make(map[int32]int64, len(found))
	for _, end := range found {
		ends[end.Partition] = end.Offset
	}
	source, err := c.NewSubscriber(connecting, topic, client.SubscriberOptions{Start: client.Earliest()})
	if err != nil {
		return bench.Result{}, err
	}
	defer source.Close() // it has nothing to lose
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	var reading bench.Reading
	progress := e.StartProgress(false, func() cli.ProgressState {
		return cli.ProgressState{Text: number(reading.Messages()) + " messages read"}
	})
	defer progress.Stop()
	return reading.Read(ctx, source, ends)
}
