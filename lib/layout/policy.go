package layout

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Mode says who changes the number of a topic's segments.
type Mode string

// The modes. The empty one stands for the default.
const (
	Off    Mode = "off"    // nobody, not by hand either
	Manual Mode = "manual" // people
	Auto   Mode = "auto"   // the planner, and people
)

// Policy is when a topic's segments split and merge by themselves. What is 0 or
// empty is the default of whoever completes it with WithDefaults.
type Policy struct {
	Mode Mode
	// Split is the threshold: a segment with more than this in either dimension
	// is split, neighbours with less than half of it together are merged. A
	// dimension that is still 0 with the defaults filled in is not looked at.
	Split       Load
	MinSegments int
	MaxSegments int
	// CoolDown is the least time between two changes of the same partitions.
	CoolDown time.Duration
	// SplitAfter and MergeAfter are how long a load has to be above, or below,
	// before anything is done about it.
	SplitAfter time.Duration
	MergeAfter time.Duration
}

// DefaultPolicy is what applies where neither the topic nor the cluster says
// otherwise. A burst shorter than two seconds is not worth a split, and traffic
// that comes back within twenty seconds finds its segments as they were.
func DefaultPolicy() Policy {
	return Policy{
		Mode:        Auto,
		Split:       Load{Messages: 50_000, Bytes: 20e6},
		MinSegments: 1,
		MaxSegments: 64,
		CoolDown:    10 * time.Second,
		SplitAfter:  2 * time.Second,
		MergeAfter:  20 * time.Second,
	}
}

// WithDefaults fills in what p leaves open. Of the numbers of segments the one
// that p says wins over the other's default.
func (p Policy) WithDefaults(d Policy) Policy {
	out := Policy{
		Mode:        cmp.Or(p.Mode, d.Mode),
		Split:       Load{Messages: cmp.Or(p.Split.Messages, d.Split.Messages), Bytes: cmp.Or(p.Split.Bytes, d.Split.Bytes)},
		MinSegments: cmp.Or(p.MinSegments, d.MinSegments),
		MaxSegments: cmp.Or(p.MaxSegments, d.MaxSegments),
		CoolDown:    cmp.Or(p.CoolDown, d.CoolDown),
		SplitAfter:  cmp.Or(p.SplitAfter, d.SplitAfter),
		MergeAfter:  cmp.Or(p.MergeAfter, d.MergeAfter),
	}
	switch {
	case out.MaxSegments == 0 || out.MinSegments <= out.MaxSegments:
	case p.MaxSegments == 0:
		out.MaxSegments = out.MinSegments
	case p.MinSegments == 0:
		out.MinSegments = out.MaxSegments
	}
	return out
}

// MostSegments is the most segments that a policy may ask for. Every layout
// version lists them all.
const MostSegments = 4096

// Validate refuses, with an smq.ErrInvalid, what no topic can have. What is 0
// or empty is not looked at.
func (p Policy) Validate() error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w scaling: %s", smq.ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch p.Mode {
	case "", Off, Manual, Auto:
	default:
		return refuse("the mode %q is none of off, manual, auto", p.Mode)
	}
	switch {
	case !isRate(p.Split.Bytes):
		return refuse("a threshold of %v bytes per second", p.Split.Bytes)
	case !isRate(p.Split.Messages):
		return refuse("a threshold of %v messages per second", p.Split.Messages)
	case p.MinSegments < 0 || p.MinSegments > MostSegments:
		return refuse("at least %s: it must be between 1 and %d", smq.Count(p.MinSegments, "segment"), MostSegments)
	case p.MaxSegments < 0 || p.MaxSegments > MostSegments:
		return refuse("at most %s: it must be between 1 and %d", smq.Count(p.MaxSegments, "segment"), MostSegments)
	case p.MaxSegments > 0 && p.MinSegments > p.MaxSegments:
		return refuse("at least %s and at most %d", smq.Count(p.MinSegments, "segment"), p.MaxSegments)
	case p.CoolDown < 0 || p.SplitAfter < 0 || p.MergeAfter < 0:
		return refuse("a negative time")
	}
	return nil
}

func isRate(r float64) bool { return r >= 0 && !math.IsInf(r, 1) }

// pressure is the load in thresholds: above 1 a segment is too loaded. Of the
// two dimensions the worse counts.
func (p Policy) pressure(l Load) float64 {
	var worst float64
	if p.Split.Bytes > 0 {
		worst = l.Bytes / p.Split.Bytes
	}
	if p.Split.Messages > 0 {
		worst = max(worst, l.Messages/p.Split.Messages)
	}
	return worst
}

// watches reports whether there is a threshold in any dimension.
func (p Policy) watches() bool { return p.Split.Bytes > 0 || p.Split.Messages > 0 }

// mergeBelow is the pressure below which neighbours are merged. From there to a
// split the traffic has to double, and the halves of a split are merged only
// when it has halved.
const mergeBelow = 0.5

// byMessages reports whether the load is nearer to the threshold in messages
// than in bytes.
func (p Policy) byMessages(l Load) bool {
	onlyBytes := Policy{Split: Load{Bytes: p.Split.Bytes}}
	return p.pressure(l) > onlyBytes.pressure(l)
}

// rate is the load in the dimension in which it is nearest to the threshold,
// and threshold is f thresholds in the same, for people.
func (p Policy) rate(l Load, f float64) (rate, threshold string) {
	if p.byMessages(l) {
		return smq.MessageRate(l.Messages), smq.MessageRate(f * p.Split.Messages)
	}
	return smq.ByteRate(l.Bytes), smq.ByteRate(f * p.Split.Bytes)
}

// bounds are the least and the most segments that a topic may have.
func (p Policy) bounds(partitions int32) (least, most int) {
	most = int(partitions)
	if p.MaxSegments > 0 {
		most = min(most, p.MaxSegments)
	}
	return min(max(p.MinSegments, 1), most), most
}
