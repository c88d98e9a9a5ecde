package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newSegment(e *cli.Env) *cobra.Command {
	return group("segment", "List and describe segments", newSegmentList(e), newSegmentDescribe(e))
}

// segmentView is a live segment, by the layout and by the broker that owns it.
type segmentView struct {
	Topic             string  `json:"topic"`
	TopicID           string  `json:"topic_id"`
	Segment           uint64  `json:"segment"`
	Lo                int32   `json:"lo"`
	Hi                int32   `json:"hi"`
	Owner             string  `json:"owner"`
	OwnerAddress      string  `json:"owner_address"`
	OwnerState        string  `json:"owner_state"` // see presence; empty without owner
	State             string  `json:"state"`       // unassigned, assigned, or what the owner says: open, stuck, sealing, sealed, failed
	Chunks            uint64  `json:"chunks"`
	Messages          uint64  `json:"messages"`
	Bytes             uint64  `json:"bytes"`
	BufferedBytes     uint64  `json:"buffered_bytes"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	OldestUnstoredMs  uint64  `json:"oldest_unstored_ms"`
	StoreError        string  `json:"store_error"` // empty: the store takes what there is
}

var segmentColumns = cli.View[segmentView]{
	Name: func(s segmentView) string { return s.Topic + "/" + number(s.Segment) },
	Columns: []cli.Column[segmentView]{
		{Header: "TOPIC", Cell: func(s segmentView) string { return s.Topic }},
		{Header: "SEGMENT", Cell: func(s segmentView) string { return number(s.Segment) }, Right: true},
		{Header: "PARTITIONS", Cell: func(s segmentView) string { return smq.Range{Lo: s.Lo, Hi: s.Hi}.String() },
			Raw: func(s segmentView) []string { return []string{number(s.Lo), number(s.Hi)} }},
		{Header: "STATE", Cell: func(s segmentView) string { return s.State }},
		{Header: "OWNER", Cell: func(s segmentView) string { return orNone(marked(s.OwnerAddress, s.OwnerState)) },
			Raw: func(s segmentView) []string { return []string{orNone(s.OwnerAddress)} }},
		{Header: "CHUNKS", Cell: func(s segmentView) string { return number(s.Chunks) }, Right: true},
		{Header: "MESSAGES", Cell: func(s segmentView) string { return number(s.Messages) }, Right: true},
		{Header: "BYTES", Cell: func(s segmentView) string { return cli.FormatSize(int64(s.Bytes)) }, Right: true,
			Raw: func(s segmentView) []string { return []string{number(s.Bytes)} }},
		{Header: "BUFFERED", Cell: func(s segmentView) string { return cli.FormatSize(int64(s.BufferedBytes)) }, Right: true,
			Raw: func(s segmentView) []string { return []string{number(s.BufferedBytes)} }},
		{Header: "MESSAGES/S", Cell: func(s segmentView) string { return smq.MessageRate(s.MessagesPerSecond) }, Right: true,
			Raw: func(s segmentView) []string { return []string{rounded(s.MessagesPerSecond)} }},
		{Header: "BYTES/S", Cell: func(s segmentView) string { return smq.ByteRate(s.BytesPerSecond) }, Right: true,
			Raw: func(s segmentView) []string { return []string{rounded(s.BytesPerSecond)} }},
	},
}

func newSegmentList(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [TOPIC…]",
		Short: "List live segments",
		Long: `List the live segments of the TOPICs, or without one all that the brokers have
open. Numbers are those of this segment, not of the topic's whole history.`,
		Example: "  smq-admin segment list orders\n  smq-admin segment list -o json | jq 'map(.buffered_bytes) | add'",
		Args:    cli.Args("[TOPIC…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topics, err := parseTopics(args)
			if err != nil {
				return err
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				segments, err := liveSegments(ctx, e, c, topics)
				if err != nil {
					return err
				}
				return segmentColumns.List(e, segments)
			})
		},
		ValidArgsFunction: connect.CompleteTopics(e),
	}
	e.AddOutputFlag(cmd)
	return cmd
}

