package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newBroker(e *cli.Env) *cobra.Command {
	return group("broker", "List, describe and drain brokers", newBrokerList(e), newBrokerDescribe(e), newBrokerDrain(e))
}

// brokerView is a broker in a list.
type brokerView struct {
	ID          string `json:"id"`
	Address     string `json:"address"`
	HTTPAddress string `json:"http_address"`
	Rack        string `json:"rack"`
	Version     string `json:"version"`
	State       string `json:"state"` // see brokerState
	Leader      bool   `json:"leader"`
	brokerLoad
	JoinedMS int64 `json:"joined_ms"`
}

// brokerLoad is what a broker tells the leading master of itself. All are null
// when nobody has been told.
type brokerLoad struct {
	Segments          *uint64  `json:"segments"`
	MessagesPerSecond *float64 `json:"messages_per_second"`
	BytesPerSecond    *float64 `json:"bytes_per_second"`
	MemoryUsed        *uint64  `json:"memory_used"`
	MemoryLimit       *uint64  `json:"memory_limit"`
}

func viewBrokers(info *smqpb.ClusterInfo) []brokerView {
	views := []brokerView{}
	for _, b := range info.GetBrokers() {
		views = append(views, brokerView{
			ID: b.GetId(), Address: b.GetAddress(), HTTPAddress: b.GetHttpAddress(), Rack: b.GetRack(), Version: b.GetVersion(),
			State: brokerState(info, b), Leader: b.GetId() == info.GetLeader().GetBroker(), brokerLoad: viewBrokerLoad(b.GetLoad()),
			JoinedMS: b.GetJoinedMs(),
		})
	}
	return views
}

func viewBrokerLoad(l *smqpb.Load) brokerLoad {
	if l == nil {
		return brokerLoad{}
	}
	messages, bytes := perSecond(l.GetMessagesPerSecond()), perSecond(l.GetBytesPerSecond())
	segments, used, limit := l.GetSegments(), l.GetMemoryUsed(), l.GetMemoryLimit()
	return brokerLoad{Segments: &segments, MessagesPerSecond: &messages, BytesPerSecond: &bytes, MemoryUsed: &used, MemoryLimit: &limit}
}

// brokerState is how a broker of the cluster is: ok, draining, silent, or, while
// no master leads, unknown.
func brokerState(info *smqpb.ClusterInfo, b *smqpb.BrokerInfo) string {
	switch {
	case b.GetSilent():
		return "silent"
	case b.GetDraining():
		return "draining"
	case info.GetLeadingMaster() == "":
		return unknownState
	}
	return "ok"
}

const unknownState = "unknown"

// known is a value in words, or a dash when there is none.
func known[T any](v *T, text func(T) string) string {
	if v == nil {
		return "-"
	}
	return text(*v)
}

func rounded(rate float64) string { return fmt.Sprintf("%.0f", rate) }

func bytesOf(n uint64) string { return cli.FormatSize(int64(n)) }

// warnMasterless says why it is not known how the brokers are, when it is not.
func warnMasterless(e *cli.Env, info *smqpb.ClusterInfo) {
	if info != nil && info.GetLeadingMaster() == "" {
		e.Warnf("no master leads: less than a majority of the masters is there, so that nobody knows how the brokers are and what they take in")
	}
}

var brokerColumns = cli.View[brokerView]{
	Name: func(b brokerView) string { return b.ID },
	Columns: []cli.Column[brokerView]{
		{Header: "BROKER", Cell: func(b brokerView) string { return b.ID }},
		{Header: "ADDRESS", Cell: func(b brokerView) string { return b.Address }},
		{Header: "STATE", Cell: func(b brokerView) string {
			if b.Leader {
				return b.State + ", leader"
			}
			return b.State
		}, Raw: func(b brokerView) []string { return []string{b.State, strconv.FormatBool(b.Leader)} }},
		{Header: "RACK", Cell: func(b brokerView) string { return orNone(b.Rack) }},
		{Header: "SEGMENTS", Cell: func(b brokerView) string { return known(b.Segments, number) }, Right: true},
		{Header: "MESSAGES/S", Cell: func(b brokerView) string { return known(b.MessagesPerSecond, smq.MessageRate) }, Right: true,
			Raw: func(b brokerView) []string { return []string{known(b.MessagesPerSecond, rounded)} }},
		{Header: "BYTES/S", Cell: func(b brokerView) string { return known(b.BytesPerSecond, smq.ByteRate) }, Right: true,
			Raw: func(b brokerView) []string { return []string{known(b.BytesPerSecond, rounded)} }},
		{Header: "MEMORY", Cell: func(b brokerView) string {
			if b.MemoryUsed == nil {
				return "-"
			}
			return known(b.MemoryUsed, bytesOf) + " of " + known(b.MemoryLimit, bytesOf)
		}, Right: true, Raw: func(b brokerView) []string {
			return []string{known(b.MemoryUsed, number), known(b.MemoryLimit, number)}
		}},
		{Header: "JOINED", Cell: func(b brokerView) string { return when(b.JoinedMS) }},
	},
}

