package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// topOnce prints what there is now, of the cluster or of a topic.
func topOnce(ctx context.Context, e *cli.Env, topic string) error {
	req := &smqpb.WatchRequest{Brokers: true, Topics: true, Events: true, EventsSinceMs: 1}
	if topic != "" {
		req = &smqpb.WatchRequest{Topic: topic, Brokers: true}
	}
	return withClient(ctx, e, func(ctx context.Context, c *client.Client) error {
		whole, err := c.Snapshot(ctx, req)
		switch {
		case errors.Is(err, smq.ErrInvalid):
			// The leading broker does not know the call.
			return fmt.Errorf("%w: it may be of an older version, which has no top", err)
		case err != nil:
			return err
		case topic == "":
			warnMasterless(e, whole.GetCluster())
			view := viewTop(whole)
			if err := printCluster(e, view); err != nil {
				return err
			}
			return damageVerdict(e, "topic", view.damaged())
		case whole.GetDetail().GetError() != nil:
			return damageVerdict(e, "topic", []error{rpc.FromErrorInfo(whole.GetDetail().GetError())})
		case whole.GetDetail() == nil || whole.GetDetail().GetMissing():
			return noTopicShown(ctx, c, topic)
		}
		return printTopic(e, whole.GetDetail(), whole.GetCluster())
	})
}

func noTopicShown(ctx context.Context, c *client.Client, name string) error {
	topic, err := smq.ParseTopic(name)
	if err != nil {
		return err
	}
	return connect.NoTopic(ctx, c, smq.ErrNotFound, topic)
}

// topView is the cluster at a moment.
type topView struct {
	TimeMS  int64          `json:"time_ms"` // by the leading broker's clock
	Cluster statusView     `json:"cluster"`
	Brokers []brokerView   `json:"brokers"`
	Topics  []topTopicView `json:"topics"` // the busiest first
	Events  []changeView   `json:"events"` // the latest, oldest first
}

