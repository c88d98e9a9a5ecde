package admin

import (
	"context"

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
which, the traffic that those took in, for how long publishing to them paused, and why.`,
		Example: `  smq-admin topic history orders
  smq-admin topic history orders -o json | jq '.[] | select(.cause == "split")'`,
		Args: cli.Args("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := smq.ParseTopic(args[0])
			if err != nil {
				return err
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				changes, err := history(ctx, c, topic)
				if err != nil {
					return connect.NoTopic(err, topic)
				}
				return historyColumns.List(e, changes)
			})
		},
		ValidArgsFunction: connect.CompleteTopics(e),
	}
	e.AddOutputFlag(cmd)
	return cmd
}

// history are the changes of a topic's layout, oldest first.
func history(ctx context.Context, c *client.Client, topic smq.Topic) ([]changeView, error) {
	described, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return nil, err
	}
	var changes []changeView
	var before map[smq.SegmentID]bool
	for v, err := range c.Versions(ctx, topic) {
		if err != nil {
			return nil, err
		}
		changes = append(changes, changeView{
			Topic: described.GetConfig().GetTopic(), TopicID: described.GetConfig().GetTopicId(),
			Version: v.GetVersion(), CreatedMS: v.GetCreatedMs(), Cause: v.GetCause(),
			From: viewSealed(v.GetSealed(), v.GetLoads()), To: viewRefs(opened(v, before)),
			PauseMS: v.GetPauseMs(), Reason: v.GetReason(), Leader: v.GetLeader(), Segments: len(v.GetSegments()),
		})
		before = make(map[smq.SegmentID]bool, len(v.GetSegments()))
		for _, s := range v.GetSegments() {
			before[smq.SegmentID(s.GetId())] = true
		}
	}
	return changes, nil
}