func newBrokerList(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List brokers",
		Example: "  smq-admin broker list\n  smq-admin broker list -o json | jq '.[] | select(.leader)'",
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				info, err := c.Cluster(ctx)
				if err != nil {
					return err
				}
				warnMasterless(e, info)
				return brokerColumns.List(e, viewBrokers(info))
			})
		},
	}
	e.AddOutputFlag(cmd)
	return cmd
}

func newBrokerDrain(e *cli.Env) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "drain BROKER",
		Short: "Have a broker hand over its segments and leave",
		Long: `Have a broker, named by its id or address, hand over its segments and leave. With
--wait this ends when the broker has left and listens no more, so that another one
can take its place; otherwise when the drain has begun.`,
		Example: "  smq-admin broker drain 127.0.0.1:7310 --wait",
		Args:    cli.Args("BROKER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withClientUntimed(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				if cmd.Flags().Changed("timeout") {
					var cancel context.CancelFunc
					ctx, cancel = e.WithTimeout(ctx)
					defer cancel()
				}
				return drain(ctx, e, c, args[0], wait)
			})
		},
		ValidArgsFunction: connect.CompleteBrokers(e),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the broker has left (at most --timeout, if that is given)")
	return cmd
}

// drainPoll is how often a drain is asked how far it has come.
const drainPoll = 300 * time.Millisecond

func drain(ctx context.Context, e *cli.Env, c *client.Client, name string, wait bool) error {
	b, err := findBroker(ctx, e, c, name)
	if err != nil {
		return err
	}
	id := b.GetId()
	begun := false
	for {
		done, left, err := askToDrain(ctx, e, c, id)
		switch {
		case err != nil && begun && errors.Is(err, smq.ErrNotFound):
			done = true // it has left
		case err != nil:
			return err
		}
		begun = true
		switch {
		case done && wait:
			awaitEnd(ctx, c, b)
			fallthrough
		case done:
			e.Infof("broker %s has handed over its segments", id)
			return nil
		case !wait:
			e.Infof("broker %s is draining, %s left", id, smq.Count(left, "segment"))
			return nil
		}
		select {
		case <-time.After(drainPoll):
		case <-ctx.Done():
			return fmt.Errorf("drain broker %s: %s left: %w", id, smq.Count(left, "segment"), context.Cause(ctx))
		}
	}
}

// endWithin bounds the wait for the end of a broker that has handed everything
// over: calls may take some seconds to come to theirs.
const endWithin = 10 * time.Second

// awaitEnd waits until a broker that has handed everything over listens no more,
// so that another one can be started in its place. It may be that one already.
func awaitEnd(ctx context.Context, c *client.Client, b *smqpb.BrokerInfo) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for listens(ctx, b.GetAddress()) || listens(ctx, b.GetHttpAddress()) {
		info, err := c.Cluster(ctx)
		if err == nil && slices.ContainsFunc(info.GetBrokers(), func(other *smqpb.BrokerInfo) bool {
			return other.GetAddress() == b.GetAddress() && other.GetId() != b.GetId()
		}) {
			return
		}
		select {
		case <-time.After(drainPoll):
		case <-ctx.Done():
			return
		}
	}
}

// listens reports whether a connection to the address, if it is one, can be made.
func listens(ctx context.Context, address string) bool {
	if address == "" {
		return false
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	return err == nil
}

func askToDrain(ctx context.Context, e *cli.Env, c *client.Client, id string) (done bool, left int32, err error) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	err = c.Leader(ctx, func(ctx context.Context, l smqpb.LeaderClient) error {
		resp, err := l.DrainBroker(ctx, &smqpb.DrainBrokerRequest{Broker: id})
		done, left = resp.GetDone(), resp.GetSegmentsLeft()
		return err
	})
	if err != nil {
		return false, 0, fmt.Errorf("drain broker %s: %w", id, err)
	}
	return done, left, nil
}

// findBroker is the broker with the given id or address.
func findBroker(ctx context.Context, e *cli.Env, c *client.Client, name string) (*smqpb.BrokerInfo, error) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	info, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return namedBroker(info, name)
}

func namedBroker(info *smqpb.ClusterInfo, name string) (*smqpb.BrokerInfo, error) {
	for _, b := range info.GetBrokers() {
		if b.GetId() == name || b.GetAddress() == name {
			return b, nil
		}
	}
	return nil, fmt.Errorf("broker %s: %w; smq-admin broker list shows those that there are", name, smq.ErrNotFound)
}
