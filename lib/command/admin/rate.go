package admin

import (
	"fmt"
	"strings"
)

// byteRate is a number of bytes a second for people, in steps of 1000 as rates
// are written.
func byteRate(perSecond float64) string {
	const units = "kMGT"
	if perSecond < 1e3 {
		return fmt.Sprintf("%.0fB/s", perSecond)
	}
	unit := -1
	for perSecond >= 999.95 && unit < len(units)-1 {
		perSecond /= 1e3
		unit++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", perSecond), ".0") + units[unit:unit+1] + "B/s"
}

// messageRate is a number of messages a second for people.
func messageRate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", perSecond), ".0") + "msg/s"
	}
	return fmt.Sprintf("%.0fmsg/s", perSecond)
}
