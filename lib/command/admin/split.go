package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// reshapeHelp is what split and merge have in common.
const reshapeHelp = `
This ends when the layout has the successors; with --wait when they take messages,
at most after --timeout if that is given. Publishing to the partitions pauses for the
time of one flush; to all others it goes on.`

func newTopicSplit(e *cli.Env) *cobra.Command {
	var at int32
	var wait bool
	cmd := &cobra.Command{
		Use:   "split TOPIC SEGMENT",
		Short: "Replace a segment by two",
		Long: `Replace a live segment of a topic by two. The second one begins with the partition
that --at names, or where the measured load halves.
` + reshapeHelp,
		Example: "  smq-admin topic split orders 3\n  smq-admin topic split orders 3 --at 48 --wait",
		Args:    cli.Args("TOPIC", "SEGMENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at < 1 {
				return cli.Usagef("--at %d: the second segment begins with partition 1 at the least", at)
			}
			return reshape(cmd, e, args, wait, func(ctx context.Context, c *client.Client, topic smq.Topic, segments []uint64) (*smqpb.Layout, error) {
				return c.SplitSegment(ctx, topic, segments[0], at)
			})
		},
		ValidArgsFunction: connect.CompleteSegments(e, 1),
	}
	cmd.Flags().Int32Var(&at, "at", 0, "the first `PARTITION` of the second segment (default: where the load halves)")
	addReshapeWait(cmd, &wait)
	return cmd
}

func newTopicMerge(e *cli.Env) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "merge TOPIC SEGMENT SEGMENT…",
		Short: "Replace neighbouring segments by one",
		Long: `Replace live segments of a topic whose ranges of partitions lie next to each other by
one. It goes to the broker that takes in most of their traffic.
` + reshapeHelp,
		Example: "  smq-admin topic merge orders 5 6",
		Args:    cli.Args("TOPIC", "SEGMENT", "SEGMENT…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reshape(cmd, e, args, wait, func(ctx context.Context, c *client.Client, topic smq.Topic, segments []uint64) (*smqpb.Layout, error) {
				return c.MergeSegments(ctx, topic, segments)
			})
		},
		ValidArgsFunction: connect.CompleteSegments(e, 0),
	}
	addReshapeWait(cmd, &wait)
	return cmd
}

func addReshapeWait(cmd *cobra.Command, wait *bool) {
	cmd.Flags().BoolVar(wait, "wait", false, "wait until the successors take messages (at most --timeout, if that is given)")
}

// reshape replaces the segments that args name, behind the topic.
func reshape(cmd *cobra.Command, e *cli.Env, args []string, wait bool,
	change func(context.Context, *client.Client, smq.Topic, []uint64) (*smqpb.Layout, error),
) error {
	topic, err := smq.ParseTopic(args[0])
	if err != nil {
		return err
	}
	segments, err := parseSegments(args[1:])
	if err != nil {
		return err
	}
	return withClientUntimed(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
		if !wait || cmd.Flags().Changed("timeout") {
			var cancel context.CancelFunc
			ctx, cancel = e.WithTimeout(ctx)
			defer cancel()
		}
		before, err := findSegments(ctx, c, topic, segments)
		if err != nil {
			return err
		}
		after, err := change(ctx, c, topic, segments)
		if err != nil {
			return err
		}
		from, to := replaced(before, after)
		word := "segment"
		if len(from) > 1 {
			word += "s"
		}
		e.Infof("%s %s of topic %s replaced by %s (layout version %d)", word, listSegments(from), topic, listSegments(to), after.GetVersion())
		if !wait {
			return nil
		}
		return awaitOwners(ctx, c, topic, to)
	})
}

func parseSegments(args []string) ([]uint64, error) {
	var segments []uint64
	for _, arg := range args {
		id, err := strconv.ParseUint(arg, 10, 64)
		switch {
		case err != nil || id == 0:
			return nil, cli.Usagef("segment %q is not a number; smq-admin topic describe shows those that are live", arg)
		case slices.Contains(segments, id):
			return nil, cli.Usagef("segment %d is named twice", id)
		}
		segments = append(segments, id)
	}
	return segments, nil
}

// findSegments are the segments of those ids as the layout has them.
func findSegments(ctx context.Context, c *client.Client, topic smq.Topic, ids []uint64) ([]*smqpb.Segment, error) {
	d, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return nil, connect.NoTopic(ctx, c, err, topic)
	}
	var found []*smqpb.Segment
	for _, id := range ids {
		live := d.GetLayout().GetSegments()
		i := slices.IndexFunc(live, func(s *smqpb.Segment) bool { return s.GetId() == id })
		if i < 0 {
			return nil, fmt.Errorf("segment %d of topic %s: %w among the live ones; smq-admin topic describe %s shows them", id, topic, smq.ErrNotFound, topic)
		}
		found = append(found, live[i])
	}
	slices.SortFunc(found, func(a, b *smqpb.Segment) int { return int(a.GetLo() - b.GetLo()) })
	return found, nil
}

// replaced are the segments that were sealed, and those that have their range
// in a layout.
func replaced(before []*smqpb.Segment, after *smqpb.Layout) (from, to []segmentRef) {
	for _, s := range before {
		from = append(from, refTo(s))
	}
	lo, hi := before[0].GetLo(), before[len(before)-1].GetHi()
	for _, s := range after.GetSegments() {
		if s.GetLo() < hi && lo < s.GetHi() {
			to = append(to, refTo(s))
		}
	}
	return from, to
}

// awaitOwners returns once the owners of segments take messages for them: when
// one tells where a partition ends it has the segment open.
func awaitOwners(ctx context.Context, c *client.Client, topic smq.Topic, segments []segmentRef) error {
	var partitions []int32
	for _, s := range segments {
		partitions = append(partitions, s.Lo)
	}
	if _, err := c.Offsets(ctx, topic, partitions, smqpb.OffsetsRequest_END, time.Time{}); err != nil {
		return fmt.Errorf("the layout has changed, but not all successors take messages: %w", err)
	}
	return nil
}

// segmentRef names a segment with what it covers and who owns it.
type segmentRef struct {
	Segment      uint64 `json:"segment"`
	Lo           int32  `json:"lo"`
	Hi           int32  `json:"hi"`
	Owner        string `json:"owner,omitempty"`
	OwnerAddress string `json:"owner_address,omitempty"`
}

func refTo(s *smqpb.Segment) segmentRef {
	return segmentRef{Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi(), Owner: s.GetOwner(), OwnerAddress: s.GetOwnerAddress()}
}

// String is for instance 3 [0,64) at 127.0.0.1:7310.
func (s segmentRef) String() string {
	text := number(s.Segment) + " " + smq.Range{Lo: s.Lo, Hi: s.Hi}.String()
	if s.OwnerAddress != "" {
		text += " at " + s.OwnerAddress
	}
	return text
}

// maxListed is how many segments a line for people names.
const maxListed = 4

// listSegments names segments, the first ones if there are many.
func listSegments(segments []segmentRef) string {
	var names []string
	for _, s := range segments {
		names = append(names, s.String())
	}
	return listed(names)
}

// listed is a list in words, the first ones if there are many.
func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		names = append(slices.Clone(names[:maxListed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
