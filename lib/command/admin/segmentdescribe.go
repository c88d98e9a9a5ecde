package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newSegmentDescribe(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe TOPIC SEGMENT",
		Short: "Show a segment: who owns it, what is in it, what it came from and became",
		Long: `Show a segment, live or sealed: who owns it and holds copies, what it has taken in,
which change of the layout opened it and which one ended it; of a live one also the
partitions that take something in, the busiest first. TOPIC/SEGMENT, as
smq-admin segment list -o name prints it, is one argument for both.`,
		Example: "  smq-admin segment describe orders 3\n  smq-admin segment list -o name | xargs -n 1 smq-admin segment describe",
		Args:    cli.Args("TOPIC", "[SEGMENT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, id, err := parseSegmentName(args)
			if err != nil {
				return err
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				view, damaged, err := describeSegment(ctx, e, c, topic, id)
				if err != nil {
					return err
				}
				err = segmentDescription.One(e, view, func() error {
					if len(view.PartitionLoads) == 0 {
						return nil
					}
					if _, err := fmt.Fprintln(e.Stdout); err != nil {
						return err
					}
					return partitionColumns.Table(e, view.PartitionLoads)
				})
				if err != nil {
					return err
				}
				return damageVerdict(e, "version", damaged)
			})
		},
		ValidArgsFunction: connect.CompleteSegments(e, 1),
	}
	e.AddOutputFlag(cmd)
	return cmd
}

// parseSegmentName takes a topic and a segment, or both in one.
func parseSegmentName(args []string) (smq.Topic, uint64, error) {
	if len(args) == 1 {
		i := strings.LastIndexByte(args[0], '/')
		if i < 0 {
			return smq.Topic{}, 0, cli.Usagef("SEGMENT is missing")
		}
		args = []string{args[0][:i], args[0][i+1:]}
	}
	topic, err := smq.ParseTopic(args[0])
	if err != nil {
		return smq.Topic{}, 0, err
	}
	ids, err := parseSegments(args[1:])
	if err != nil {
		return smq.Topic{}, 0, err
	}
	return topic, ids[0], nil
}

// segmentDescriptionView is a segment and the changes that it came from and became.
type segmentDescriptionView struct {
	segmentView
	Followers []replicaView `json:"followers"`
	Opened    *openingView  `json:"opened"` // null: that version of the layout cannot be read
	Ended     *endingView   `json:"ended"`  // null: it is live, or that version cannot be read
	// PartitionLoads are of those that take something in, the busiest first; null: not
	// known.
	PartitionLoads []partitionView `json:"partition_loads"`
}

// openingView is the change that opened a segment.
type openingView struct {
	layoutChange
	From []segmentRef `json:"from"` // what it continues
}

// endingView is the change that ended a segment.
type endingView struct {
	layoutChange
	To      []segmentRef `json:"to"` // what continues it
	PauseMS int64        `json:"pause_ms"`
	Unclean bool         `json:"unclean"`
}

// layoutChange names a version of a layout.
type layoutChange struct {
	Version   uint64 `json:"version"`
	CreatedMS int64  `json:"created_ms"`
	Cause     string `json:"cause"`
	Reason    string `json:"reason"`
}

func changeOf(v *smqpb.Layout) layoutChange {
	return layoutChange{Version: v.GetVersion(), CreatedMS: v.GetCreatedMs(), Cause: v.GetCause(), Reason: v.GetReason()}
}

// text is for instance 2026-01-31T15:04:05Z split (version 3), too much traffic.
func (c layoutChange) text() string {
	text := fmt.Sprintf("%s %s (version %d)", when(c.CreatedMS), c.Cause, c.Version)
	if c.Reason != "" {
		text += ", " + c.Reason
	}
	return text
}

