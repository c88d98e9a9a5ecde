package admin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newMaster(e *cli.Env) *cobra.Command {
	return group("master", "Show, add and remove masters", newMasterStatus(e), newMasterAdd(e), newMasterRemove(e))
}

// statusView is the cluster as its masters know it.
type statusView struct {
	ClusterID     string       `json:"cluster_id"`
	Store         string       `json:"store"`
	LeadingMaster string       `json:"leading_master"`
	RaftTerm      uint64       `json:"raft_term"`
	RaftIndex     uint64       `json:"raft_index"`
	Leader        string       `json:"leader"`
	LeaderAddress string       `json:"leader_address"`
	LeaderTerm    uint64       `json:"leader_term"`
	Brokers       int          `json:"brokers"`
	Masters       []masterView `json:"masters"`
}

type masterView struct {
	ID          string `json:"id"`
	Address     string `json:"address"`
	HTTPAddress string `json:"http_address"`
	Leader      bool   `json:"leader"`
	Voter       bool   `json:"voter"`
}

func viewStatus(info *smqpb.ClusterInfo) statusView {
	v := statusView{
		ClusterID: info.GetClusterId(), Store: info.GetStore(), LeadingMaster: info.GetLeadingMaster(),
		RaftTerm: info.GetRaftTerm(), RaftIndex: info.GetRaftIndex(),
		Leader: info.GetLeader().GetBroker(), LeaderAddress: info.GetLeader().GetAddress(), LeaderTerm: info.GetLeader().GetTerm(),
		Brokers: len(info.GetBrokers()), Masters: []masterView{},
	}
	for _, m := range info.GetMasters() {
		v.Masters = append(v.Masters, masterView{ID: m.GetId(), Address: m.GetAddress(), HTTPAddress: m.GetHttpAddress(), Leader: m.GetLeader(), Voter: m.GetVoter()})
	}
	return v
}

var statusColumns = cli.View[statusView]{
	Name: func(s statusView) string { return s.ClusterID },
	Columns: []cli.Column[statusView]{
		{Header: "CLUSTER", Cell: func(s statusView) string { return s.ClusterID }},
		{Header: "STORE", Cell: func(s statusView) string { return s.Store }},
		{Header: "LEADING_MASTER", Cell: func(s statusView) string { return orNone(s.LeadingMaster) }},
		{Header: "RAFT", Cell: func(s statusView) string { return fmt.Sprintf("term %d, index %d", s.RaftTerm, s.RaftIndex) },
			Raw: func(s statusView) []string { return []string{number(s.RaftTerm), number(s.RaftIndex)} }},
		{Header: "LEADING_BROKER", Cell: func(s statusView) string {
			if s.Leader == "" {
				return "-"
			}
			return fmt.Sprintf("%s at %s, term %d", s.Leader, s.LeaderAddress, s.LeaderTerm)
		}, Raw: func(s statusView) []string {
			return []string{orNone(s.Leader), orNone(s.LeaderAddress), number(s.LeaderTerm)}
		}},
		{Header: "BROKERS", Cell: func(s statusView) string { return number(int64(s.Brokers)) }},
	},
}

var masterColumns = cli.View[masterView]{
	Name: func(m masterView) string { return m.ID },
	Columns: []cli.Column[masterView]{
		{Header: "MASTER", Cell: func(m masterView) string { return m.ID }},
		{Header: "ADDRESS", Cell: func(m masterView) string { return orNone(m.Address) }},
		{Header: "HTTP", Cell: func(m masterView) string { return orNone(m.HTTPAddress) }},
		{Header: "ROLE", Cell: func(m masterView) string {
			switch {
			case m.Leader:
				return "leader"
			case m.Voter:
				return "voter"
			}
			return "joining"
		}},
	},
}

func newMasterStatus(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the cluster as its masters know it",
		Example: "  smq-admin master status\n  smq-admin master status -o json | jq -r .store",
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				info, err := c.Cluster(ctx)
				if err != nil {
					return err
				}
				view := viewStatus(info)
				return statusColumns.One(e, view, func() error {
					if _, err := fmt.Fprintln(e.Stdout); err != nil {
						return err
					}
					return masterColumns.Table(e, view.Masters)
				})
			})
		},
	}
	e.AddOutputFlag(cmd)
	return cmd
}