// topTopicView is a topic and its traffic.
type topTopicView struct {
	Topic             string  `json:"topic"`
	TopicID           string  `json:"topic_id"`
	Partitions        int32   `json:"partitions"`
	Segments          int32   `json:"live_segments"`
	LayoutVersion     uint64  `json:"layout_version"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	Mode              string  `json:"mode"`            // of scaling: off, manual, auto
	Error             string  `json:"error,omitempty"` // why it cannot be read
}

// damaged is what is wrong with topics that cannot be read.
func (v topView) damaged() (errs []error) {
	for _, t := range v.Topics {
		if t.Error != "" {
			errs = append(errs, errors.New(t.Error))
		}
	}
	return errs
}

// whole are the topics that can be read.
func (v topView) whole() []topTopicView {
	return slices.DeleteFunc(slices.Clone(v.Topics), func(t topTopicView) bool { return t.Error != "" })
}

func viewTop(u *smqpb.WatchUpdate) topView {
	v := topView{TimeMS: u.GetTimeMs(), Cluster: viewStatus(u.GetCluster()), Brokers: viewBrokers(u.GetCluster()), Topics: []topTopicView{}, Events: []changeView{}}
	for _, t := range u.GetTopics() {
		v.Topics = append(v.Topics, topTopicView{
			Topic: t.GetTopic(), TopicID: t.GetTopicId(), Partitions: t.GetPartitions(), Segments: t.GetSegments(), LayoutVersion: t.GetLayoutVersion(),
			MessagesPerSecond: perSecond(t.GetMessagesPerSecond()), BytesPerSecond: perSecond(t.GetBytesPerSecond()), Mode: t.GetMode(),
			Error: t.GetError().GetMessage(),
		})
	}
	slices.SortFunc(v.Topics, func(a, b topTopicView) int {
		return cmp.Or(-cmp.Compare(a.BytesPerSecond, b.BytesPerSecond), cmp.Compare(a.Topic, b.Topic))
	})
	for _, event := range u.GetEvents() {
		v.Events = append(v.Events, viewEvent(event))
	}
	return v
}

// topColumns are the cluster in a few lines, for people.
var topColumns = cli.View[topView]{
	Name: func(v topView) string { return v.Cluster.ClusterID },
	Columns: []cli.Column[topView]{
		{Header: "TIME", Cell: func(v topView) string { return when(v.TimeMS) }},
		{Header: "CLUSTER", Cell: func(v topView) string { return orNone(v.Cluster.ClusterID) }},
		{Header: "LEADING_BROKER", Cell: func(v topView) string { return orNone(v.Cluster.LeaderAddress) }},
		{Header: "TRAFFIC", Cell: func(v topView) string {
			var sum *loadView // of the brokers of which it is known
			for _, b := range v.Brokers {
				if b.MessagesPerSecond != nil && b.BytesPerSecond != nil {
					if sum == nil {
						sum = &loadView{}
					}
					sum.MessagesPerSecond += *b.MessagesPerSecond
					sum.BytesPerSecond += *b.BytesPerSecond
				}
			}
			if sum == nil && len(v.Brokers) > 0 {
				return "not known"
			} else if sum == nil {
				sum = &loadView{}
			}
			return sum.both()
		}},
	},
}

var topTopicColumns = cli.View[topTopicView]{
	Name: func(t topTopicView) string { return t.Topic },
	Columns: []cli.Column[topTopicView]{
		{Header: "TOPIC", Cell: func(t topTopicView) string { return t.Topic }},
		{Header: "PARTITIONS", Cell: func(t topTopicView) string { return number(t.Partitions) }, Right: true},
		{Header: "SEGMENTS", Cell: func(t topTopicView) string { return number(t.Segments) }, Right: true},
		{Header: "MESSAGES/S", Cell: func(t topTopicView) string { return smq.MessageRate(t.MessagesPerSecond) }, Right: true,
			Raw: func(t topTopicView) []string { return []string{fmt.Sprintf("%.0f", t.MessagesPerSecond)} }},
		{Header: "BYTES/S", Cell: func(t topTopicView) string { return smq.ByteRate(t.BytesPerSecond) }, Right: true,
			Raw: func(t topTopicView) []string { return []string{fmt.Sprintf("%.0f", t.BytesPerSecond)} }},
		{Header: "VERSION", Cell: func(t topTopicView) string { return number(t.LayoutVersion) }, Right: true},
		{Header: "SCALING", Cell: func(t topTopicView) string { return orNone(t.Mode) }},
	},
}

// printCluster prints a document of all, or, a line a topic, the topics, or for
// people both brokers and topics and the latest changes.
func printCluster(e *cli.Env, v topView) error {
	switch e.Flags.Output {
	case cli.FormatPlain, cli.FormatName:
		return topTopicColumns.List(e, v.whole())
	}
	return topColumns.One(e, v, func() error {
		return inParts(e,
			func() error { return brokerColumns.Table(e, v.Brokers) },
			func() error { return topTopicColumns.Table(e, v.whole()) },
			func() error { return printEvents(e, v.Events) })
	})
}

// latestEvents is how many changes are printed for people.
const latestEvents = 5

func printEvents(e *cli.Env, events []changeView) error {
	var lines strings.Builder
	for _, c := range events[max(len(events)-latestEvents, 0):] {
		lines.WriteString(c.line() + "\n")
	}
	_, err := fmt.Fprint(e.Stdout, lines.String())
	return err
}

// inParts prints parts, each after an empty line.
func inParts(e *cli.Env, parts ...func() error) error {
	for _, part := range parts {
		if _, err := fmt.Fprintln(e.Stdout); err != nil {
			return err
		}
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// printTopic prints a topic as topic describe does.
func printTopic(e *cli.Env, d *smqpb.TopicDetail, cluster *smqpb.ClusterInfo) error {
	v := viewDescription(&smqpb.DescribeTopicResponse{Config: d.GetConfig(), Layout: d.GetLayout()})
	v.addLoads(d)
	v.addPresence(cluster)
	return describedColumns.One(e, v, func() error {
		return inParts(e, func() error {
			if err := layoutColumns.Table(e, v.Segments); err != nil {
				return err
			}
			for _, note := range v.Notes {
				if _, err := fmt.Fprintf(e.Stdout, "note: %s\n", note); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
