package admin

import (
	"math"
	"strconv"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
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
	Error         string `json:"error,omitempty"` // why it cannot be read
}

// viewSummary is a topic, or what is known of one that cannot be read.
func viewSummary(t *smqpb.TopicSummary, damage error) topicView {
	v := viewConfig(t.GetConfig())
	if damage != nil {
		v.Error = damage.Error()
	}
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

// within are the columns of a list in the description of one of its items.
func within[T, D any](columns []cli.Column[T], item func(D) T) []cli.Column[D] {
	var all []cli.Column[D]
	for _, c := range columns {
		as := cli.Column[D]{Header: c.Header, Right: c.Right, Cell: func(d D) string { return c.Cell(item(d)) }}
		if c.Raw != nil {
			as.Raw = func(d D) []string { return c.Raw(item(d)) }
		}
		all = append(all, as)
	}
	return all
}
