package layout

import "time"

// trend is where a load that is given as an average over the last seconds is
// heading. Right after a step the average is far from the traffic, and after a
// burst it is high though the traffic is over.
type trend struct {
	old, recent     Load
	oldAt, recentAt int64 // nanoseconds since 1970; 0: none yet
}

const (
	trendOver = 2 * time.Second // the slope is taken over once or twice this
	trendFor  = 3 * time.Second // and goes on for so long
)

// add takes in the load at a look.
func (t *trend) add(l Load, now int64) {
	switch {
	case t.oldAt == 0:
		t.old, t.oldAt = l, now
		t.recent, t.recentAt = l, now
	case now-t.recentAt >= int64(trendOver) && t.recentAt > t.oldAt:
		t.old, t.oldAt = t.recent, t.recentAt
		t.recent, t.recentAt = l, now
	case now-t.recentAt >= int64(trendOver):
		t.recent, t.recentAt = l, now
	}
}

// ahead is what the load l of now is heading for: between nothing and twice l.
func (t *trend) ahead(l Load, now int64) Load {
	if now <= t.oldAt {
		return l
	}
	by := trendFor.Seconds() / time.Duration(now-t.oldAt).Seconds()
	return Load{
		Messages: clamp(l.Messages+by*(l.Messages-t.old.Messages), 2*l.Messages),
		Bytes:    clamp(l.Bytes+by*(l.Bytes-t.old.Bytes), 2*l.Bytes),
	}
}

func clamp(v, most float64) float64 { return max(0, min(v, most)) }
