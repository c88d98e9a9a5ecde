package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// pastVersions is how many of a topic's newest layout versions are looked at.
	pastVersions = 10
	// freshLoss is for how long a loss is bad: afterwards it is worth knowing, and
	// nothing that is wrong now.
	freshLoss = 24 * time.Hour
)

// pastSeals are the unclean seals in the past of a topic.
type pastSeals struct {
	id    string // of the topic
	seals map[uint64]pastSeal
}

// pastSeal is the unclean seal of a segment.
type pastSeal struct {
	segmentRef
	ms int64 // when the version was written that has it
}

// askPast looks for unclean seals as far as that is cheap: among the changes that
// the leading broker remembers, and in the newest layout versions of all topics,
// for as long as a question may take.
func (x *examination) askPast(ctx context.Context, conns *rpc.Conns) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	l, err := x.leaderClient(conns)
	if err != nil {
		return // the topics have come by it
	}
	x.past = make(map[string]*pastSeals)
	ids := make(map[string]string, len(x.topics))
	var changed []string
	versions := make(map[string]uint64)
	for _, t := range x.topics {
		name := t.GetConfig().GetTopic()
		ids[name] = t.GetConfig().GetTopicId()
		if t.GetError() == nil && t.GetLayoutVersion() > 1 {
			changed = append(changed, name)
			versions[name] = t.GetLayoutVersion()
		}
	}
	x.askEvents(ctx, l, ids)
	var mu sync.Mutex
	each(changed, func(topic string) {
		resp, err := l.ListVersions(ctx, &smqpb.ListVersionsRequest{
			Topic: topic, TopicId: ids[topic], After: max(versions[topic], pastVersions) - pastVersions, Limit: pastVersions,
		})
		mu.Lock()
		defer mu.Unlock()
		if err != nil && !errors.Is(err, smq.ErrNotFound) {
			x.unread++
		}
		for _, v := range resp.GetVersions() {
			x.addSeals(topic, ids[topic], v.GetCreatedMs(), v.GetSealed())
		}
	})
}

// askEvents takes what the leading broker remembers of the topics with those ids.
// One that is too old to tell is not missed: the versions are there.
func (x *examination) askEvents(ctx context.Context, l smqpb.LeaderClient, ids map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout/2) // the rest is for the versions
	defer cancel()
	stream, err := l.Watch(ctx, &smqpb.WatchRequest{Events: true, EventsSinceMs: 1})
	for err == nil {
		var u *smqpb.WatchUpdate
		u, err = stream.Recv()
		for _, e := range u.GetEvents() {
			if id, there := ids[e.GetTopic()]; there && id == e.GetTopicId() {
				x.addSeals(e.GetTopic(), id, e.GetCreatedMs(), e.GetSealed())
			}
		}
		if u.GetComplete() {
			return
		}
	}
}

// addSeals takes note of those that are unclean.
func (x *examination) addSeals(topic, id string, ms int64, sealed []*smqpb.SealedSegment) {
	for _, s := range sealed {
		if !s.GetUnclean() {
			continue
		}
		if x.past[topic] == nil {
			x.past[topic] = &pastSeals{id: id, seals: make(map[uint64]pastSeal)}
		}
		x.past[topic].seals[s.GetId()] = pastSeal{segmentRef{Segment: s.GetId(), Lo: s.GetLo(), Hi: s.GetHi()}, ms}
	}
}

// judgeSeals says of which topics messages may have been lost.
func (x examination) judgeSeals() []finding {
	const check = "history"
	var found []finding
	for _, topic := range sortedKeys(x.past) {
		found = append(found, x.judgeLoss(topic, x.past[topic]))
	}
	if x.unread > 0 {
		found = append(found, finding{check, note, fmt.Sprintf("there was no time to look for losses in the layouts of %s", smq.Count(x.unread, "topic")),
			"smq-admin topic history TOPIC shows them; give the doctor more time with --timeout"})
	}
	if len(found) == 0 && len(x.topics) > 0 {
		found = append(found, finding{check, ok, fmt.Sprintf("no unclean seal in the newest layouts of %s", smq.Count(len(x.topics), "topic")), ""})
	}
	return found
}

func (x examination) judgeLoss(topic string, past *pastSeals) finding {
	var seals []pastSeal
	for _, s := range past.seals {
		seals = append(seals, s)
	}
	slices.SortFunc(seals, func(a, b pastSeal) int { return cmp.Or(-cmp.Compare(a.ms, b.ms), cmp.Compare(a.Segment, b.Segment)) })
	var names []string
	for _, s := range seals {
		names = append(names, fmt.Sprintf("%s at %s", s.segmentRef, when(s.ms)))
	}
	noun := "segment"
	if len(seals) > 1 {
		noun = "segments"
	}
	f := finding{"history", bad, fmt.Sprintf("topic %s: every replica was lost of %s %s, an unclean seal: messages that were acked as replicated before then, and not stored yet, may be lost",
		topic, noun, listed(names)), strings.Join([]string{
		"find out what ended all replicas at once, and publish again what came shortly before, where that can be done",
		"smq-admin topic history " + topic + " shows more",
	}, "; ")}
	if x.now.Sub(time.UnixMilli(seals[0].ms)) >= freshLoss {
		f.Status = note
	}
	return f
}
