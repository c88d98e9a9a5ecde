package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// count is a number or a rate in at most five columns: 0, 0.3, 950, 12.3k, 4.5M.
func count(n float64) string {
	const units = "kMGTP"
	switch {
	case n < 0.05: // and what is no number
		return "0"
	case n < 9.95 && n != float64(int64(n)):
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	unit := -1
	for n >= 999.5 && unit < len(units)-1 {
		n /= 1000
		unit++
	}
	if unit < 0 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	digits := 1
	if n >= 99.95 {
		digits = 0
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + units[unit:unit+1]
}

// round is count without a needless fraction, for texts.
func round(n float64) string { return strings.Replace(count(n), ".0", "", 1) }

// traffic is what something takes in, in words.
func traffic(messages, bytes float64) string {
	return round(messages) + " msg/s, " + inBytes(bytes) + "/s"
}

// inBytes is a number of bytes, in steps of 1000 as rates are counted: 950 B,
// 12.3 kB, 20 MB.
func inBytes(n float64) string {
	s := round(n)
	if last := s[len(s)-1]; last > '9' {
		return s[:len(s)-1] + " " + string(last) + "B"
	}
	return s + " B"
}

// memory is a number of bytes of memory, in steps of 1024.
func memory(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// span is a time that has passed, in at most five columns: 850ms, 12s, 5m, 3h,
// 12d.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d > 0 && d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// ago is how long before now a moment was, by the same clock; both in ms since
// 1970.
func ago(nowMS, ms int64) string {
	if ms == 0 || nowMS == 0 {
		return "-"
	}
	return span(time.Duration(nowMS-ms) * time.Millisecond)
}

// ranged is the partitions of a segment.
func ranged(lo, hi int32) string { return smq.Range{Lo: lo, Hi: hi}.String() }

// short is the beginning of an id, which tells brokers of one cluster apart.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
