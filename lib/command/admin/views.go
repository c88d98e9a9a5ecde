package admin

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// The json tags of the views are what scripts read: they are only added to.

// topicView is a topic in a list.
type topicView struct {
	Topic         string `json:"topic"`
	ID            string `json:"topic_id"`
	Partitions    int32  `json:"partitions"`
	Key           string `json:"key"`
	CreatedMS     int64  `json:"created_ms"`
	LayoutVersion uint64 `json:"layout_version"`
	LiveSegments  int32  `json:"live_segments"`
}

func viewSummary(t *smqpb.TopicSummary) topicView {
	v := viewConfig(t.GetConfig())
	v.LayoutVersion, v.LiveSegments = t.GetLayoutVersion(), t.GetSegments()
	return v
}

func viewConfig(c *smqpb.TopicConfig) topicView {
	return topicView{Topic: c.GetTopic(), ID: c.GetTopicId(), Partitions: c.GetPartitions(), Key: c.GetKey(), CreatedMS: c.GetCreatedMs()}
}

var topicColumns = cli.View[topicView]{
	Name: func(t topicView) string { return t.Topic },
	Columns: []cli.Column[topicView]{
		{Header: "TOPIC", Cell: func(t topicView) string { return t.Topic }},
		{Header: "PARTITIONS", Cell: func(t topicView) string { return number(t.Partitions) }, Right: true},
		{Header: "SEGMENTS", Cell: func(t topicView) string { return number(t.LiveSegments) }, Right: true},
		{Header: "KEY", Cell: func(t topicView) string { return t.Key }},
		{Header: "CREATED", Cell: func(t topicView) string { return when(t.CreatedMS) }},
	},
}

// describedView is a topic with its layout.
type describedView struct {
	topicView
	LayoutCause string              `json:"layout_cause"`
	Segments    []layoutSegmentView `json:"segments"`
	Messages    *int64              `json:"messages,omitempty"` // with offsets
	Offsets     []offsetView        `json:"offsets,omitempty"`
}

// layoutSegmentView is a live segment as the layout has it.
type layoutSegmentView struct {
	Segment      uint64 `json:"segment"`
	Lo           int32  `json:"lo"`
	Hi           int32  `json:"hi"`
	Owner        string `json:"owner"`
	OwnerAddress string `json:"owner_address"`
}

// offsetView is where a partition begins and ends.
type offsetView struct {
	Partition int32 `json:"partition"`
	Earliest  int64 `json:"earliest"`
	End       int64 `json:"end"`
}

func viewDescription(d *smqpb.DescribeTopicResponse) describedView {
	v := describedView{topicView: viewConfig(d.GetConfig()), LayoutCause: d.GetLayout().GetCause(), Segments: []layoutSegmentView{}}
	v.LayoutVersion, v.LiveSegments = d.GetLayout().GetVersion(), int32(len(d.GetLayout().GetSegments()))
	for _, s := range d.GetLayout().GetSegments() {
		v.Segments = append(v.Segments, layoutSegmentView{
			Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi(), Owner: s.GetOwner(), OwnerAddress: s.GetOwnerAddress(),
		})
	}
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

var describedColumns = cli.View[describedView]{
	Name: func(v describedView) string { return v.Topic },
	Columns: []cli.Column[describedView]{
		{Header: "TOPIC", Cell: func(v describedView) string { return v.Topic }},
		{Header: "TOPIC_ID", Cell: func(v describedView) string { return v.ID }},
		{Header: "PARTITIONS", Cell: func(v describedView) string { return number(v.Partitions) }},
		{Header: "KEY", Cell: func(v describedView) string { return v.Key }},
		{Header: "CREATED", Cell: func(v describedView) string { return when(v.CreatedMS) }},
		{Header: "LAYOUT", Cell: func(v describedView) string {
			return fmt.Sprintf("version %d (%s), %d live segments", v.LayoutVersion, v.LayoutCause, v.LiveSegments)
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
	},
}

var layoutColumns = cli.View[layoutSegmentView]{
	Name: func(s layoutSegmentView) string { return number(s.Segment) },
	Columns: []cli.Column[layoutSegmentView]{
		{Header: "SEGMENT", Cell: func(s layoutSegmentView) string { return number(s.Segment) }, Right: true},
		{Header: "PARTITIONS", Cell: func(s layoutSegmentView) string { return smq.Range{Lo: s.Lo, Hi: s.Hi}.String() }},
		{Header: "OWNER", Cell: func(s layoutSegmentView) string { return orNone(s.Owner) }},
		{Header: "ADDRESS", Cell: func(s layoutSegmentView) string { return orNone(s.OwnerAddress) }},
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

func number[T int32 | int64 | uint64](n T) string {
	if n < 0 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}

// perSecond rounds a rate to thousandths: what fades away comes to 0.
func perSecond(rate float64) float64 { return math.Round(rate*1000) / 1000 }

func when(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
