package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// describedView is a topic with its layout.
type describedView struct {
	topicView
	LayoutCause string              `json:"layout_cause"`
	Replicas    int32               `json:"replicas"`    // wanted; 0: the default
	ScalingSet  *scalingView        `json:"scaling_set"` // of the topic's own; null: nothing
	Scaling     *scalingView        `json:"scaling"`     // as it applies; null: not known
	Load        *loadView           `json:"load"`        // of all segments; null: not known
	Notes       []string            `json:"notes"`       // why a segment is left as it is
	Acks        string              `json:"acks"`        // what an ack means, in words
	Segments    []layoutSegmentView `json:"segments"`
	Messages    *int64              `json:"messages,omitempty"` // with offsets
	Offsets     []offsetView        `json:"offsets,omitempty"`
}

// layoutSegmentView is a live segment as the layout has it.
type layoutSegmentView struct {
	Segment      uint64        `json:"segment"`
	Lo           int32         `json:"lo"`
	Hi           int32         `json:"hi"`
	Owner        string        `json:"owner"`
	OwnerAddress string        `json:"owner_address"`
	OwnerState   string        `json:"owner_state"` // see presence; empty without owner
	Followers    []replicaView `json:"followers"`
	Load         *loadView     `json:"load"` // null: not known
}

// replicaView is a follower of a segment.
type replicaView struct {
	Broker  string `json:"broker"`
	Address string `json:"address"`
	State   string `json:"state"` // see presence
}

func viewReplicas(replicas []*smqpb.Replica) []replicaView {
	views := []replicaView{}
	for _, r := range replicas {
		views = append(views, replicaView{Broker: r.GetBroker(), Address: r.GetAddress()})
	}
	return views
}

// followersText names followers for people.
func followersText(followers []replicaView) string {
	var names []string
	for _, r := range followers {
		names = append(names, marked(r.Address, r.State))
	}
	return strings.Join(names, ", ")
}

// followersRaw are the addresses of followers for programs: 127.0.0.1:7310,127.0.0.1:7311.
func followersRaw(followers []replicaView) string {
	var addresses []string
	for _, r := range followers {
		addresses = append(addresses, r.Address)
	}
	return orNone(strings.Join(addresses, ","))
}

