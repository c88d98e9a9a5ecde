package cluster

import (
	"context"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/sim"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// changeTimeout bounds a split or merge by hand.
const changeTimeout = 10 * time.Second

// scale splits and merges segments by hand, now and then, over the time of
// trouble. Whether that succeeds does not matter.
func (l *life) scale(ctx context.Context, c *client.Client) {
	d := sim.NewDice(l.cfg.seed, "scale")
	for range l.cfg.changes {
		at, which, where := d.UpTo(trouble), d.IntN(1<<20), d.IntN(1<<20)
		l.spawn(func() {
			if pause(ctx, at) {
				l.change(ctx, c, which, where)
			}
		})
	}
}

// change splits a segment, or merges two, as the numbers say.
func (l *life) change(ctx context.Context, c *client.Client, which, where int) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	topic, err := c.DescribeTopic(ctx, l.topic)
	if err != nil {
		return
	}
	segments := topic.GetLayout().GetSegments()
	i := which % len(segments)
	what, s := "merge", segments[i]
	if where%2 == 0 && i+1 < len(segments) {
		_, err = c.MergeSegments(ctx, l.topic, []uint64{s.GetId(), segments[i+1].GetId()})
	} else if n := int(s.GetHi() - s.GetLo()); n > 1 {
		what = "split"
		_, err = c.SplitSegment(ctx, l.topic, s.GetId(), s.GetLo()+1+int32(where/2%(n-1)))
	} else {
		return
	}
	l.noteChange(what, s, err)
}

func (l *life) noteChange(what string, s *smqpb.Segment, err error) {
	l.note("%s of segment %d, [%d, %d): %v", what, s.GetId(), s.GetLo(), s.GetHi(), err)
	if err == nil {
		l.count(what)
	} else {
		l.count(what + " failed")
	}
}
