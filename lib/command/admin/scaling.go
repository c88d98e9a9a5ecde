package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/command/scaling"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newTopicAlter(e *cli.Env) *cobra.Command {
	var flags scaling.Flags
	var changes client.TopicChanges
	var reset []string
	cmd := &cobra.Command{
		Use:   "alter TOPIC…",
		Short: "Change when topics' segments split and merge, and how many replicas they have",
		Long: `Change when topics' segments split and merge, and how many brokers hold what is not
stored yet. What no flag names stays as it is. The number of partitions and what the
partition key is never change.

--replicas counts for segments to come, and for live ones that have fewer and are in
use; those that have more keep theirs until they are replaced.`,
		Example: `  smq-admin topic alter orders --scaling auto --split-above 20MB/s --split-above 50000msg/s
  smq-admin topic alter orders --max-segments 16 --reset cool-down
  smq-admin topic alter orders --replicas 3
  smq-admin topic alter orders --reset replicas`,
		Args: cli.Args("TOPIC…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topics, err := parseTopics(args)
			if err != nil {
				return err
			}
			if changes.Scaling, err = flags.Parse(cmd.Flags()); err != nil {
				return err
			}
			if changes.Reset, err = resetFields(cmd.Flags(), reset); err != nil {
				return err
			}
			if err := checkReplicas(cmd.Flags(), changes.Replicas); err != nil {
				return err
			}
			if changes.Scaling == nil && changes.Reset == nil && changes.Replicas == 0 {
				return cli.Usagef("nothing to change: give one of --scaling, --split-above, --min-segments, --max-segments, --cool-down, --reset or --replicas")
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return alterTopics(ctx, e, c, topics, changes)
			})
		},
		ValidArgsFunction: connect.CompleteTopics(e),
	}
	flags.Register(cmd)
	cmd.Flags().StringSliceVar(&reset, "reset", nil, "set back to the cluster's default what these `FLAGS` set: scaling, split-above, …, replicas, or all")
	cmd.Flags().Int32Var(&changes.Replicas, "replicas", 0, "`N` brokers hold what is not stored yet, 1 to 5, if so many live")
	connect.CompleteFlag(cmd, "reset", cli.WordList(resettable()...))
	return cmd
}

func resettable() []string {
	names := []string{"all", "replicas"}
	for _, field := range scaling.Fields {
		names = append(names, field.Flag)
	}
	return names
}

// resetFields are the fields that --reset names by their flags. What is set at
// the same time cannot be.
func resetFields(f *pflag.FlagSet, flags []string) (fields []string, err error) {
	for _, name := range flags {
		if err = cli.OneOf("flag to reset", name, resettable()...); err != nil {
			return nil, err
		}
	}
	take := func(flag string, names ...string) error {
		if !slices.Contains(flags, flag) && !slices.Contains(flags, "all") {
			return nil
		}
		if f.Changed(flag) {
			return cli.Usagef("--%s and --reset %s: one or the other", flag, strings.Join(flags, ","))
		}
		fields = append(fields, names...)
		return nil
	}
	for _, field := range scaling.Fields {
		if err := take(field.Flag, field.Fields...); err != nil {
			return nil, err
		}
	}
	return fields, take("replicas", "replicas")
}

func checkReplicas(f *pflag.FlagSet, n int32) error {
	if f.Changed("replicas") && (n < 1 || n > catalog.MaxReplicas) {
		return cli.Usagef("--replicas %d: a topic has 1 to %d", n, catalog.MaxReplicas)
	}
	return nil
}

func alterTopics(ctx context.Context, e *cli.Env, c *client.Client, topics []smq.Topic, changes client.TopicChanges) error {
	for _, topic := range topics {
		config, err := c.AlterTopic(ctx, topic, changes)
		if err != nil {
			return connect.NoTopic(ctx, c, err, topic)
		}
		e.Infof("altered topic %s: %s", topic, describeConfig(config))
	}
	return nil
}

// describeConfig tells what of a configuration may be altered.
func describeConfig(c *smqpb.TopicConfig) string {
	replicas := "replicas by default"
	if n := c.GetReplicas(); n > 0 {
		replicas = smq.Count(n, "replica")
	}
	return "scaling " + describeScaling(c.GetScaling()) + "; " + replicas
}

// describeScaling is a policy in words; what is not set is left out.
func describeScaling(s *smqpb.Scaling) string {
	mode := s.GetMode()
	if mode == "" {
		mode = "by default"
	}
	var parts []string
	if n := s.GetSplitBytesPerSecond(); n > 0 {
		parts = append(parts, "split above "+smq.ByteRate(n))
	}
	if n := s.GetSplitMessagesPerSecond(); n > 0 {
		parts = append(parts, "split above "+smq.MessageRate(n))
	}
	if n := s.GetMinSegments(); n > 0 {
		parts = append(parts, "at least "+smq.Count(n, "segment"))
	}
	if n := s.GetMaxSegments(); n > 0 {
		parts = append(parts, "at most "+smq.Count(n, "segment"))
	}
	if ms := s.GetCoolDownMs(); ms > 0 {
		parts = append(parts, "cool-down "+cli.FormatDuration(time.Duration(ms)*time.Millisecond))
	}
	if parts == nil {
		return mode
	}
	return mode + ": " + strings.Join(parts, ", ")
}