// describeSegment is a segment by the versions of its topic's layout and, while it
// lives, by its owner. damaged are the versions that cannot be read.
func describeSegment(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, id uint64) (view segmentDescriptionView, damaged []error, err error) {
	live, err := liveSegments(ctx, e, c, []smq.Topic{topic})
	if err != nil {
		return view, nil, err
	}
	view = segmentDescriptionView{Followers: []replicaView{}}
	if i := slices.IndexFunc(live, func(s segmentView) bool { return s.Segment == id }); i >= 0 {
		view.segmentView = live[i]
		load, _ := loads(ctx, e, c, topic)
		view.PartitionLoads = viewPartitions(load, id)
	}
	var before map[smq.SegmentID]bool
	for v, err := range c.Versions(ctx, topic) {
		switch {
		case v == nil:
			return view, nil, connect.NoTopic(ctx, c, err, topic)
		case err != nil:
			damaged = append(damaged, err)
			continue
		}
		fresh := opened(v, before)
		view.takeLive(id, v, fresh)
		view.takeSealed(id, v, fresh)
		before = idsOf(v)
	}
	if view.Segment == 0 {
		return view, nil, fmt.Errorf("segment %d of topic %v: %w; smq-admin topic history %v shows all that there have been", id, topic, smq.ErrNotFound, topic)
	}
	if view.State == "" { // it has been opened since the live ones were listed, or its end cannot be read
		view.State = "assigned"
		if len(damaged) > 0 {
			view.State = "sealed"
		}
	}
	view.Topic, view.TopicID = live[0].Topic, live[0].TopicID // one covers each partition
	return view, damaged, view.addStates(ctx, c)
}

// takeLive takes in what a version of the layout says of the segment while it lived.
// fresh are the segments that the version opened.
func (view *segmentDescriptionView) takeLive(id uint64, v *smqpb.Layout, fresh []*smqpb.Segment) {
	for _, s := range v.GetSegments() {
		if s.GetId() != id {
			continue
		}
		view.Followers = viewReplicas(s.GetReplicas())
		if view.Segment == 0 {
			view.segmentView = segmentView{Segment: id, Lo: s.GetLo(), Hi: s.GetHi(), Owner: s.GetOwner(), OwnerAddress: s.GetOwnerAddress()}
		}
		if slices.Contains(fresh, s) {
			view.Opened = &openingView{changeOf(v), viewPredecessors(s.GetPredecessors())}
		}
	}
}

// takeSealed takes in what a version of the layout says of the segment's end.
func (view *segmentDescriptionView) takeSealed(id uint64, v *smqpb.Layout, fresh []*smqpb.Segment) {
	for _, s := range v.GetSealed() {
		if s.GetId() != id {
			continue
		}
		view.Segment, view.Lo, view.Hi, view.State = id, s.GetLo(), s.GetHi(), "sealed"
		view.Messages, view.Bytes, view.Chunks = s.GetMessages(), s.GetBytes(), s.GetSealChunk()
		if !s.GetEmpty() {
			view.Chunks++ // they count from 0, and the seal is one
		}
		view.Ended = &endingView{changeOf(v), []segmentRef{}, v.GetPauseMs(), s.GetUnclean()}
		for _, next := range fresh {
			if next.GetLo() < s.GetHi() && s.GetLo() < next.GetHi() {
				view.Ended.To = append(view.Ended.To, refTo(next))
			}
		}
	}
}

func idsOf(v *smqpb.Layout) map[smq.SegmentID]bool {
	ids := make(map[smq.SegmentID]bool, len(v.GetSegments()))
	for _, s := range v.GetSegments() {
		ids[smq.SegmentID(s.GetId())] = true
	}
	return ids
}

func viewPredecessors(predecessors []*smqpb.Predecessor) []segmentRef {
	refs := []segmentRef{}
	for _, p := range predecessors {
		refs = append(refs, segmentRef{Segment: p.GetSegment(), Lo: p.GetLo(), Hi: p.GetHi()})
	}
	return refs
}

