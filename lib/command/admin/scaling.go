package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var scalingModes = []string{"off", "manual", "auto"}

// scalingFlags are the flags that say when a topic's segments split and merge.
type scalingFlags struct {
	mode       string
	splitAbove []string
	min, max   int32
	coolDown   cli.Duration
}

// scalingFields are the flags' names, and what the protocol calls what they set.
var scalingFields = []struct {
	flag   string
	fields []string
}{
	{"scaling", []string{"mode"}},
	{"split-above", []string{"split_bytes_per_second", "split_messages_per_second"}},
	{"min-segments", []string{"min_segments"}},
	{"max-segments", []string{"max_segments"}},
	{"cool-down", []string{"cool_down_ms"}},
}

func (s *scalingFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.mode, "scaling", "", "`MODE`: off, manual (only on request) or auto: whether segments split and merge")
	f.StringSliceVar(&s.splitAbove, "split-above", nil, "split a segment above this `RATE`, 20MB/s or 50000msg/s; may be given once for each")
	f.Int32Var(&s.min, "min-segments", 0, "keep at least `N` segments")
	f.Int32Var(&s.max, "max-segments", 0, "make at most `N` segments")
	f.Var(&s.coolDown, "cool-down", "the least time between two changes of the same partitions")
	connect.CompleteWords(cmd, "scaling", scalingModes...)
}

// changed reports whether any of the flags is given.
func (s *scalingFlags) changed(f *pflag.FlagSet) bool {
	for _, field := range scalingFields {
		if f.Changed(field.flag) {
			return true
		}
	}
	return false
}

// parse is what the flags say; nil when none is given.
func (s *scalingFlags) parse(f *pflag.FlagSet) (*smqpb.Scaling, error) {
	if !s.changed(f) {
		return nil, nil
	}
	out := &smqpb.Scaling{Mode: s.mode, MinSegments: s.min, MaxSegments: s.max, CoolDownMs: time.Duration(s.coolDown).Milliseconds()}
	if f.Changed("scaling") && !slices.Contains(scalingModes, s.mode) {
		return nil, cli.OneOf("mode of scaling", s.mode, scalingModes...)
	}
	for _, least := range []struct {
		flag string
		n    int64
		text string
	}{{"min-segments", int64(s.min), "1"}, {"max-segments", int64(s.max), "1"}, {"cool-down", out.CoolDownMs, "1ms"}} {
		if f.Changed(least.flag) && least.n < 1 {
			return nil, cli.Usagef("--%s %s: the least is %s; topic alter --reset %s goes back to the default",
				least.flag, f.Lookup(least.flag).Value, least.text, least.flag)
		}
	}
	if s.max > 0 && s.min > s.max {
		return nil, cli.Usagef("--min-segments %d is above --max-segments %d", s.min, s.max)
	}
	for _, text := range s.splitAbove {
		v, err := parseSpeed(text)
		if err != nil {
			return nil, cli.Usagef("--split-above %w", err)
		}
		target := &out.SplitMessagesPerSecond
		if v.bytes {
			target = &out.SplitBytesPerSecond
		}
		if *target != 0 {
			return nil, cli.Usagef("--split-above %s: only one rate in bytes and one in messages", text)
		}
		*target = v.perSecond
	}
	return out, nil
}

func newTopicAlter(e *cli.Env) *cobra.Command {
	var scaling scalingFlags
	var changes client.TopicChanges
	var reset []string
	cmd := &cobra.Command{
		Use:   "alter TOPIC…",
		Short: "Change when topics' segments split and merge, and how many replicas they have",
		Long: `Change when topics' segments split and merge, and how many brokers hold what is not
stored yet. What no flag names stays as it is. The number of partitions and what the
partition key is never change.

--replicas counts for segments to come: those that are live keep theirs until they
are replaced.`,
		Example: `  smq-admin topic alter orders --scaling auto --split-above 20MB/s --split-above 50000msg/s
  smq-admin topic alter orders --max-segments 16 --reset cool-down
  smq-admin topic alter orders --replicas 3`,
		Args: cli.Args("TOPIC…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topics, err := parseTopics(args)
			if err != nil {
				return err
			}
			if changes.Scaling, err = scaling.parse(cmd.Flags()); err != nil {
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
	scaling.register(cmd)
	cmd.Flags().StringSliceVar(&reset, "reset", nil, "set back to the cluster's default what these `FLAGS` set: scaling, split-above, …, or all")
	cmd.Flags().Int32Var(&changes.Replicas, "replicas", 0, "`N` brokers hold what is not stored yet, 1 to 5, if so many live")
	connect.CompleteWords(cmd, "reset", resettable()...)
	return cmd
}

func resettable() []string {
	names := []string{"all"}
	for _, field := range scalingFields {
		names = append(names, field.flag)
	}
	return names
}

// resetFields are the fields that --reset names by their flags. What is set at
// the same time cannot be.
func resetFields(f *pflag.FlagSet, flags []string) ([]string, error) {
	var fields []string
	for _, name := range flags {
		if err := cli.OneOf("flag to reset", name, resettable()...); err != nil {
			return nil, err
		}
	}
	for _, field := range scalingFields {
		if !slices.Contains(flags, field.flag) && !slices.Contains(flags, "all") {
			continue
		}
		if f.Changed(field.flag) {
			return nil, cli.Usagef("--%s and --reset %s: one or the other", field.flag, strings.Join(flags, ","))
		}
		fields = append(fields, field.fields...)
	}
	return fields, nil
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
			return connect.NoTopic(err, topic)
		}
		e.Infof("altered topic %s: %s", topic, describeConfig(config))
	}
	return nil
}

// describeConfig tells what of a configuration may be altered.
func describeConfig(c *smqpb.TopicConfig) string {
	replicas := "replicas by default"
	if n := c.GetReplicas(); n > 0 {
		replicas = fmt.Sprintf("%d replicas", n)
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
		parts = append(parts, "split above "+byteRate(n))
	}
	if n := s.GetSplitMessagesPerSecond(); n > 0 {
		parts = append(parts, "split above "+messageRate(n))
	}
	if n := s.GetMinSegments(); n > 0 {
		parts = append(parts, fmt.Sprintf("at least %d %s", n, plural("segment", int(n))))
	}
	if n := s.GetMaxSegments(); n > 0 {
		parts = append(parts, fmt.Sprintf("at most %d %s", n, plural("segment", int(n))))
	}
	if ms := s.GetCoolDownMs(); ms > 0 {
		parts = append(parts, fmt.Sprintf("cool-down %v", time.Duration(ms)*time.Millisecond))
	}
	if parts == nil {
		return mode
	}
	return mode + ": " + strings.Join(parts, ", ")
}
