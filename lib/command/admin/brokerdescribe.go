package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newBrokerDescribe(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe BROKER",
		Short: "Show a broker and the segments that it has open",
		Long: `Show a broker, named by its id or address: how it is, what it takes in, and the
segments that it has open.`,
		Example: "  smq-admin broker describe 127.0.0.1:7310\n  smq-admin broker describe 127.0.0.1:7310 -o json | jq '.open_segments | length'",
		Args:    cli.Args("BROKER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return describeBroker(ctx, e, c, args[0])
			})
		},
		ValidArgsFunction: connect.CompleteBrokers(e),
	}
	e.AddOutputFlag(cmd)
	return cmd
}

// brokerDescriptionView is a broker with its segments.
type brokerDescriptionView struct {
	brokerView
	OpenSegments []segmentView `json:"open_segments"` // null: it does not tell
}

func describeBroker(ctx context.Context, e *cli.Env, c *client.Client, name string) error {
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	warnMasterless(e, info)
	b, err := namedBroker(info, name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(info.GetBrokers(), func(other *smqpb.BrokerInfo) bool { return other == b })
	view := brokerDescriptionView{brokerView: viewBrokers(info)[i]}
	segments, why := askSegments(ctx, c, b)
	if why == nil {
		slices.SortFunc(segments, compareSegments)
		view.OpenSegments = append([]segmentView{}, segments...)
	}
	err = brokerDescription.One(e, view, func() error {
		if len(view.OpenSegments) == 0 {
			return nil
		}
		if _, err := fmt.Fprintln(e.Stdout); err != nil {
			return err
		}
		return segmentColumns.Table(e, view.OpenSegments)
	})
	if err == nil && why != nil {
		e.Warnf("broker %s at %s does not tell its segments: %v", b.GetId(), b.GetAddress(), why)
	}
	return err
}

// brokerDescription is what a broker is described by; first as in a list of them.
var brokerDescription = cli.View[brokerDescriptionView]{
	Name: func(b brokerDescriptionView) string { return b.ID },
	Columns: append(within(brokerColumns.Columns, func(b brokerDescriptionView) brokerView { return b.brokerView }), []cli.Column[brokerDescriptionView]{
		{Header: "HTTP", Cell: func(b brokerDescriptionView) string { return orNone(b.HTTPAddress) }},
		{Header: "VERSION", Cell: func(b brokerDescriptionView) string { return orNone(b.Version) }},
	}...),
}
