package smq

import (
	"fmt"
	"strconv"
	"strings"
)

// ByteRate is a number of bytes a second for people, with three digits that count and
// in steps of 1000 as rates are written: 12.3MB/s.
func ByteRate(perSecond float64) string {
	const units = "kMGT"
	if perSecond < 999.5 {
		return fmt.Sprintf("%.0fB/s", perSecond)
	}
	perSecond /= 1e3
	unit := 0
	for perSecond >= 999.5 && unit < len(units)-1 {
		perSecond /= 1e3
		unit++
	}
	digits := 2
	for n := perSecond; n >= 9.995 && digits > 0; n /= 10 {
		digits--
	}
	number := strconv.FormatFloat(perSecond, 'f', digits, 64)
	if digits > 0 {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + units[unit:unit+1] + "B/s"
}

// MessageRate is a number of messages a second for people: 4100msg/s.
func MessageRate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return Short(perSecond) + "msg/s"
	}
	return fmt.Sprintf("%.0fmsg/s", perSecond)
}

// Short is a number with one digit behind the point, if it is not 0.
func Short(n float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") }
