package admin

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
)

func newTopicHistory(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history TOPIC",
		Short: "Show how a topic's segments have changed, and why",
		Long: `Show the versions of a topic's layout, oldest first: which segments each replaced by
which, the traffic that those took in, for how long publishing to them paused, and why.

A version whose file in the store is damaged is named on standard error, with the file,
and in JSON and YAML is listed with the error; the exit code is 1 then.`,
		Example: `  smq-admin topic history orders
  smq-admin topic history orders -o json | jq '.[] | select(.cause == "split")'`,
		Args: cli.Args("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := smq.ParseTopic(args[0])
			if err != nil {
				return err
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				changes, damaged, err := history(ctx, c, topic)
				if err != nil {
					return connect.NoTopic(ctx, c, err, topic)
				}
				if !forPrograms(e) {
					changes = slices.DeleteFunc(changes, func(c changeView) bool { return c.Error != "" })
				}
				if err := historyColumns.List(e, changes); err != nil {
					return err
				}
				return damageVerdict(e, "version", damaged)
			})
		},
		ValidArgsFunction: connect.CompleteTopic(e),
	}
	e.AddOutputFlag(cmd)
	return cmd
}

// history are the changes of a topic's layout, oldest first, and what is wrong
// with those that are damaged.
func history(ctx context.Context, c *client.Client, topic smq.Topic) (changes []changeView, damaged []error, err error) {
	described, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	var before map[smq.SegmentID]bool
	for v, err := range c.Versions(ctx, topic) {
		switch {
		case v == nil:
			return nil, nil, err
		case err != nil:
			damaged = append(damaged, err)
			changes = append(changes, changeView{
				Topic: described.GetConfig().GetTopic(), TopicID: described.GetConfig().GetTopicId(), Version: v.GetVersion(),
				From: []sealedView{}, To: []segmentRef{}, Error: err.Error(),
			})
			continue
		}
		changes = append(changes, changeView{
			Topic: described.GetConfig().GetTopic(), TopicID: described.GetConfig().GetTopicId(),
			Version: v.GetVersion(), CreatedMS: v.GetCreatedMs(), Cause: v.GetCause(),
			From: viewSealed(v.GetSealed(), v.GetLoads()), To: viewRefs(opened(v, before)),
			PauseMS: v.GetPauseMs(), Reason: v.GetReason(), Leader: v.GetLeader(), Segments: len(v.GetSegments()),
		})
		before = idsOf(v)
	}
	return changes, damaged, nil
}
