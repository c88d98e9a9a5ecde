package sub

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
)

type placeKind int

const (
	placeNone placeKind = iota
	placeEarliest
	placeLatest // as the end of what there is now
	placeOffset
	placeLast // n messages before the end
	placeTime
)

// place is a position that is not yet one of a partition.
type place struct {
	kind placeKind
	n    int64 // offset, or number of messages
	time time.Time
}

// parseFrom reads the value of --from.
func parseFrom(s string, now time.Time) (place, error) {
	switch s {
	case "earliest":
		return place{kind: placeEarliest}, nil
	case "latest":
		return place{kind: placeLatest}, nil
	}
	if at, ok := strings.CutPrefix(s, "@"); ok {
		return parseAt("from", at)
	}
	if back, ok := strings.CutPrefix(s, "-"); ok {
		if n, err := strconv.ParseUint(back, 10, 62); err == nil {
			return place{kind: placeLast, n: int64(n)}, nil
		}
	} else if n, err := strconv.ParseUint(s, 10, 62); err == nil {
		return place{kind: placeOffset, n: int64(n)}, nil
	} else if ago, err := cli.ParseDuration(s); err == nil {
		return place{kind: placeTime, time: now.Add(-ago)}, nil
	}
	return place{}, cli.Usagef("--from %q is not one of earliest, latest, OFFSET, -N, @TIME and a duration such as 10m", s)
}

// parseUntil reads the value of --until; an empty one is no end.
func parseUntil(s string) (place, error) {
	switch s {
	case "":
		return place{}, nil
	case "end":
		return place{kind: placeLatest}, nil
	}
	if at, ok := strings.CutPrefix(s, "@"); ok {
		return parseAt("until", at)
	}
	if n, err := strconv.ParseUint(s, 10, 62); err == nil {
		return place{kind: placeOffset, n: int64(n)}, nil
	}
	return place{}, cli.Usagef("--until %q is not one of end, OFFSET and @TIME", s)
}

func parseAt(flag, s string) (place, error) {
	t, err := cli.ParseTime(s, time.Local)
	if err != nil {
		return place{}, cli.Usagef("--%s @%s: %w", flag, s, err)
	}
	return place{kind: placeTime, time: t}, nil
}

// parsePartitions reads a list such as "0,3-5"; an empty one is nil, which
// means all.
func parsePartitions(s string) ([]int32, error) {
	if s == "" {
		return nil, nil
	}
	var list []int32
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.ParseUint(first, 10, 31)
		hi, err2 := strconv.ParseUint(last, 10, 31)
		if err != nil || err2 != nil || hi < lo || hi-lo >= 1_000_000 {
			return nil, cli.Usagef("-p %q is not a list of partitions such as 0,3-5", s)
		}
		for p := lo; p <= hi; p++ {
			list = append(list, int32(p))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
