package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the forms in which times are written, besides numbers.
var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

// msThreshold tells seconds from milliseconds: as seconds it is the year 5138,
// as milliseconds it is March 1973.
const msThreshold = 1e11

// ParseTime reads a point in time: seconds or milliseconds since 1970, RFC
// 3339, or a date with or without time of day in the zone of loc.
func ParseTime(s string, loc *time.Location) (time.Time, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil && !strings.ContainsAny(s, "eExXpPnNiI_") && n >= 0 && n < msThreshold*1e4 {
		if n >= msThreshold {
			return time.UnixMilli(int64(n)), nil
		}
		return time.UnixMilli(int64(n * 1000)), nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, loc); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write for instance 2026-01-31, 2026-01-31T15:04:05Z or 1769871845", s)
}