// addStates adds how the brokers are now that the segment names.
func (view *segmentDescriptionView) addStates(ctx context.Context, c *client.Client) error {
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	view.OwnerState = presence(info, view.Owner)
	for i := range view.Followers {
		view.Followers[i].State = presence(info, view.Followers[i].Broker)
	}
	return nil
}

// segmentDescription is what a segment is described by; first as in a list of them.
var segmentDescription = cli.View[segmentDescriptionView]{
	Name: func(s segmentDescriptionView) string { return segmentColumns.Name(s.segmentView) },
	Columns: append(within(segmentColumns.Columns, func(s segmentDescriptionView) segmentView { return s.segmentView }), []cli.Column[segmentDescriptionView]{
		{Header: "FOLLOWERS", Cell: func(s segmentDescriptionView) string { return orNone(followersText(s.Followers)) },
			Raw: func(s segmentDescriptionView) []string { return []string{followersRaw(s.Followers)} }},
		{Header: "STORE_ERROR", Cell: func(s segmentDescriptionView) string { return orNone(s.StoreError) }},
		{Header: "OPENED", Cell: segmentDescriptionView.openedText, Raw: func(s segmentDescriptionView) []string {
			if s.Opened == nil {
				return []string{"-", "-", "-"}
			}
			return []string{number(s.Opened.Version), s.Opened.Cause, plainSegments(s.Opened.From)}
		}},
		{Header: "ENDED", Cell: segmentDescriptionView.endedText, Raw: func(s segmentDescriptionView) []string {
			if s.Ended == nil {
				return []string{"-", "-", "-"}
			}
			return []string{number(s.Ended.Version), s.Ended.Cause, plainSegments(s.Ended.To)}
		}},
	}...),
}

func (view segmentDescriptionView) openedText() string {
	if view.Opened == nil {
		return "not known"
	}
	if len(view.Opened.From) == 0 {
		return view.Opened.text()
	}
	return view.Opened.text() + "; from " + listSegments(view.Opened.From)
}

func (view segmentDescriptionView) endedText() string {
	if view.Ended == nil {
		return "-"
	}
	text := view.Ended.text()
	if view.Ended.Unclean {
		text += "; UNCLEAN: every replica was lost"
	}
	if len(view.Ended.To) > 0 {
		text += "; to " + listSegments(view.Ended.To)
	}
	return text
}

// partitionView is what a partition takes in.
type partitionView struct {
	Partition int32 `json:"partition"`
	loadView
}

// viewPartitions are the loads of a segment's partitions, the busiest first; nil when
// they are not known.
func viewPartitions(d *smqpb.TopicDetail, segment uint64) []partitionView {
	for _, l := range d.GetLoads() {
		if l.GetSegment() != segment || len(l.GetPartitions()) != len(l.GetPartitionBytes()) || len(l.GetPartitions()) != len(l.GetPartitionMessages()) {
			continue
		}
		views := []partitionView{}
		for i, p := range l.GetPartitions() {
			views = append(views, partitionView{p, loadView{perSecond(float64(l.GetPartitionMessages()[i])), perSecond(float64(l.GetPartitionBytes()[i]))}})
		}
		slices.SortFunc(views, func(a, b partitionView) int {
			return cmp.Or(-cmp.Compare(a.BytesPerSecond, b.BytesPerSecond), cmp.Compare(a.Partition, b.Partition))
		})
		return views
	}
	return nil
}

var partitionColumns = cli.View[partitionView]{
	Name: func(v partitionView) string { return number(v.Partition) },
	Columns: []cli.Column[partitionView]{
		{Header: "PARTITION", Cell: func(v partitionView) string { return number(v.Partition) }, Right: true},
		{Header: "MESSAGES/S", Cell: func(v partitionView) string { return v.messages() }, Right: true},
		{Header: "BYTES/S", Cell: func(v partitionView) string { return v.bytes() }, Right: true},
	},
}