// maxBrokersAsked bounds the brokers that are asked at a time.
const maxBrokersAsked = 16

// liveSegments lists the live segments of topics, or those that brokers have
// open when there are none given.
func liveSegments(ctx context.Context, e *cli.Env, c *client.Client, topics []smq.Topic) ([]segmentView, error) {
	info, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if len(info.GetBrokers()) == 0 {
		return nil, rpc.ErrNoBroker
	}
	open := openSegments(ctx, e, c, info.GetBrokers())
	if len(topics) == 0 {
		slices.SortFunc(open, compareSegments)
		return open, nil
	}
	var all []segmentView
	for _, topic := range topics {
		d, err := c.DescribeTopic(ctx, topic)
		if err != nil {
			return nil, connect.NoTopic(ctx, c, err, topic)
		}
		all = append(all, joinLayout(d, open, info)...)
	}
	slices.SortFunc(all, compareSegments)
	return all, nil
}

func compareSegments(a, b segmentView) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Segment, b.Segment))
}

// openSegments asks the brokers which segments they have open. One that does
// not answer is warned about and left out.
func openSegments(ctx context.Context, e *cli.Env, c *client.Client, brokers []*smqpb.BrokerInfo) []segmentView {
	var mu sync.Mutex
	var open []segmentView
	var g errgroup.Group
	g.SetLimit(maxBrokersAsked)
	for _, b := range brokers {
		g.Go(func() error {
			segments, err := askSegments(ctx, c, b)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				e.Warnf("broker %s at %s does not tell its segments: %v", b.GetId(), b.GetAddress(), err)
			}
			open = append(open, segments...)
			return nil
		})
	}
	_ = g.Wait() // what failed was warned about
	return open
}

func askSegments(ctx context.Context, c *client.Client, b *smqpb.BrokerInfo) ([]segmentView, error) {
	if b.GetSilent() {
		return nil, errors.New("it is silent")
	}
	broker, err := c.Broker(ctx, b.GetAddress())
	if err != nil {
		return nil, err
	}
	resp, err := broker.ListSegments(ctx, &smqpb.ListSegmentsRequest{})
	if err != nil {
		return nil, err
	}
	var segments []segmentView
	for _, s := range resp.GetSegments() {
		segments = append(segments, segmentView{
			Topic: s.GetTopic(), TopicID: s.GetTopicId(), Segment: s.GetSegment(), Lo: s.GetLo(), Hi: s.GetHi(),
			Owner: b.GetId(), OwnerAddress: b.GetAddress(), OwnerState: answeringState(b), State: s.GetState(),
			Chunks: s.GetChunks(), Messages: s.GetMessages(), Bytes: s.GetBytes(), BufferedBytes: s.GetBuffered(),
			MessagesPerSecond: perSecond(s.GetMessagesPerSecond()), BytesPerSecond: perSecond(s.GetBytesPerSecond()),
			OldestUnstoredMs: s.GetOldestUnstoredMs(), StoreError: s.GetStoreError(),
		})
	}
	return segments, nil
}

// answeringState is how a broker is that has answered just now.
func answeringState(b *smqpb.BrokerInfo) string {
	if b.GetDraining() {
		return "draining"
	}
	return "ok"
}

// joinLayout lists a topic's live segments, with what their owners tell.
func joinLayout(d *smqpb.DescribeTopicResponse, open []segmentView, cluster *smqpb.ClusterInfo) []segmentView {
	var all []segmentView
	for _, s := range d.GetLayout().GetSegments() {
		v := segmentView{
			Topic: d.GetConfig().GetTopic(), TopicID: d.GetConfig().GetTopicId(), Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi(),
			Owner: s.GetOwner(), OwnerAddress: s.GetOwnerAddress(), OwnerState: presence(cluster, s.GetOwner()), State: "assigned",
		}
		if v.Owner == "" {
			v.State = "unassigned"
		}
		for _, o := range open {
			if o.TopicID == v.TopicID && o.Segment == v.Segment && o.Owner == v.Owner {
				v = o
			}
		}
		all = append(all, v)
	}
	return all
}
