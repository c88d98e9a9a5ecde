package admin

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// changeView is a change of a topic's layout: a version in its history, or an
// event as it happens.
type changeView struct {
	Topic     string       `json:"topic"`
	TopicID   string       `json:"topic_id"`
	Version   uint64       `json:"version"`
	CreatedMS int64        `json:"created_ms"`
	Cause     string       `json:"cause"` // create, assign, split, merge, failover, drain, move, roll; in events also delete
	From      []sealedView `json:"from"`
	To        []segmentRef `json:"to"`
	PauseMS   int64        `json:"pause_ms"`
	Reason    string       `json:"reason"`
	Leader    string       `json:"leader"`
	Segments  int          `json:"live_segments"`   // after it
	Error     string       `json:"error,omitempty"` // why the version cannot be read; it has no more than its number then
}

// sealedView is a segment that the change took out of the layout, and the
// traffic that it took in until then, where that is known.
type sealedView struct {
	segmentRef
	Unclean           bool     `json:"unclean"`
	Messages          uint64   `json:"messages"`
	Bytes             uint64   `json:"bytes"`
	MessagesPerSecond *float64 `json:"messages_per_second"` // null: not known
	BytesPerSecond    *float64 `json:"bytes_per_second"`
}

func viewSealed(sealed []*smqpb.SealedSegment, loads []*smqpb.SegmentLoad) []sealedView {
	views := []sealedView{}
	for _, s := range sealed {
		v := sealedView{
			segmentRef: segmentRef{Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi()},
			Unclean:    s.GetUnclean(), Messages: s.GetMessages(), Bytes: s.GetBytes(),
		}
		for _, l := range loads {
			if l.GetSegment() == s.GetId() {
				messages, bytes := perSecond(l.GetMessagesPerSecond()), perSecond(l.GetBytesPerSecond())
				v.MessagesPerSecond, v.BytesPerSecond = &messages, &bytes
			}
		}
		views = append(views, v)
	}
	return views
}

func viewRefs(segments []*smqpb.Segment) []segmentRef {
	refs := []segmentRef{}
	for _, s := range segments {
		refs = append(refs, refTo(s))
	}
	return refs
}

// viewEvent is an event as it is shown.
func viewEvent(e *smqpb.LayoutEvent) changeView {
	v := changeView{
		Topic: e.GetTopic(), TopicID: e.GetTopicId(), Version: e.GetVersion(), CreatedMS: e.GetCreatedMs(), Cause: e.GetCause(),
		From: viewSealed(e.GetSealed(), e.GetLoads()), To: viewRefs(e.GetOpened()),
		PauseMS: e.GetPauseMs(), Reason: e.GetReason(), Leader: e.GetLeader(), Segments: int(e.GetSegments()),
	}
	if e.GetDeleted() {
		v.Cause = "delete"
	}
	return v
}

// from names what was sealed, or is empty.
func (c changeView) from() []segmentRef {
	var refs []segmentRef
	for _, s := range c.From {
		refs = append(refs, s.segmentRef)
	}
	return refs
}

// fromText is from for people: it says which seals are unclean, and names those
// first, so that none is among those that are only counted.
func (c changeView) fromText() string {
	var unclean, clean []string
	for _, s := range c.From {
		if s.Unclean {
			unclean = append(unclean, s.String()+" UNCLEAN")
		} else {
			clean = append(clean, s.String())
		}
	}
	return listed(append(unclean, clean...))
}

// uncleanIDs are the segments with unclean seals, for programs: 5,6.
func (c changeView) uncleanIDs() string {
	var ids []string
	for _, s := range c.From {
		if s.Unclean {
			ids = append(ids, number(s.Segment))
		}
	}
	return orNone(strings.Join(ids, ","))
}

// load is what the sealed segments took in together, as far as that is known;
// nil when it is of none.
func (c changeView) load() *loadView {
	var sum *loadView
	for _, s := range c.From {
		if s.MessagesPerSecond == nil || s.BytesPerSecond == nil {
			continue
		}
		if sum == nil {
			sum = &loadView{}
		}
		sum.MessagesPerSecond += *s.MessagesPerSecond
		sum.BytesPerSecond += *s.BytesPerSecond
	}
	return sum
}