// loadView is traffic that is taken in.
type loadView struct {
	MessagesPerSecond float64 `json:"messages_per_second"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
}

// messages and bytes are a load for people; a dash for one that is not known.
func (l *loadView) messages() string {
	if l == nil {
		return "-"
	}
	return smq.MessageRate(l.MessagesPerSecond)
}

func (l *loadView) bytes() string {
	if l == nil {
		return "-"
	}
	return smq.ByteRate(l.BytesPerSecond)
}

// both are a load in a line.
func (l *loadView) both() string { return l.messages() + ", " + l.bytes() }

// raw is a load for programs.
func (l *loadView) raw() []string {
	if l == nil {
		return []string{"-", "-"}
	}
	return []string{fmt.Sprintf("%.0f", l.MessagesPerSecond), fmt.Sprintf("%.0f", l.BytesPerSecond)}
}

// scalingView is when segments split and merge.
type scalingView struct {
	Mode                   string  `json:"mode"`
	SplitBytesPerSecond    float64 `json:"split_bytes_per_second"`
	SplitMessagesPerSecond float64 `json:"split_messages_per_second"`
	MinSegments            int32   `json:"min_segments"`
	MaxSegments            int32   `json:"max_segments"`
	CoolDownMS             int64   `json:"cool_down_ms"`
	text                   string
}

func viewScaling(s *smqpb.Scaling) *scalingView {
	if s == nil {
		return nil
	}
	return &scalingView{
		Mode: s.GetMode(), SplitBytesPerSecond: s.GetSplitBytesPerSecond(), SplitMessagesPerSecond: s.GetSplitMessagesPerSecond(),
		MinSegments: s.GetMinSegments(), MaxSegments: s.GetMaxSegments(), CoolDownMS: s.GetCoolDownMs(),
		text: describeScaling(s),
	}
}

// offsetView is where a partition begins and ends.
type offsetView struct {
	Partition int32 `json:"partition"`
	Earliest  int64 `json:"earliest"`
	End       int64 `json:"end"`
}

func viewDescription(d *smqpb.DescribeTopicResponse) describedView {
	v := describedView{
		topicView: viewConfig(d.GetConfig()), LayoutCause: d.GetLayout().GetCause(), Segments: []layoutSegmentView{},
		Replicas: d.GetConfig().GetReplicas(), ScalingSet: viewScaling(d.GetConfig().GetScaling()), Notes: []string{},
	}
	v.LayoutVersion, v.LiveSegments = d.GetLayout().GetVersion(), int32(len(d.GetLayout().GetSegments()))
	for _, s := range d.GetLayout().GetSegments() {
		v.Segments = append(v.Segments, layoutSegmentView{
			Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi(), Owner: s.GetOwner(), OwnerAddress: s.GetOwnerAddress(),
			Followers: viewReplicas(s.GetReplicas()),
		})
	}
	v.Acks = ackWords(v.Segments)
	return v
}

// addOffsets asks the brokers for the offsets of all partitions.
func (v *describedView) addOffsets(ctx context.Context, c *client.Client, topic smq.Topic) error {
	earliest, err := c.Offsets(ctx, topic, nil, smqpb.OffsetsRequest_EARLIEST, time.Time{})
	if err != nil {
		return err
	}
	ends, err := c.Offsets(ctx, topic, nil, smqpb.OffsetsRequest_END, time.Time{})
	if err != nil {
		return err
	}
	if len(earliest) != len(ends) {
		return fmt.Errorf("offsets of topic %s: %w: the topic changed meanwhile", topic, smq.ErrConflict)
	}
	var total int64
	for i, end := range ends {
		v.Offsets = append(v.Offsets, offsetView{Partition: end.Partition, Earliest: earliest[i].Offset, End: end.Offset})
		total += end.Offset - earliest[i].Offset
	}
	v.Messages = &total
	return nil
}

// loadsTimeout bounds how long a description waits for the loads.
const loadsTimeout = 3 * time.Second

// loads asks the leading broker what a topic's segments take in, and which brokers
// there are; nil for what it does not tell.
func loads(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic) (*smqpb.TopicDetail, *smqpb.ClusterInfo) {
	ctx, cancel := context.WithTimeout(ctx, loadsTimeout)
	defer cancel()
	whole, err := c.Snapshot(ctx, &smqpb.WatchRequest{Topic: topic.String(), Brokers: true})
	if err != nil {
		if !errors.Is(err, smq.ErrInvalid) { // which a leading broker is that does not know the call
			e.Warnf("the loads of topic %s are not known: %v", topic, err)
		}
		return nil, nil
	}
	return whole.GetDetail(), whole.GetCluster()
}

// presence is how a broker is that a layout names: ok, draining, silent, or gone;
// empty when it is not known which brokers there are. A segment that nobody uses
// keeps the brokers that it was given, until somebody does.
func presence(cluster *smqpb.ClusterInfo, broker string) string {
	if cluster == nil || broker == "" {
		return ""
	}
	for _, b := range cluster.GetBrokers() {
		if b.GetId() == broker {
			if state := brokerState(cluster, b); state != unknownState {
				return state
			}
			return ""
		}
	}
	return "gone"
}

// marked is a broker's name with its state behind it, unless it is well.
func marked(name, state string) string {
	if state == "" || state == "ok" {
		return name
	}
	return name + " (" + state + ")"
}

// addPresence adds how the brokers are that the layout names; nil adds nothing.
func (v *describedView) addPresence(cluster *smqpb.ClusterInfo) {
	for i := range v.Segments {
		s := &v.Segments[i]
		s.OwnerState = presence(cluster, s.Owner)
		for j := range s.Followers {
			s.Followers[j].State = presence(cluster, s.Followers[j].Broker)
		}
	}
}

// addLoads adds what the leading broker tells; nil adds nothing.
func (v *describedView) addLoads(d *smqpb.TopicDetail) {
	if d == nil || d.GetMissing() || d.GetConfig().GetTopicId() != v.ID {
		return
	}
	v.Scaling = viewScaling(d.GetScaling())
	v.Notes = append(v.Notes, d.GetNotes()...)
	v.Load = &loadView{}
	for _, l := range d.GetLoads() {
		load := &loadView{perSecond(l.GetMessagesPerSecond()), perSecond(l.GetBytesPerSecond())}
		v.Load.MessagesPerSecond += load.MessagesPerSecond
		v.Load.BytesPerSecond += load.BytesPerSecond
		for i := range v.Segments {
			if v.Segments[i].Segment == l.GetSegment() {
				v.Segments[i].Load = load
			}
		}
	}
}

var describedColumns = cli.View[describedView]{
	Name: func(v describedView) string { return v.Topic },
	Columns: []cli.Column[describedView]{
		{Header: "TOPIC", Cell: func(v describedView) string { return v.Topic }},
		{Header: "TOPIC_ID", Cell: func(v describedView) string { return v.ID }},
		{Header: "PARTITIONS", Cell: func(v describedView) string { return number(v.Partitions) }},
		{Header: "KEY", Cell: func(v describedView) string { return v.Key }},
		{Header: "CREATED", Cell: func(v describedView) string { return when(v.CreatedMS) }},
		{Header: "LAYOUT", Cell: func(v describedView) string {
			return fmt.Sprintf("version %d (%s), %s", v.LayoutVersion, v.LayoutCause, smq.Count(v.LiveSegments, "live segment"))
		}, Raw: func(v describedView) []string {
			return []string{number(v.LayoutVersion), v.LayoutCause, number(v.LiveSegments)}
		}},
		{Header: "MESSAGES", Cell: func(v describedView) string {
			if v.Messages == nil {
				return "(--offsets)"
			}
			return number(*v.Messages)
		}, Raw: func(v describedView) []string {
			if v.Messages == nil {
				return []string{"-"}
			}
			return []string{number(*v.Messages)}
		}},
		{Header: "REPLICAS", Cell: func(v describedView) string {
			if v.Replicas == 0 {
				return "by default"
			}
			return number(v.Replicas)
		}, Raw: func(v describedView) []string { return []string{number(v.Replicas)} }},
		{Header: "SCALING", Cell: describedView.scalingText, Raw: func(v describedView) []string {
			if v.Scaling == nil {
				return []string{"-"}
			}
			return []string{orNone(v.Scaling.Mode)}
		}},
		{Header: "LOAD", Cell: func(v describedView) string {
			if v.Load == nil {
				return "not known"
			}
			return v.Load.both()
		}, Raw: func(v describedView) []string { return v.Load.raw() }},
		{Header: "ACKS", Cell: func(v describedView) string { return v.Acks }},
	},
}

// scalingText is the policy as it applies, or as far as it is known.
func (v describedView) scalingText() string {
	switch {
	case v.Scaling != nil:
		return v.Scaling.text
	case v.ScalingSet != nil:
		return v.ScalingSet.text
	}
	return "by default"
}

var layoutColumns = cli.View[layoutSegmentView]{
	Name: func(s layoutSegmentView) string { return number(s.Segment) },
	Columns: []cli.Column[layoutSegmentView]{
		{Header: "SEGMENT", Cell: func(s layoutSegmentView) string { return number(s.Segment) }, Right: true},
		{Header: "PARTITIONS", Cell: func(s layoutSegmentView) string { return smq.Range{Lo: s.Lo, Hi: s.Hi}.String() }},
		{Header: "OWNER", Cell: func(s layoutSegmentView) string { return orNone(s.Owner) }},
		{Header: "ADDRESS", Cell: func(s layoutSegmentView) string { return orNone(marked(s.OwnerAddress, s.OwnerState)) },
			Raw: func(s layoutSegmentView) []string { return []string{orNone(s.OwnerAddress)} }},
		{Header: "FOLLOWERS", Cell: func(s layoutSegmentView) string { return orNone(followersText(s.Followers)) },
			Raw: func(s layoutSegmentView) []string { return []string{followersRaw(s.Followers)} }},
		{Header: "MESSAGES/S", Cell: func(s layoutSegmentView) string { return s.Load.messages() }, Right: true},
		{Header: "BYTES/S", Cell: func(s layoutSegmentView) string { return s.Load.bytes() }, Right: true},
	},
}

var offsetColumns = cli.View[offsetView]{
	Name: func(o offsetView) string { return number(o.Partition) },
	Columns: []cli.Column[offsetView]{
		{Header: "PARTITION", Cell: func(o offsetView) string { return number(o.Partition) }, Right: true},
		{Header: "EARLIEST", Cell: func(o offsetView) string { return number(o.Earliest) }, Right: true},
		{Header: "END", Cell: func(o offsetView) string { return number(o.End) }, Right: true},
	},
}