// loadText is empty when no load is known.
func (c changeView) loadText() string {
	load := c.load()
	if load == nil {
		return ""
	}
	return load.both()
}

func (c changeView) pauseText() string {
	if c.PauseMS == 0 {
		return ""
	}
	return (time.Duration(c.PauseMS) * time.Millisecond).String()
}

// plainSegments are all segments, for programs: 5:0-32,6:32-64 are the
// partitions from 0 to 31 and from 32 to 63.
func plainSegments(refs []segmentRef) string {
	var texts []string
	for _, s := range refs {
		texts = append(texts, fmt.Sprintf("%d:%d-%d", s.Segment, s.Lo, s.Hi))
	}
	return orNone(strings.Join(texts, ","))
}

var historyColumns = cli.View[changeView]{
	Name: func(c changeView) string { return number(c.Version) },
	Columns: []cli.Column[changeView]{
		{Header: "VERSION", Cell: func(c changeView) string { return number(c.Version) }, Right: true},
		{Header: "TIME", Cell: func(c changeView) string { return when(c.CreatedMS) }},
		{Header: "CAUSE", Cell: func(c changeView) string { return c.Cause }},
		{Header: "FROM", Cell: func(c changeView) string { return orNone(c.fromText()) },
			Raw: func(c changeView) []string { return []string{plainSegments(c.from())} }},
		{Header: "TO", Cell: func(c changeView) string { return orNone(listSegments(c.To)) },
			Raw: func(c changeView) []string { return []string{plainSegments(c.To)} }},
		{Header: "LOAD", Cell: func(c changeView) string { return orNone(c.loadText()) },
			Raw: func(c changeView) []string { return c.load().raw() }},
		{Header: "PAUSE", Cell: func(c changeView) string { return orNone(c.pauseText()) }, Right: true,
			Raw: func(c changeView) []string { return []string{number(c.PauseMS)} }},
		{Header: "REASON", Cell: func(c changeView) string { return orNone(c.Reason) },
			// The plain format is only added to: what FROM tells people comes last.
			Raw: func(c changeView) []string { return []string{orNone(c.Reason), c.uncleanIDs()} }},
	},
}

// eventColumns are what an event is in the plain format; Name is its topic.
var eventColumns = cli.View[changeView]{
	Name: func(c changeView) string { return c.Topic },
	Columns: append([]cli.Column[changeView]{
		{Header: "TOPIC", Cell: func(c changeView) string { return c.Topic }},
	}, historyColumns.Columns...),
}

// line is the change in a line for people, without characters that could drive
// a terminal.
func (c changeView) line() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s", when(c.CreatedMS), c.Topic)
	if c.Version > 0 {
		fmt.Fprintf(&text, "  v%d", c.Version)
	}
	fmt.Fprintf(&text, "  %s", c.Cause)
	from, to := listSegments(c.from()), listSegments(c.To)
	switch {
	case from != "" && to != "":
		fmt.Fprintf(&text, "  %s → %s", from, to)
	case from != "":
		fmt.Fprintf(&text, "  %s sealed", from)
	case to != "":
		fmt.Fprintf(&text, "  → %s", to)
	}
	for _, s := range c.From {
		if s.Unclean {
			fmt.Fprintf(&text, "; segment %d sealed uncleanly", s.Segment)
		}
	}
	if load := c.loadText(); load != "" {
		fmt.Fprintf(&text, "; %s", load)
	}
	if pause := c.pauseText(); pause != "" {
		fmt.Fprintf(&text, "; paused %s", pause)
	}
	if c.Reason != "" {
		fmt.Fprintf(&text, "; %s", c.Reason)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text.String())
}

// opened are the segments of a version that the one before does not have.
func opened(version *smqpb.Layout, before map[smq.SegmentID]bool) []*smqpb.Segment {
	var fresh []*smqpb.Segment
	for _, s := range version.GetSegments() {
		if !before[smq.SegmentID(s.GetId())] {
			fresh = append(fresh, s)
		}
	}
	return fresh
}
